"""What sharding constraints do to types: they state cuts along explicit axes, or hide them."""

import numpy as np
import pytest

import handlax as hx
from handlax import P
from handlax.effects.operations.foundations.sharding_constraint import ShardingConstraint, cut_of, hide, reveal, states
from handlax.effects.sharding.named_sharding import NamedSharding

MESH = hx.make_mesh((2, 4), ("a", "b"), devices=hx.devices("cpu"))
AUTO = MESH.update(axis_types=(hx.sharding.AxisType.Auto,) * 2)


def cut(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


def arr(*spec):
    return hx.device_put(np.arange(32, dtype="float32").reshape(8, 4), cut(*spec))


def test_a_constraint_states_the_cut_along_explicit_axes_alone():
    t = arr().type
    assert str(ShardingConstraint(cut("a", "b")).result_type(t)) == "f32[8@a,4@b]"
    assert ShardingConstraint(cut("a", "b", mesh=AUTO)).result_type(t) is t
    assert ShardingConstraint(cut()).result_type(arr("a").type) is t


def test_hidden_values_are_the_same_values_in_the_same_place():
    x = arr("a", "b")
    y = hide(x)
    assert str(y.type) == "f32[8@?,4@?]" and y.buffer is x.buffer
    assert hide(None) is None and hide(arr()).type.cut is None
    stated, hidden, whole = map(cut_of, (x, y, arr()))
    assert states([stated, whole]) and not states([hidden]) and not states([stated, hidden]) and not states([whole])


@pytest.mark.parametrize("operation", [lambda x: hx.numpy.sort(x, 0), lambda x: x.sum(0), lambda x: x.reshape(16, 2)])
def test_what_is_computed_of_hidden_values_is_hidden(operation):
    y = hx.jit(lambda x: operation(hide(x)))(arr("a", "b"))
    assert y.type.cut.hides
    np.testing.assert_array_equal(y, operation(arr()))


def test_a_value_is_revealed_and_its_cotangent_is_cut_as_it_was():
    x = arr("a")
    y = reveal(hide(x), cut("b").cut(2))
    assert str(y.type) == "f32[8@b,4]" and y.sharding.spec == P("b", None)
    ct = hx.grad(lambda x: (reveal(hide(x), cut("b").cut(2)) ** 2).sum())(x)
    assert str(ct.type) == "f32[8@a,4]" and ct.sharding.spec == P("a", None)
    np.testing.assert_array_equal(ct, 2 * np.asarray(x))
    assert reveal(x, x.type.cut) is x
