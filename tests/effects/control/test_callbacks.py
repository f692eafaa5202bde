"""Callbacks as operations: public functions, eager evaluation, transformations, and users' handlers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import debug, errors, lax
from handlax import numpy as hnp
from handlax.debug import DebugCallback, DebugPrint
from handlax.experimental import io_callback

x = hnp.arange(3.0)
SCALAR = hx.ShapeDtypeStruct((), "float32")


# results


def test_a_pure_callback_gives_what_the_function_gives():
    np.testing.assert_array_equal(hx.pure_callback(np.square, x, x), [0, 1, 4])


def test_arguments_and_results_are_trees_and_what_is_no_array_is_passed_on():
    def f(a, mode, *, scale):
        assert mode == "twice"
        assert isinstance(a["v"], hx.Array)
        return {"y": a["v"] * scale[0], "n": 3}

    like = {"y": x, "n": hx.ShapeDtypeStruct((), "int32")}
    y = hx.pure_callback(f, like, {"v": x}, "twice", scale=[2.0])
    np.testing.assert_array_equal(y["y"], [0, 2, 4])
    assert y["n"].dtype == "int32"
    assert int(y["n"]) == 3


def test_keys_are_passed_as_keys():
    key = hx.random.key(3)
    y = hx.jit(lambda k: hx.pure_callback(lambda k: hx.random.key_data(k), hx.random.key_data(key), k))(key)
    np.testing.assert_array_equal(y, hx.random.key_data(key))


def test_results_may_be_keys():
    keys = hx.random.split(hx.random.key(3), 2)
    y = hx.jit(lambda k: hx.pure_callback(lambda k: hx.random.key_data(k), k, k))(keys)
    assert y.dtype == keys.dtype and (hx.random.key_data(y) == hx.random.key_data(keys)).all()


def test_a_result_of_the_same_kind_is_cast_and_any_other_is_refused():
    assert hx.pure_callback(lambda: np.float64(0.1), SCALAR).dtype == "float32"
    with pytest.raises(errors.CallbackError, match=r"must return i32\[\], as declared, returned f64"):
        hx.pure_callback(lambda: np.float64(0.1), hx.ShapeDtypeStruct((), "int32"))
    with pytest.raises(errors.CallbackError, match=r"must return f32\[3\], as declared, returned f32\[2\]"):
        hx.pure_callback(lambda x: x[:2], x, x)
    with pytest.raises(errors.CallbackError, match="must return 1 arrays, returned 2"):
        hx.pure_callback(lambda x: (x, x), x, x)
    for nothing in ("text", object()):
        with pytest.raises(errors.CallbackError, match=r"must return f32\[3\], as declared, returned"):
            hx.pure_callback(lambda x, y: y, x, x, nothing)


def test_an_error_has_the_line_of_the_callback_and_its_cause():
    def fails(x):
        raise KeyError("gone")

    with pytest.raises(errors.CallbackError, match=r"io_callback: .* fails raised KeyError: 'gone'") as caught:
        io_callback(fails, x, x)
    assert isinstance(caught.value.__cause__, KeyError) and isinstance(caught.value, errors.JaxRuntimeError)
    assert "test_callbacks.py" in caught.value.where


def test_a_callback_runs_outside_all_handlers():
    seen = []
    silent = hx.handler({DebugPrint: lambda op, *xs: ()})
    hx.handle(silent)(lambda: io_callback(lambda: seen.append(tuple(hx.handlers())), None))()
    assert seen == [()]


def test_what_is_no_function_or_no_shape_is_refused():
    with pytest.raises(errors.NotAFunction):
        hx.pure_callback(3, x, x)
    for shape in ("f32", type("OfAnotherKind", (), {"shape": ()})()):
        with pytest.raises(errors.BadArgument, match="result_shape_dtypes"):
            io_callback(np.sin, shape, x)
    with pytest.raises(errors.BadArgument, match="vmap_method"):
        hx.pure_callback(np.sin, x, x, vmap_method="vectorized")


# lanes


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), ())] * 3), ("sequential_unrolled", [((), ())] * 3), ("expand_dims", [((3,), (1,))]),
        ("broadcast_all", [((3,), (3,))]), ("legacy_vectorized", [((3,), ())]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_vmap_method_says_how_the_function_meets_lanes(method, shapes, compiled):
    seen = []

    def add(a, b):
        seen.append((a.shape, b.shape))
        return np.add(a, b)

    f = hx.vmap(lambda a, b: hx.pure_callback(add, SCALAR, a, b, vmap_method=method), in_axes=(0, None))
    np.testing.assert_array_equal((hx.jit(f) if compiled else f)(x, 1.0), [1, 2, 3])
    assert seen == shapes


def test_two_vmaps_give_two_leading_axes():
    f = hx.vmap(hx.vmap(lambda a: hx.pure_callback(np.sin, a, a, vmap_method="expand_dims")), in_axes=1)
    m = hnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(f(m), np.sin(m).T, rtol=1e-6)


def test_vmap_without_a_method_is_refused():
    with pytest.raises(errors.CannotCross, match="vmap_method=None"):
        hx.vmap(lambda a: hx.pure_callback(np.sin, a, a))(x)


def test_an_io_callback_is_called_once_in_each_lane():
    seen = []
    y = hx.vmap(lambda a: io_callback(lambda a: (seen.append(float(a)), a * 2)[1], SCALAR, a))(x)
    np.testing.assert_array_equal(y, [0, 2, 4])
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_an_io_callback_of_what_all_lanes_share_is_called_once_for_all_of_them(ordered, compiled):
    calls = []

    def lane(a):
        count = lambda *_: (calls.append(1), np.float32(len(calls)))[1]
        step = lambda c, _: (c + io_callback(count, SCALAR, 2.0, ordered=ordered), io_callback(count, SCALAR))
        return lax.scan(step, a, None, 2)[0]

    f = hx.vmap(lane)
    y = (hx.jit(f) if compiled else f)(x)
    assert len(calls) == 4
    np.testing.assert_array_equal(y - y[0], x)


def test_an_ordered_io_callback_has_no_order_among_lanes_and_is_refused():
    with pytest.raises(errors.CannotCross, match="io_callback"):
        hx.vmap(lambda a: io_callback(np.sin, a, a, ordered=True))(x)
    with pytest.raises(errors.CannotCross, match="io_callback"):
        hx.vmap(lambda a: lax.cond(a > 0, lambda: io_callback(np.sin, a, a, ordered=True), lambda: a))(x)


# derivatives


def test_callbacks_with_results_have_no_derivative():
    for call in (lambda a: hx.pure_callback(np.sin, a, a), lambda a: io_callback(np.sin, a, a)):
        with pytest.raises(errors.NotDifferentiable, match="one of sin is needed"):
            hx.grad(call)(1.0)
    assert hx.grad(lambda a: a * io_callback(np.sin, a, lax.stop_gradient(a)))(1.0) == pytest.approx(np.sin(1.0))


def test_a_pure_callback_has_the_derivative_that_custom_jvp_gives_it():
    @hx.custom_jvp
    def sin(a):
        return hx.pure_callback(np.sin, a, a, vmap_method="expand_dims")

    @sin.defjvp
    def _(primals, tangents):
        (a,), (da,) = primals, tangents
        return sin(a), hx.pure_callback(np.cos, a, a, vmap_method="expand_dims") * da

    np.testing.assert_allclose(hx.jit(hx.vmap(hx.grad(sin)))(x), np.cos(x), rtol=1e-6)


# formats


# as values


def test_equal_prints_make_equal_programs_that_print_and_parse():
    make = lambda: hx.make_program(lambda a: debug.print("a = {}", a))(x)
    p = make()
    assert p == make()
    assert str(p).splitlines()[0] == "program <lambda>(a: f32[3]) -> () ! {DebugPrint[format='a = {}']} {"
    assert hx.Program.parse(str(p)) == p
    assert pickle.loads(pickle.dumps(p)) == p


def test_a_function_that_cannot_be_hashed_is_compared_by_identity():
    class Adder:
        __hash__ = None

        def __call__(self, a):
            return a + 1

    f = Adder()
    make = lambda g: hx.make_program(lambda a: hx.pure_callback(g, a, a))(x)
    np.testing.assert_array_equal(make(f)(x)[0], [1, 2, 3])
    assert make(f) != make(Adder())


def test_a_pure_callback_that_nobody_needs_is_dropped_and_an_effect_is_not():
    p = hx.make_program(lambda a: (hx.pure_callback(np.sin, a, a), io_callback(np.sin, a, a), a)[2])(x)
    q = hx.dead_code_elimination(p).program
    assert [type(op) for op in q.ops] == [hx.IoCallback]


def test_equal_pure_callbacks_are_merged_and_effects_are_not():
    def f(a):
        debug.callback(np.sin, a)
        debug.callback(np.sin, a)
        return hx.pure_callback(np.sin, a, a) + hx.pure_callback(np.sin, a, a)

    kinds = [type(op) for op in hx.common_subexpressions(hx.make_program(f)(x)).ops]
    assert kinds.count(hx.PureCallback) == 1
    assert kinds.count(DebugCallback) == 2
