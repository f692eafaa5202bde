"""Named axes under vmap: worked examples, and the definition over the product of axes, in any nesting."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from helpers.lanes import DEFINITION, called, defined, mapped, random_call

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


def over(f, x, name="i"):
    return np.asarray(hx.vmap(f, axis_name=name)(x))


X = np.array([1.0, 2.0, 4.0], np.float32)


def test_psum_of_a_mapped_value_is_the_sum_over_lanes():
    assert over(lambda x: lax.psum(x, "i"), X).tolist() == [7.0] * 3
    assert over(lambda x: lax.pmean(x, "i"), X).tolist() == pytest.approx([7 / 3] * 3)
    assert over(lambda x: lax.pmax(x, "i"), X).tolist() == [4.0] * 3
    assert over(lambda x: lax.pmin(x, "i"), X).tolist() == [1.0] * 3


def test_psum_of_an_unmapped_value_multiplies_by_the_axis_size():
    assert over(lambda x: lax.psum(hnp.float32(2.0), "i") + 0 * x, X).tolist() == [6.0] * 3
    assert over(lambda x: x * lax.psum(1, "i"), X).tolist() == [3.0, 6.0, 12.0]


def test_axis_index_counts_lanes():
    assert over(lambda x: lax.axis_index("i"), X).tolist() == [0, 1, 2]
    assert over(lambda x: x + lax.axis_size("i"), X).tolist() == [4.0, 5.0, 7.0]


def test_ppermute_sends_and_leaves_zeros():
    assert over(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), X).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(errors.BadArgument, match="distinct"):
        over(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), X)


def test_all_gather_stacks_or_joins():
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    assert over(lambda x: lax.all_gather(x, "i"), x)[1].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert over(lambda x: lax.all_gather(x, "i", axis=1), x)[0].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert over(lambda x: lax.all_gather(x, "i", tiled=True), x)[2].tolist() == [0, 1, 2, 3, 4, 5]


def test_axes_nest_and_can_be_named_together():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def both(f):
        return np.asarray(hx.vmap(hx.vmap(f, axis_name="j"), axis_name="i")(x))

    assert (both(lambda x: lax.psum(x, ("i", "j"))) == 15).all()
    assert both(lambda x: lax.psum(x, "i"))[0].tolist() == [3, 5, 7]
    assert both(lambda x: lax.psum(x, "j"))[:, 0].tolist() == [3, 12]
    assert both(lambda x: lax.axis_index(("i", "j"))).ravel().tolist() == list(range(6))
    gathered = both(lambda x: lax.all_gather(x, ("i", "j")))
    assert gathered.shape == (2, 3, 6)
    assert (gathered == np.arange(6)).all()


def test_the_axis_is_in_the_effect_row_until_it_is_answered():
    def f(x):
        program = hx.make_program(lambda x: lax.psum(x, "i"))(x)
        assert [str(effect) for effect in program.effects] == ["axis i"]
        return x

    hx.vmap(f, axis_name="i")(X)
    whole = hx.make_program(hx.vmap(lambda x: lax.psum(x, "i"), axis_name="i"))(X)
    assert not whole.effects


def test_collectives_cross_jit():
    f = hx.jit(lambda x: x / lax.psum(x, "i"))
    assert over(f, X).tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7])
    assert np.asarray(hx.jit(hx.vmap(f, axis_name="i"))(X)).tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7])
    assert over(f, X[:2]).tolist() == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.psum(x * x, "i"),
        lambda x: lax.pmean(x, "i") * x,
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]) * x,
        lambda x: hnp.sum(lax.all_gather(x, "i") ** 2) * x,
        lambda x: lax.pmax(x, "i") * x,
        lambda x: lax.psum_scatter(x * hnp.array([1.0, 2.0, -1.0]), "i") ** 2,
        lambda x: hnp.sum(lax.all_to_all(x * hnp.array([1.0, 2.0, -1.0]), "i", 0, 0) ** 2) * x,
    ],
)
def test_the_gradient_of_lanes_is_the_gradient_of_the_stack(f):
    """A collective is a function of the whole stack: finite differences know nothing of names."""

    def whole(x):
        return hnp.sum(hx.vmap(f, axis_name="i")(x) * np.array([1.0, 3.0, -2.0]))

    x = np.array([1.0, 2.0, 4.0])
    grad = np.asarray(hx.grad(whole)(x))
    for i in range(3):
        step = 1e-6 * np.eye(3)[i]
        difference = (whole(x + step) - whole(x - step)) / 2e-6
        assert float(grad[i]) == pytest.approx(float(difference), rel=1e-5, abs=1e-6)


def test_an_axis_that_nobody_binds_is_named():
    with pytest.raises(errors.UnboundAxis, match="'k'"):
        over(lambda x: lax.psum(x, "k"), X)
    with pytest.raises(NameError):
        lax.axis_index("i")


def exchanged(x, split, concat, tiled):
    """``all_to_all`` of the lanes in dimension 0 of ``x``, by its definition."""
    n = x.shape[0]
    blocks = [np.split(lane, n, split) for lane in x]
    if not tiled:
        blocks = [[block.squeeze(split) for block in lane] for lane in blocks]
    join = np.concatenate if tiled else np.stack
    return np.stack([join([blocks[source][lane] for source in range(n)], concat) for lane in range(n)])


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("split", [0, 1, -1])
@pytest.mark.parametrize("concat", [0, 1, 2])
@pytest.mark.parametrize("lanes", [0, 1, 3])
def test_all_to_all_exchanges_the_axis_for_a_dimension(tiled, split, concat, lanes):
    x = np.arange(81 if not tiled else 324, dtype=np.float32).reshape(3, 3, *((3, 3) if not tiled else (6, 6)))
    found = hx.vmap(
        lambda x: lax.all_to_all(x, "i", split, concat, tiled=tiled), axis_name="i", in_axes=lanes
    )(np.moveaxis(x, 0, lanes))
    assert np.array_equal(found, exchanged(x, split, concat, tiled))


def test_exchanges_and_scattered_sums_over_two_axes_are_those_over_their_product():
    x = np.arange(6 * 12 * 2, dtype=np.float32).reshape(6, 12, 2)
    for f in (
        lambda x, name: lax.all_to_all(x, name, 0, 1, tiled=True),
        lambda x, name: lax.all_to_all(x[:6], name, 0, 1),
        lambda x, name: lax.psum_scatter(x, name, tiled=True),
        lambda x, name: lax.psum_scatter(x.T[:, :6], name, scatter_dimension=1),
    ):
        one = over(lambda x, f=f: f(x, "i"), x)
        both = hx.vmap(hx.vmap(lambda x, f=f: f(x, ("i", "j")), axis_name="j"), axis_name="i")(x.reshape(2, 3, 12, 2))
        assert np.array_equal(np.asarray(both).reshape(one.shape), one)


def test_a_scattered_sum_is_the_lane_of_the_sum():
    x = np.arange(18.0, dtype=np.float32).reshape(3, 2, 3)
    found = over(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), x)
    assert np.array_equal(found, x.sum(0).T)
    same = hx.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i", in_axes=None, axis_size=3)(x[0].T)
    assert np.array_equal(same, 3 * x[0].T)
    tiled = over(lambda x: lax.psum_scatter(x, "i", tiled=True), np.ones((3, 6), np.float32))
    assert tiled.tolist() == [[3.0, 3.0]] * 3
    assert over(lambda x: lax.pbroadcast(x, "i", 2), X).tolist() == [4.0] * 3
    assert np.array_equal(over(lambda x: lax.pswapaxes(x, "i", 1), x.reshape(3, 2, 3)), x.transpose(2, 1, 0))


@pytest.mark.parametrize("name", ["psum_scatter", "all_to_all"])
@pytest.mark.parametrize("tiled", [False, True])
def test_sizes_that_do_not_fit_the_axis_are_refused(name, tiled):
    where = (0, 0) if name == "all_to_all" else ()
    with pytest.raises(errors.ShapeMismatch, match="multiple of" if tiled else "must equal"):
        over(lambda x: getattr(lax, name)(x, "i", *where, tiled=tiled), np.ones((3, 4), np.float32))


LINEAR = ("psum", "pmean", "pbroadcast", "ppermute", "pshuffle", "all_gather", "psum_scatter", "all_to_all",
          "pswapaxes", "pcumsum", "pgather")  # fmt: skip
SMOOTH = (*LINEAR, "pprod", "pcumprod", "pmax", "pmin", "pcummax", "pcummin")


def random_axes(rng, limit=5):
    """Sizes of one to three axes, and those that a collective names, in any order."""
    sizes = rng.integers(1, limit, rng.integers(1, 4)).tolist()
    return sizes, rng.permutation(len(sizes))[: rng.integers(0, len(sizes) + 1)].tolist()


def full(x, sizes, unmapped):
    """The array with the dimensions of unmapped axes, repeated."""
    for k in sorted(unmapped):
        x = np.expand_dims(x, k)
    return np.broadcast_to(x, (*sizes, *x.shape[len(sizes) :]))


@pytest.mark.parametrize("name", DEFINITION)
@pytest.mark.parametrize("seed", range(6))
def test_nested_handlers_are_the_definition(name, seed):
    rng = np.random.default_rng([seed, *name.encode()])
    sizes, axes = random_axes(rng)
    shape, args, groups = random_call(rng, name, prod(sizes[k] for k in axes))
    unmapped = [k for k in range(len(sizes)) if rng.random() < 0.2]
    x = rng.integers(-3, 4, (*[n for k, n in enumerate(sizes) if k not in unmapped], *shape)).astype(np.float32)
    expected = defined(name, full(x, sizes, unmapped), axes, sizes, args, groups)
    f = called(name, tuple("ijk"[k] for k in axes), args, groups)
    for number, order in enumerate(itertools.permutations(range(len(sizes)))):
        g = mapped(f, "ijk", sizes, order, unmapped)
        found = np.asarray((hx.jit(g) if number == 0 and seed == 0 else g)(x))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_of_lanes_is_the_gradient_of_the_definition(name, seed):
    """<J dx, u> = <dx, J^T u> over all lanes; and J dx is the difference of the definition, in float64."""
    rng = np.random.default_rng([seed, 7, *name.encode()])
    sizes, axes = random_axes(rng, 4)
    shape, args, groups = random_call(rng, name, prod(sizes[k] for k in axes))
    f = called(name, tuple("ijk"[k] for k in axes), args, groups)
    x, dx = rng.normal(size=(2, *sizes, *shape))
    order = rng.permutation(len(sizes)).tolist()
    if not np.isfinite(defined(name, x, axes, sizes, args, groups)).all():
        return  # an exclusive maximum of nothing

    def lanes(x, dx, u):
        _, dy = hx.jvp(f, (x,), (dx,))
        (back,) = hx.vjp(f, x)[1](u)
        return dy, back

    u = rng.normal(size=defined(name, x, axes, sizes, args, groups).shape)
    dy = mapped(lambda *a: lanes(*a)[0], "ijk", sizes, order)(x, dx, u)
    back = mapped(lambda *a: lanes(*a)[1], "ijk", sizes, order)(x, dx, u)
    step = 1e-6
    ahead, behind = (defined(name, x + s * dx, axes, sizes, args, groups) for s in (step, -step))
    np.testing.assert_allclose(dy, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)
    assert np.vdot(dy, u) == pytest.approx(np.vdot(dx, back), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["psum", "pmax", "pprod", "all_gather", "pbroadcast", "pargmax"])
def test_what_is_equal_in_all_lanes_is_known_to_be(name):
    f = called(name, "i", {"all_gather": (0, False), "pbroadcast": (1,)}.get(name, ()), None)
    x = np.arange(3.0)
    assert hx.vmap(f, axis_name="i", out_axes=None)(x).shape == ((3,) if name == "all_gather" else ())
