"""Recorded bodies: how the type of a carry may change."""

import pytest

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.effects.control.recorded_bodies import shared_results
from handlax.sharding import PartitionSpec as P


def test_a_weak_start_takes_the_type_that_the_body_gives():
    assert lax.fori_loop(0, 2, lambda i, c: c + hnp.asarray(0.25, "float16"), 1).dtype == hnp.float16
    assert lax.scan(lambda c, _: (c + 0.5, None), 1, None, 2)[0] == 2.0


def test_a_weak_start_that_the_type_of_the_body_cannot_hold_is_refused():
    with pytest.raises(hx.errors.StateTypeError, match=r"f32\[\]~ at the start and i32\[\] after the body"):
        lax.fori_loop(0, 0, lambda i, c: hnp.asarray(1, "int32"), 0.5)
    with pytest.raises(hx.errors.StateTypeError, match="start from a value of type key"):
        lax.while_loop(lambda c: False, lambda c: random.key(0), 0.5)


def test_a_strong_carry_keeps_its_dtype():
    with pytest.raises(hx.errors.StateTypeError, match=r"i32\[\] at the start and f32\[\]~ after the body"):
        lax.fori_loop(0, 3, lambda i, c: c + 1.5, hnp.asarray(0, "int32"))


def test_branches_of_an_integer_and_a_weak_fraction_are_refused():
    with pytest.raises(hx.errors.StateTypeError, match="same types"):
        lax.cond(True, lambda: hnp.int32(3), lambda: 0.5)
    y = lax.cond(True, lambda: hnp.float32(3), lambda: 2)
    assert y.dtype == "float32" and not y.weak_type


def test_each_body_finds_its_values_among_as_few_results_as_one_body_needs_of_a_type():
    scalar, vector = hx.ArrayType((), "float32"), hx.ArrayType((3,), "float32")
    types, positions = shared_results([[scalar, scalar], [vector, scalar], []])
    assert types == [scalar, scalar, vector]
    assert positions == [(0, 1), (2, 0), ()]


    with pytest.raises(hx.errors.StateTypeError, match="same types"):
        lax.cond(True, lambda: hnp.asarray(1), lambda: hnp.broadcast_to(hnp.asarray(1.0), (2,)))  # both weak


def test_a_weak_carry_that_the_body_promotes_is_strong_from_then_on():
    y = lax.fori_loop(0, 3, lambda i, c: c * 0.5, 1)
    assert y.dtype == "float32" and not y.weak_type


def test_an_error_names_the_place_in_the_carry_alone():
    with pytest.raises(hx.errors.StateTypeError, match=r"f32\[\] after the body at \['a'\]\."):
        lax.scan(lambda c, x: ({"a": c["a"] * x}, None), {"a": hnp.int32(0)}, hnp.ones(2))
    with pytest.raises(hx.errors.StateTypeError, match=r"f32\[\]~ after the body at \['a'\]\."):
        lax.fori_loop(0, 3, lambda i, c: {"a": c["a"] * 1.5}, {"a": hnp.int32(0)})  # the counter is carried, too


def test_a_constant_carry_of_devices_has_the_type_that_the_body_takes():
    mesh = hx.make_mesh((1,), ("i",))
    f = hx.shard_map(
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + x.sum(), 0.0)[None], mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    (device,) = [op.bodies[0] for op in hx.make_program(f)(hnp.ones(2)).ops if op.bodied]
    ((loop, args),) = [(op, args) for op, args in zip(device.ops, device.args) if op.bodied]
    assert tuple([device.type_of(n) for n in args]) == loop.bodies[0].in_types
    assert f(hnp.ones(2)).tolist() == [6.0]


def looped(step, w, xs):
    return lax.scan(lambda c, x: (c + step(w, x), None), 0.0, xs)[0]


ITERATED = {
    "shared": lambda w, xs: looped(lambda w, x: hnp.sin(w * x).sum(), w, xs),
    "shared, by another dtype": lambda w, xs: looped(lambda w, x: (w.astype("float64") * x).sum(), w, xs),
    "shared, with a penalty": lambda w, xs: looped(lambda w, x: (w * x).sum() * (w**2).sum(), w, xs),
    "slices": lambda w, xs: lax.scan(lambda c, wx: (hnp.sin(c + (wx[0] * wx[1]).sum()), None), 0.0,
                                     (hnp.stack([w] * len(xs)), xs))[0],
    "in a loop of loops": lambda w, xs: lax.scan(
        lambda c, x: (c + looped(lambda w, y: (w * x * y).sum(), w, xs), None), 0.0, xs)[0],
    "in a checkpoint": lambda w, xs: looped(hx.checkpoint(lambda w, x: hnp.sin(w * x).sum()), w, xs),
    "backwards by a counter": lambda w, xs: lax.fori_loop(0, len(xs), lambda i, c: c + (w * xs[i]).sum(), 0.0),
}


def gradient_over(f, length):
    """The gradient of the mean of ``f`` over two devices, each of which has other rows, and how many messages it sends.
    """
    mesh, w, xs = hx.make_mesh((2,), ("i",)), hnp.arange(3.0), hnp.arange(6.0 * length).reshape(length, 6) / 10
    inside = lambda w, xs: hx.grad(lambda w: lax.pmean(f(w, xs), "i"))(w)
    over = hx.shard_map(inside, mesh=mesh, in_specs=(P(), P(None, "i")), out_specs=P())
    halves = [hx.grad(f)(w, part) for part in hnp.split(xs, 2, axis=1)]
    return hx.jit(over)(w, xs), (halves[0] + halves[1]) / 2, hx.costs(over)(w, xs).links["i"].number


@pytest.mark.parametrize("f", ITERATED.values(), ids=ITERATED)
def test_gradients_by_what_iterations_share_are_summed_over_devices_once(f):
    found, expected, messages = gradient_over(f, 3)
    assert hnp.allclose(found, expected, rtol=1e-5)
    assert messages == gradient_over(f, 5)[2] == 2  # the mean and the gradient


STAYING = {
    "equal on all devices": (lambda w, x: lax.psum((w * x).sum(), "i") + w.sum(), 2.0, 3.0),
    "an operand of a collective": (lambda w, x: (w * x).sum() + lax.psum(w, "i").sum(), 1.0, 6.0),
}


@pytest.mark.parametrize(("step", "slope", "own"), STAYING.values(), ids=STAYING)
def test_what_must_be_equal_on_all_devices_is_not_made_to_vary(step, slope, own):
    """The derivative of the mean by ``w`` is ``slope`` times the mean of the rows, added up, plus ``own``."""
    f = lambda w, xs: lax.pmean(looped(step, w, xs), "i")
    mesh, w, xs = hx.make_mesh((2,), ("i",)), hnp.arange(3.0), hnp.arange(18.0).reshape(3, 6)
    found = hx.shard_map(hx.grad(f), mesh=mesh, in_specs=(P(), P(None, "i")), out_specs=P())(w, xs)
    assert found.tolist() == (slope * (xs[:, :3] + xs[:, 3:]).sum(0) / 2 + own).tolist()
