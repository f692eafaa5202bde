"""make_program and what is made of it: programs, their types, their effects, and closures as functions."""

import copy
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp


def test_types_alone_make_a_program():
    f = lambda x, *, y: {"a": x @ y, "b": x.sum()}
    x, y = np.ones((2, 3), "float32"), np.ones((3, 4), "float32")
    program, shapes = hx.make_program(f, return_shape=True)(hx.ShapeDtypeStruct((2, 3), "float32"), y=y)
    assert program == hx.make_program(f)(x, y=y)
    assert {k: (v.shape, v.dtype) for k, v in shapes.items()} == {"a": ((2, 4), "float32"), "b": ((), "float32")}


def test_static_arguments_are_python_values():
    power = hx.make_program(lambda n, x: x if n == 0 else x * x, static_argnums=0)
    assert len(power(0, 2.0)) == 0 and len(power(1, 2.0)) == 1


def test_the_row_is_what_is_performed_unhandled():
    @hx.effect(vmap="per_lane")
    class Ping:
        def result_type(op):
            return None

    def f(x):
        hx.jit(lambda: hx.perform(Ping()))()
        return x

    assert [kind.name for kind in hx.effects_of(f)(1.0)] == ["ping"]
    assert not hx.effects_of(hx.handle(hx.handler({Ping: lambda op: None}))(f))(1.0)


def test_a_closure_is_a_function_of_what_it_captured():
    def outer(y):
        g, consts = hx.closure_convert(lambda x: hnp.sin(x) * y, 1.0)
        assert len(consts) == 1
        return g(2.0, *consts) + g(2.0, 3.0)

    assert float(hx.grad(outer)(5.0)) == pytest.approx(np.sin(2.0), rel=1e-6)
    converted, consts = hx.closure_convert(lambda x: x * 5.0, 1.0)
    assert consts == [] and float(converted(2.0)) == 10.0


def test_a_scope_is_named_among_the_handlers_in_force():
    @hx.named_call
    def layer(x):
        return hnp.ones(2) + hnp.ones(3)

    with pytest.raises(errors.ShapeMismatch, match="under layer"):
        layer(1.0)


def test_a_shape_and_dtype_is_taken_from_a_traced_value():
    for around in (hx.jit, hx.grad, lambda f: lambda x: hx.vmap(f)(hnp.stack([x]))):
        seen = []
        around(lambda x: seen.append(hx.ShapeDtypeStruct.like(x)) or x)(hnp.float32(2.0))
        assert seen == [hx.ShapeDtypeStruct((), "float32")]


def test_a_traced_value_has_the_sharding_that_its_type_states():
    mesh = hx.make_mesh((2,), ("rows",), devices=hx.devices("cpu")[:2])
    x, seen = hx.device_put(np.ones(4, "float32"), hx.NamedSharding(mesh, hx.P("rows"))), []
    hx.make_program(lambda x: seen.append(hx.ShapeDtypeStruct.like(x)) or x)(x)
    assert seen[0].sharding.spec == hx.P("rows") and str(seen[0].type) == "f32[4@rows]"


def test_a_shape_and_dtype_is_taken_from_what_has_them():
    Struct = hx.ShapeDtypeStruct
    s = Struct((2, 3), "float32")
    assert Struct.like(np.ones((2, 3), "float32")) == s == s.like(s) and hash(Struct.like(s)) == hash(s)
    assert repr(Struct.like(1.0)) == "ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)"
    assert Struct.like(1.0) != Struct((), "float32") != Struct((), "int32")
    assert s.update(shape=(5,)) == Struct((5,), "float32") and s.update(dtype=int, weak_type=True).dtype == "int32"
    assert len(s) == 2 and s.size == 6
    for wrong, error in [
        (lambda: len(Struct((), "float32")), TypeError),
        (lambda: Struct((2,), None), ValueError),
        (lambda: hx.make_program(hnp.sin)(Struct((), "S8")), TypeError),
    ]:
        with pytest.raises(error):
            wrong()
    assert Struct((), "S8").dtype == np.dtype("S8") and Struct((), object).dtype == object


def test_a_shape_and_dtype_stands_for_an_array_where_only_its_type_counts():
    s = hx.ShapeDtypeStruct((2,), "complex64")
    assert hnp.iscomplexobj(s) and not hnp.isrealobj(s)
    assert hnp.zeros_like(s).tolist() == [0, 0] and hnp.full_like(s, 2).dtype == "complex64"
    assert hnp.shape(s) == (2,) and hnp.ndim(s) == 1 and hnp.result_type(s) == "complex64"
    assert hx.eval_shape(lambda x: {"a": s, "b": x}, 1.0) == {"a": s, "b": hx.ShapeDtypeStruct.like(1.0)}


def test_a_converted_closure_takes_its_arguments_and_constants():
    _, pull = hx.vjp(lambda x, z: z * x, 2.0, 3.0)
    converted, constants = hx.closure_convert(pull, 1.0)
    assert converted(1.0, *constants) == (3.0, 2.0)
    with pytest.raises(errors.TreeMismatch, match="constants"):
        converted(1.0, [*constants])
    with pytest.raises(TypeError, match="constants"):
        converted((1.0,), *constants)


@pytest.mark.parametrize(("shape", "message"), [
    ((-3,), "sizes must not be negative, got \\(-3,\\)"), (3, "a shape is a sequence of integers, got 3"),
    ((2.5,), "a size must be an integer, got 2.5"), ((None,), "a size must be an integer, got None"),
])
def test_a_struct_has_a_shape_that_arrays_can_have(shape, message):
    with pytest.raises(errors.BadArgument, match=f"ShapeDtypeStruct: {message}"):
        hx.ShapeDtypeStruct(shape, "float32")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("struct", [
    hx.ShapeDtypeStruct((2,), "float32"), hx.ShapeDtypeStruct.like(1.0), hx.eval_shape(lambda: hx.random.key(0)),
])
def test_a_struct_is_copied_and_pickled(struct, duplicate):
    assert duplicate(struct) == struct
    with pytest.raises(hx.errors.Immutable):
        duplicate(struct).shape = ()


@pytest.mark.parametrize("x", [np.float64(0.1), np.int64(3), np.bool_(True), np.complex64(1j), 0.1, np.array(0.1)])
def test_numbers_have_the_types_that_compiled_functions_give_them(x):
    assert hx.make_program(lambda x: x)(x).in_types == (hx.jit(lambda x: x)(x).type,)
