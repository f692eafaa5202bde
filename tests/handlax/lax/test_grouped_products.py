"""Products by groups and of scaled blocks, against sums over groups and blocks in NumPy."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax.test_util import check_grads

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


# shapes by letter: r the ragged dimension, g groups, b and c batch, k contracting, x outer of its role, m and n free
SIZES = {"b": 2, "c": 3, "k": 4, "x": 2, "n": 5, "m": 3, "r": 6, "g": 3}
CASES = {
    "rows": ("rk", "gkn", "rn"),
    "rows of batches": ("brk", "gbkn", "brn"),
    "rows with outer ones": ("xrk", "gkn", "xrn"),
    "rows, groups last": ("kr", "kng", "rn"),
    "rows, two summed": ("rkx", "xgkn", "rn"),
    "sums": ("mr", "rn", "gmn"),
    "sums of batches": ("bmr", "brn", "gbmn"),
    "sums with outer ones": ("mxr", "xrn", "gmn"),
    "batches": ("rmk", "rkn", "rmn"),
    "batches with outer ones": ("brmk", "brkn", "brmn"),
}


def numbers(subscripts):
    left, right, out = subscripts
    batch = [i for i in left if i in right and i in out]
    inner = [i for i in left if i in right and i not in out]
    pairs = [(tuple(map(left.index, letters)), tuple(map(right.index, letters))) for letters in (inner, batch)]
    groups = [right.index("g")] if "g" in right else []
    return lax.RaggedDotDimensionNumbers(tuple(pairs), (left.index("r"),), groups), batch, inner


@pytest.mark.each_choice
@pytest.mark.parametrize("one_row", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_each_group_has_its_own_product(case, one_row):
    left, right, _ = CASES[case]
    dims, batch, inner = numbers(CASES[case])
    x, y = [normal(*[SIZES[i] for i in letters]) for letters in (left, right)]
    if "r" in batch:
        before = batch[: batch.index("r")]
    else:
        before = [*batch, *[i for i in left[: left.index("r")] if i not in batch and (i in inner) == ("r" in inner)]]
    shape = [] if one_row else [SIZES[i] for i in before]
    sizes = RNG.multinomial(5, [0.3, 0.3, 0.4], size=shape).astype(np.int32)
    wanted = _by_loops(x, y, sizes, CASES[case], before)
    f = lambda x, y: lax.ragged_dot_general(x, y, sizes, dims, precision="highest")
    for found in (f(x, y), hx.jit(f)(x, y)):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    check_grads(f, (x, y), order=1, modes=("fwd", "rev"), atol=2e-2, rtol=2e-2)


def _by_loops(x, y, sizes, subscripts, before):
    """One einsum for each group, of what of ``x`` is in it."""
    left, right, out = subscripts
    sizes = np.broadcast_to(sizes, (*[SIZES[i] for i in before], sizes.shape[-1]))
    results = []
    for g in range(sizes.shape[-1]):
        kept = np.zeros_like(x)
        for at in np.ndindex(sizes.shape[:-1]):
            end = sizes[at].cumsum()[g]
            places = dict(zip(before, at), r=slice(end - sizes[at][g], end))
            index = tuple([places.get(i, slice(None)) for i in left])
            kept[index] = x[index]
        matrix = np.take(y, g, right.index("g")) if "g" in right else y
        results.append(np.einsum(f"{left},{right.replace('g', '')}->{out.replace('g', '')}", kept, matrix))
    return np.stack(results) if "g" in out else sum(results)


def test_rows_behind_the_last_group_are_zero_and_groups_may_be_empty():
    x, y = normal(5, 2), normal(3, 2, 4)
    z = np.asarray(lax.ragged_dot(x, y, np.int32([2, 0, 1])))
    np.testing.assert_allclose(z[:2], x[:2] @ y[0], rtol=1e-5)
    np.testing.assert_allclose(z[2], x[2] @ y[2], rtol=1e-5)
    assert not z[3:].any()


def test_an_offset_is_the_group_of_the_first_matrix():
    x, y, sizes = normal(6, 2), normal(4, 2, 3), np.int32([1, 2, 1, 2])
    whole = lax.ragged_dot(x, y, sizes)
    halves = [lax.ragged_dot(x, y[i : i + 2], sizes, group_offset=np.int32(i)) for i in (0, 2)]
    np.testing.assert_allclose(halves[0] + halves[1], whole, rtol=1e-6)


def test_lanes_have_groups_of_their_own():
    x, y, sizes = normal(3, 5, 2), normal(2, 2, 4), np.int32([[1, 4], [5, 0], [2, 2]])
    lanes = hx.vmap(lax.ragged_dot, in_axes=(0, None, 0))(x, y, sizes)
    for i in range(3):
        np.testing.assert_allclose(lanes[i], lax.ragged_dot(x[i], y, sizes[i]), rtol=1e-5, atol=1e-6)


def test_dtypes_are_those_of_dot_general():
    x, y, sizes = np.ones((2, 3), "bfloat16"), np.ones((1, 3, 4), "bfloat16"), np.int32([2])
    assert lax.ragged_dot(x, y, sizes).dtype == "bfloat16"
    assert lax.ragged_dot(x, y, sizes, preferred_element_type="float32").dtype == "float32"


DOT = (((1,), (1,)), ((), ()))


@pytest.mark.parametrize(("y", "sizes", "dims", "error", "words"), [
    ((3, 2, 4), (3,), (DOT, (0, 1), (0,)), errors.BadAxis, "one ragged dimension"),
    ((3, 2, 4), (3,), (DOT, (2,), (0,)), errors.BadAxis, "one ragged dimension"),
    ((3, 2, 4), (3,), (DOT, (0,), ()), errors.BadAxis, "one group dimension"),
    ((3, 2, 4), (3,), (DOT, (1,), (0,)), errors.BadAxis, "no group dimension"),
    ((3, 2, 4), (3,), (DOT, (0,), (1,)), errors.BadAxis, "neither contracting nor batch"),
    ((3, 2, 4), (2,), (DOT, (0,), (0,)), errors.ShapeMismatch, "2 groups"),
    ((3, 2, 4), (5, 3), (DOT, (0,), (0,)), errors.ShapeMismatch, r"must be i32\[3\]"),
    ((3, 2, 4), None, (DOT, (0,), (0,)), errors.DTypeMismatch, "integers, got f32"),
])
def test_what_has_no_meaning_is_refused(y, sizes, dims, error, words):
    sizes = normal(3) if sizes is None else np.ones(sizes, np.int32)
    with pytest.raises(error, match=words):
        lax.ragged_dot_general(normal(5, 2), normal(*y), sizes, lax.RaggedDotDimensionNumbers(*dims))
    with pytest.raises(TypeError):
        lax.ragged_dot_general(normal(5, 2), normal(*y), sizes, lax.RaggedDotDimensionNumbers(*dims))


@pytest.mark.parametrize("shapes", [
    ((3, 8), (8, 5), (3, 2), (4, 5), None),
    ((2, 3, 8), (2, 8, 5), (2, 3, 8), (2, 1, 5), None),
    ((8, 3), (5, 8), (4, 3), None, (((0,), (1,)), ((), ()))),
    ((3, 8, 6), (8, 6, 5), (3, 4, 2), (8, 3, 5), (((1, 2), (0, 1)), ((), ()))),
])
def test_blocks_are_scaled(shapes):
    x, y, s, t, dims = [normal(*shape) if i < 4 and shape else shape for i, shape in enumerate(shapes)]
    wide = [v if scale is None else v * _repeated(scale, v.shape) for v, scale in ((x, s), (y, t))]
    if dims is None:
        wanted = wide[0] @ wide[1]
    else:
        wanted = np.tensordot(*wide, axes=dims[0])
    found = lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, dimension_numbers=dims, preferred_element_type="float32")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, dimension_numbers=dims).dtype == "bfloat16"


def _repeated(scale, shape):
    for d, (n, k) in enumerate(zip(shape, scale.shape)):
        scale = np.repeat(scale, n // k, axis=d)
    return scale


def test_scales_of_no_blocks_are_refused():
    x, y = normal(3, 8), normal(8, 5)
    for scale in (normal(3, 3), normal(1, 2), normal(3), normal(3, 0)):
        with pytest.raises(errors.ShapeMismatch, match="lhs_scale must be"):
            lax.scaled_dot(x, y, lhs_scale=scale)
    with pytest.raises(errors.ShapeMismatch, match="matrices"):
        lax.scaled_dot(normal(3), normal(3))
