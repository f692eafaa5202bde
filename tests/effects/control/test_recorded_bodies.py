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
