"""Edges of reductions over named axes: numbers, booleans, dimensions among the names, groups, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

ROWS = np.arange(12.0).reshape(3, 4)


def over(f, x=ROWS, name="i"):
    return np.asarray(hx.vmap(f, axis_name=name)(x))


def test_numbers_are_multiplied_by_the_lanes_that_meet():
    sizes = []
    over(lambda x: sizes.append(lax.psum(1, "i")) or sizes.append(lax.psum(1, "i", axis_index_groups=[[2], [0], [1]])))
    assert sizes == [3, 1]
    assert all(type(size) is int for size in sizes)
    assert over(lambda x: lax.psum(1, "i", axis_index_groups=[[0, 2], [1]])).tolist() == [2, 1, 2]
    assert over(lambda x: lax.psum(1, ())).tolist() == [1, 1, 1]


def test_booleans_are_counted_or_combined():
    x = np.array([True, False, True])
    assert over(lambda x: lax.psum(x, "i"), x).tolist() == [2, 2, 2]
    assert over(lambda x: lax.pprod(x, "i"), x).tolist() == [0, 0, 0]
    assert over(lambda x: lax.pmean(x, "i"), x).tolist() == pytest.approx([2 / 3] * 3)
    assert over(lambda x: lax.pmax(x, "i", axis_index_groups=[[0, 1], [2]]), x).tolist() == [True, True, True]
    assert over(lambda x: lax.pmin(x, "i", axis_index_groups=[[0, 1], [2]]), x).tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8"])
def test_more_unmapped_lanes_than_a_dtype_can_count_are_summed_as_mapped_ones(dtype):
    def total(x, lanes):
        return hx.vmap(lambda _, x: lax.psum(x, "i"), (0, lanes), None, axis_name="i")(np.zeros(70_000), x)

    for x in (0, 1):
        whole = hnp.full(70_000, x, dtype)
        assert np.array_equal(total(whole[0], None), total(whole, 0))


def test_integers_among_the_names_are_dimensions():
    assert over(lambda x: lax.psum(x, ("i", 0))).tolist() == [66] * 3
    assert over(lambda x: lax.psum(x, ("i", -1), axis_index_groups=[[0, 2], [1]])).tolist() == [44, 22, 44]
    assert over(lambda x: lax.pmean(x, (0, "i"))).tolist() == [5.5] * 3
    assert over(lambda x: lax.pmax(x, (0,))).tolist() == [3, 7, 11]
    with pytest.raises(errors.BadArgument):
        over(lambda x: lax.psum(x, ("i", 1)))


def test_groups_of_unequal_sizes_have_their_own_means():
    x = np.arange(8.0)
    groups = [[0, 1, 2], [3, 4, 5, 6, 7]]
    assert over(lambda x: lax.pmean(x, "i", axis_index_groups=groups), x).tolist() == [1] * 3 + [5] * 5


def test_the_lane_of_an_extreme_is_the_first_and_a_nan_is_extreme():
    x = np.array([1.0, 5.0, 5.0, 0.0])
    assert over(lambda x: lax.pargmax(x, "i"), x).tolist() == [1] * 4
    assert over(lambda x: lax.pargmin(x, "i"), np.array([1.0, np.nan, 0.0])).tolist() == [1] * 3


def test_lanes_that_tie_share_the_tangent():
    for f in (lax.pmax, lax.pmin):
        _, dy = hx.jvp(hx.vmap(lambda x, f=f: f(x, "i"), axis_name="i"), (np.ones(5),), (np.eye(5)[0],))
        assert dy.tolist() == pytest.approx([0.2] * 5)


def test_the_derivative_of_a_product_is_right_at_zero_and_so_is_the_second():
    f = lambda x: hx.vmap(lambda x: lax.pprod(x, "i"), axis_name="i", out_axes=None)(x)
    x = np.array([2.0, 0.0, 3.0])
    assert hx.grad(f)(x).tolist() == [0, 6, 0]
    assert hx.hessian(f)(x).tolist() == [[0, 3, 0], [3, 0, 2], [0, 2, 0]]


def test_an_inner_axis_shadows_an_outer_one_of_its_name():
    def row(row):
        return hx.vmap(lambda v: lax.psum(v, "i"), axis_name="i")(row) + lax.psum(1, "i")

    x = np.arange(6.0).reshape(2, 3)
    assert over(row, x).tolist() == [[5, 5, 5], [14, 14, 14]]


def test_dot_contracts_dimensions_and_axes():
    assert over(lambda x: lax.pdot(x, x, "i", ((0,), (0,)))).tolist() == [506] * 3


def test_trees_are_reduced_leaf_by_leaf():
    tree = hx.vmap(lambda t: lax.psum(t, "i"), axis_name="i", out_axes=None)({"a": ROWS, "b": ROWS[:, 0]})
    assert tree["a"].tolist() == ROWS.sum(0).tolist()
    assert tree["b"].tolist() == 12


@pytest.mark.parametrize(
    ("f", "kind", "words"),
    [
        (lambda x: lax.psum(x, "k"), errors.UnboundAxis, "in scope are 'i' of size 3"),
        (lambda x: lax.psum(x, ("i", "i")), errors.BadArgument, "named once"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), errors.BadArgument, "each of 3 lanes once"),
        (lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2]]), errors.BadArgument, "of equal size"),
        (lambda x: lax.pbroadcast(x, "i", 3), errors.BadArgument, "one of 3 lanes"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1]), errors.BadArgument, "permutation of 3 lanes"),
        (lambda x: lax.psum_scatter(x, "i"), errors.ShapeMismatch, "must equal the number of lanes, 3"),
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), errors.ShapeMismatch, "multiple of the number of lanes"),
    ],
)
def test_what_does_not_fit_is_refused(f, kind, words):
    with pytest.raises(kind, match=words):
        over(f)


@pytest.mark.parametrize(
    "around",
    [
        hx.jit,
        hx.checkpoint,
        lambda f: lambda x: lax.cond(hnp.sum(lax.psum(x, "i")) > 0, f, lambda x: x, x),
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
        lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
        lambda f: lambda x: lax.map(f, x[None])[0],
        lambda f: lambda x: hx.vmap(f)(hnp.stack([x, x]))[1],
    ],
    ids=["jit", "checkpoint", "cond", "scan", "while", "map", "vmap"],
)
def test_collectives_inside_of_control_flow_mean_what_they_mean_outside(around):
    def f(x):
        total = lax.psum(x, ("j", "i"), axis_index_groups=[[0, 3], [1, 2, 5], [4]])
        return x * total + lax.ppermute(x, ("i", "j"), [(0, 5), (5, 1)]) + lax.pcumprod(x, "j")

    x = np.linspace(1, 2, 6 * 2).reshape(2, 3, 2)
    twice = lambda f: hx.vmap(hx.vmap(f, axis_name="j"), axis_name="i")
    loss = lambda f: lambda x: hnp.sum(twice(f)(x) * np.arange(12.0).reshape(2, 3, 2))
    assert np.allclose(twice(around(f))(x), twice(f)(x))
    assert np.allclose(hx.grad(loss(around(f)))(x), hx.grad(loss(f))(x))


GROUPS = [[0, 2], [1], [3]]
COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "i"),
    "pprod": lambda x: lax.pprod(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "pargmax": lambda x: lax.pargmax(x, "i"),
    "pargmin": lambda x: lax.pargmin(x, "i"),
    "psum in groups": lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "pmax in groups": lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]),
    "pbroadcast": lambda x: lax.pbroadcast(x, "i", 2),
    "pgather": lambda x: lax.pgather(x, (lax.axis_index("i") + 1) % 4, "i"),
    "pcumsum": lambda x: lax.pcumsum(x, "i"),
    "pcummax": lambda x: lax.pcummax(x, "i"),
    "of a constant": lambda x: lax.psum(hnp.ones(4, x.dtype), "i"),
    "scattered constant": lambda x: lax.psum_scatter(hnp.ones(4, x.dtype), "i"),
}
DTYPES = [
    "bool", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "float4_e2m1fn", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
OFTEN = (
    "bool", "int2", "uint4", "uint8", "int32", "float16", "float64", "complex64", "complex128", "float4_e2m1fn",
    "float8_e4m3b11fnuz", "float8_e8m0fnu",
)


def numbers(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    random = np.random.RandomState(len(name))
    x = random.randint(1, 4, (4, 4)).astype(np.float32)
    if name == "bool" or dtype.kind == "u" or name.endswith("e8m0fnu"):
        return (x > 1 if name == "bool" else x).astype(dtype)
    x = -x * (random.rand(4, 4) > 0.3) if name != "int2" else 1 - x  # signed zeros among them
    return (x + 1j * x[::-1] if "complex" in name else x).astype(dtype)


def numbers_of(y):
    """The elements and their signs; NumPy does not convert those of two bits to each other."""
    rows = np.array(np.asarray(y).tolist())
    return rows if rows.dtype.kind in "bc" else np.stack([rows, np.copysign(1, rows.astype(float))])


@pytest.mark.parametrize("dtype", rest_in_sweep(DTYPES, OFTEN))
def test_every_dtype_is_taken_or_refused_as_under_vmap(dtype):
    x = hnp.asarray(numbers(dtype))
    expected, refused = {}, {}
    for name, f in COLLECTIVES.items():
        try:
            expected[name] = hx.vmap(f, axis_name="i", axis_size=4)(x)
        except errors.DTypeMismatch:
            refused[name] = f
    assert "all_gather" in expected
    for f in refused.values():
        with pytest.raises(errors.DTypeMismatch):
            hx.pmap(f, axis_name="i")(x)
    found = hx.pmap(lambda x: {name: COLLECTIVES[name](x) for name in expected}, axis_name="i")(x)
    for name, y in expected.items():
        assert found[name].dtype == y.dtype, name
        np.testing.assert_array_equal(numbers_of(found[name]), numbers_of(y), name)


@pytest.mark.parametrize("extreme", [lax.pmax, lax.pmin])
def test_complex_extremes_are_those_of_pairs_of_numbers(extreme):
    x = np.array([[1 + 2j, 3 - 1j], [1 + 5j, -2j], [1 - 1j, 3 + 0j], [complex(0, np.nan), 2j]], np.complex64)
    key = lambda z: (z.real, z.imag)
    best = max if extreme is lax.pmax else min
    y = np.asarray(hx.pmap(lambda x: extreme(x, "i"), axis_name="i")(x[:3]))
    assert y[0].tolist() == [best(column, key=key) for column in x[:3].T] and (y == y[0]).all()
    assert np.isnan(hx.pmap(lambda x: extreme(x, "i"), axis_name="i")(x)[0, 0])


@pytest.mark.parametrize("mapped", [0, None])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.psum(x, "i"),
        lambda x: lax.all_gather(x, "i") ** 2,
        lambda x: x * lax.pmean(x, "i"),
        lambda x: x * lax.axis_index("i"),
        lambda x: lax.psum_scatter(hnp.stack([x, 2 * x, 3 * x]), "i", axis_index_groups=[[1, 0, 2]]),
    ],
)
def test_a_backward_rule_uses_the_axis_also_where_lanes_share_all_values(f, mapped):
    @hx.custom_vjp
    def g(x):
        return f(x)

    g.defvjp(lambda x: (f(x), x), lambda x, ct: hx.vjp(f, x)[1](ct))
    x = np.arange(3.0) if mapped == 0 else np.array(2.0)
    for call in (lambda h: h, hx.jit):
        over_lanes = lambda g: hx.vmap(g, in_axes=mapped, axis_name="i", axis_size=3)
        ct = hnp.asarray(np.random.default_rng(0).normal(size=over_lanes(f)(x).shape))
        back = [call(lambda x, h=h: hx.vjp(over_lanes(h), x)[1](ct)[0])(x) for h in (f, g)]
        np.testing.assert_allclose(*back)
        assert back[0].shape == x.shape
