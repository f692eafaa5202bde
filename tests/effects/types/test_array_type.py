"""Types of arrays: interned, so that equal ones are one object, and what they are made from."""

import copy
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.types.array_type import array_type

f32 = np.dtype("float32")


def test_types_take_scalar_types_and_names():
    assert array_type((), hnp.float32) is array_type((), "float32") is array_type((), np.dtype("float32"))


def test_a_type_survives_pickle_and_copy_as_the_same_object():
    for t in (array_type((2, 0), f32), array_type((), f32, True)):
        assert pickle.loads(pickle.dumps(t)) is t is copy.deepcopy(t)


def test_shape_dtype_and_weakness_tell_types_apart():
    kinds = [array_type((), f32), array_type((1,), f32), array_type((), f32, True), array_type((), "int32")]
    assert len(set(kinds)) == 4 and [str(t) for t in kinds] == ["f32[]", "f32[1]", "f32[]~", "i32[]"]
    assert [t.str_short() for t in kinds] == [str(t) for t in kinds]
    assert kinds[0].update(weak=True) is kinds[2] and kinds[1].update(shape=()) is kinds[0]


def test_what_an_update_does_not_name_stays():
    t = array_type((2,), f32, True).along(frozenset([("i", 2)]))
    assert t.update() is t
    for other in (t.update(shape=(3,)), t.update(dtype="int32"), t.update(weak=False)):
        assert other.varying == t.varying and other is not t


def test_a_type_cannot_be_changed():
    with pytest.raises(errors.Immutable):
        array_type((), f32).shape = (3,)


def test_effect_whose_answer_names_a_scalar_type_crosses_jit():
    @hx.effect(vmap="once")
    class Temperature:
        def result_type(op):
            return array_type((), hnp.float32)

    warm = hx.handler({Temperature: lambda op: hnp.float32(2.0)})
    softened = hx.jit(lambda x: x / hx.perform(Temperature()))
    assert hx.handle(warm)(softened)(1.0) == 0.5
    assert hx.handle(warm)(hx.grad(softened))(1.0) == 0.5


def test_a_type_states_how_dimensions_are_cut_along_explicit_axes():
    whole = hx.typeof(hnp.ones((2, 3))).sharding
    assert whole.spec == hx.P(None, None) and whole.mesh.empty
    mesh = hx.sharding.AbstractMesh((2,), ("rows",))
    with hx.sharding.use_abstract_mesh(mesh):
        assert hx.typeof(1.0).sharding == hx.NamedSharding(mesh, hx.P())
    assert hx.core.ShapedArray((2, 3), "float32", sharding=whole) is array_type((2, 3), f32)
    cut = hx.core.ShapedArray((2, 3), "float32", sharding=hx.NamedSharding(mesh, hx.P("rows")))
    assert str(cut) == "f32[2@rows,3]" and cut.sharding.spec == hx.P("rows", None) and cut.strong() is cut
    assert cut.update(dtype=np.dtype("int32")).cut == cut.cut and cut.update(shape=(4,)).cut is None
    assert cut.update(shape=(4, 4, 4), sharding=cut.sharding).shape == (4, 4, 4)
    assert str(cut.with_dimension(0, 5)) == "f32[5,2@rows,3]" and cut.without_dimension(0) is array_type((3,), f32)
    assert cut.cut_by(None) is array_type((2, 3), f32) and array_type((2, 3), f32, cut=cut.cut) is cut
