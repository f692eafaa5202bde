"""Collectives: worked examples; and the definition over the product of axes, whoever binds each of them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers.lanes import DEFINITION, DTYPES, calls, defined, mapped, on_all, operand, random_owners
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_over_no_axis_nothing_is_performed():
    assert hx.make_program(lambda x: lax.psum(x, ()))(1.0).ops == ()


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


def on_devices(f, **named):
    return hx.shard_map(f, mesh=hx.make_mesh((2, 2), ("d", "m")), in_specs=hx.P("d"), out_specs=hx.P("d"), **named)


@pytest.mark.parametrize(("bind", "hint"), [
    (lambda f: f, "bind it: vmap or pmap"),
    (lambda f: hx.vmap(f, axis_name="i"), "name 'i', or bind it"),
    (lambda f: hx.pmap(f, "i"), "name 'i', or bind it"),
    (hx.pmap, "bind it: vmap or pmap"),
    (on_devices, "name 'd' or 'm', or bind it"),
    (lambda f: hx.jit(on_devices(f)), "name 'd' or 'm', or bind it"),
    (lambda f: hx.vmap(on_devices(f), axis_name="i", in_axes=1), "name 'd' or 'm' or 'i', or bind it"),
])
def test_the_hint_for_an_unbound_axis_names_those_in_scope(bind, hint):
    with pytest.raises(errors.UnboundAxis, match="psum: nothing binds the axis 'zz'") as found:
        bind(lambda x: lax.psum(x, "zz"))(np.ones((4, 3)))
    assert found.value.hint.startswith(hint) and "axis_name='zz'" in found.value.hint


OF_AN_AXIS = {
    **dict.fromkeys([
        "psum", "pmean", "pmax", "pmin", "pprod", "pargmax", "pargmin", "all_gather", "psum_scatter", "pvary",
        "pcumsum", "pcumprod", "pcummax", "pcummin",
    ], lambda f, x: f(x, "zz")),
    "axis_index": lambda f, x: f("zz"),
    "axis_size": lambda f, x: f("zz"),
    "pcast": lambda f, x: f(x, "zz", to="varying"),
    "ppermute": lambda f, x: f(x, "zz", [(0, 1)]),
    "pshuffle": lambda f, x: f(x, "zz", [0]),
    "pbroadcast": lambda f, x: f(x, "zz", 0),
    "pswapaxes": lambda f, x: f(x, "zz", 0),
    "all_to_all": lambda f, x: f(x, "zz", 0, 0),
    "pgather": lambda f, x: f(x, 0, "zz"),
    "pdot": lambda f, x: f(x, x, "zz", ((0, 1), (0, 1))),
}


@pytest.mark.parametrize("name", OF_AN_AXIS)
def test_an_unbound_axis_is_an_error_of_the_function_that_was_called(name):
    with pytest.raises(errors.UnboundAxis, match=f"^{name}: nothing binds the axis 'zz'; in scope are 'd' of size 2"):
        on_devices(lambda x: OF_AN_AXIS[name](getattr(lax, name), x))(np.ones((4, 3), "f"))


def test_the_hint_for_an_axis_that_the_mesh_leaves_to_the_compiler_says_who_binds_it():
    with pytest.raises(errors.UnboundAxis) as found:
        on_devices(lambda x: lax.psum(x, "m"), axis_names={"d"})(np.ones((4, 3)))
    assert found.value.hint == "the mesh has it: shard_map with 'm' among its axis_names binds it."


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
          "pswapaxes", "pcumsum", "pgather")
SMOOTH = (*LINEAR, "pprod", "pcumprod", "pmax", "pmin", "pcummax", "pcummin")
EXTREME = ("pmax", "pmin", "pargmax", "pargmin", "pcummax", "pcummin")
NAMES = "ijkl"
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2}


def same(found, expected):
    """The values of an array are those of the definition in wide types, rounded or modulo 2**n."""
    dtype = found.dtype
    assert found.shape == expected.shape
    wide = np.complex128 if dtype.kind == "c" else np.float64
    near = TOLERANCE.get(str(dtype), 1e-5)
    np.testing.assert_allclose(
        np.asarray(found).astype(wide), expected.astype(dtype).astype(wide), rtol=near, atol=near * (near > 1e-4)
    )


def owners_of(data, sizes):
    """Who binds the axes: ``vmap`` alone, in any order; and others too."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.permutation(len(sizes)).tolist(), random_owners(rng, sizes)


def check_values(name, data):
    """In nested ``vmap``, and where devices bind axes, called and jitted, a call of any dtype is its definition."""
    sizes, call, lacking = data.draw(calls(name))
    dtype = data.draw(st.sampled_from([d for d in DTYPES if d != "complex64" or name not in EXTREME]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    xs = [operand(sizes, call, unmapped, dtype, rng) for unmapped in lacking]
    kinds, jitted = set(), data.draw(st.booleans())
    for owners in owners_of(data, sizes):
        f = mapped(on_all(call), NAMES, sizes, owners, lacking)
        for y, x, unmapped in zip((hx.jit(f) if jitted else f)(*xs), xs, lacking, strict=True):
            same(y, defined(sizes, call, x, unmapped))
            kinds.add(y.dtype)
    assert len(kinds) == 1


def full(x, sizes, unmapped):
    """The array with the dimensions of unmapped axes, repeated."""
    x = np.expand_dims(x, tuple(sorted(unmapped)))
    return np.broadcast_to(x, (*sizes, *x.shape[len(sizes) :]))


def check_derivatives(name, data):
    """Outside of all owners, and in each lane: J dx is the difference of the definition, and <J dx, u> = <dx, J^T u>.

    In a lane where types tell along which axes values vary, J^T is another: what lanes share has one cotangent.
    """
    sizes, call, lacking = data.draw(calls(name))
    if name in ("pcummax", "pcummin"):
        # an exclusive maximum of nothing is infinite
        call = call._replace(options={**call.options, "exclusive": False})
    shapes = [(*[n for k, n in enumerate(sizes) if k not in u], *call.shape) for u in lacking]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    xs, dxs = [[rng.normal(size=shape) for shape in shapes] for _ in range(2)]
    step = 1e-6
    ahead, behind = (
        [defined(sizes, call, x + s * dx, unmapped) for x, dx, unmapped in zip(xs, dxs, lacking)] for s in (step, -step)
    )
    dys = [(a - b) / (2 * step) for a, b in zip(ahead, behind)]
    us = [rng.normal(size=dy.shape) for dy in dys]

    def lane(*values):
        x, dx, u = [values[k * len(xs) : (k + 1) * len(xs)] for k in range(3)]
        return *hx.jvp(on_all(call), x, dx)[1], *hx.vjp(on_all(call), *x)[1](tuple(u))

    for owners in owners_of(data, sizes):
        f = mapped(on_all(call), NAMES, sizes, owners, lacking)
        found = [*hx.jvp(f, tuple(xs), tuple(dxs))[1], *hx.vjp(f, *xs)[1](tuple(map(hx.numpy.asarray, us)))]
        check_pairing(found, dys, dxs, us)
        if not any([getattr(owner, "tracked", False) for owner in owners]):
            wide = [[full(v, sizes, u) for v, u in zip(vs, lacking)] for vs in (xs, dxs)]
            check_pairing(mapped(lane, NAMES, sizes, owners)(*wide[0], *wide[1], *us), dys, wide[1], us)


def check_pairing(found, dys, dxs, us):
    for k, (dy, dx, u) in enumerate(zip(dys, dxs, us, strict=True)):
        np.testing.assert_allclose(found[k], dy, rtol=1e-6, atol=1e-6)
        assert np.vdot(dx, found[len(dys) + k]) == pytest.approx(np.vdot(found[k], u), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", DEFINITION)
@settings(max_examples=3)
@given(data=st.data())
def test_every_owner_of_axes_gives_the_definition(name, data):
    check_values(name, data)


@pytest.mark.sweep
@pytest.mark.parametrize("name", DEFINITION)
@settings(max_examples=100)
@given(data=st.data())
def test_many_calls_mean_their_definition(name, data):
    check_values(name, data)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=2)
@given(data=st.data())
def test_every_owner_of_axes_has_the_derivatives_of_the_definition(name, data):
    check_derivatives(name, data)


@pytest.mark.sweep
@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=50)
@given(data=st.data())
def test_many_calls_have_the_derivatives_of_their_definition(name, data):
    check_derivatives(name, data)


@pytest.mark.parametrize("name", ["psum", "pmax", "pprod", "all_gather", "pbroadcast", "pargmax"])
def test_what_is_equal_in_all_lanes_is_known_to_be(name):
    f = partial(getattr(lax, name), axis_name="i", **{"pbroadcast": {"source": 1}}.get(name, {}))
    x = np.arange(3.0)
    assert hx.vmap(f, axis_name="i", out_axes=None)(x).shape == ((3,) if name == "all_gather" else ())
