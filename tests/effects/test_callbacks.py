"""Callbacks as operations: their surface, what they mean eagerly and under transformations, and handlers of users."""

from __future__ import annotations

import logging
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


def printed(capsys):
    return capsys.readouterr().out.splitlines()


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


def test_a_result_of_the_same_kind_is_cast_and_any_other_is_refused():
    assert hx.pure_callback(lambda: np.float64(0.1), SCALAR).dtype == "float32"
    with pytest.raises(errors.CallbackError, match=r"must give i32\[\], as promised, gave f64"):
        hx.pure_callback(lambda: np.float64(0.1), hx.ShapeDtypeStruct((), "int32"))
    with pytest.raises(errors.CallbackError, match=r"must give f32\[3\], as promised, gave f32\[2\]"):
        hx.pure_callback(lambda x: x[:2], x, x)
    with pytest.raises(errors.CallbackError, match="must give 1 arrays, gave 2"):
        hx.pure_callback(lambda x: (x, x), x, x)
    for nothing in ("text", object()):
        with pytest.raises(errors.CallbackError, match=r"must give f32\[3\], as promised, gave"):
            hx.pure_callback(lambda x, y: y, x, x, nothing)


def test_an_error_has_the_line_of_the_callback_and_its_cause():
    def fails(x):
        raise KeyError("gone")

    with pytest.raises(errors.CallbackError, match=r"io_callback: .* fails raised KeyError: 'gone'") as caught:
        io_callback(fails, x, x)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "test_callbacks.py" in caught.value.where


def test_a_callback_runs_outside_all_handlers():
    seen = []
    silent = hx.handler({DebugPrint: lambda op, *xs: ()})
    hx.handle(silent)(lambda: io_callback(lambda: seen.append(tuple(hx.handlers())), None))()
    assert seen == [()]


def test_what_is_no_function_or_no_shape_is_refused():
    with pytest.raises(errors.NotAFunction):
        hx.pure_callback(3, x, x)
    with pytest.raises(errors.BadArgument, match="result_shape_dtypes"):
        io_callback(np.sin, "f32", x)
    with pytest.raises(errors.BadArgument, match="vmap_method"):
        hx.pure_callback(np.sin, x, x, vmap_method="vectorized")


# lanes


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), ())] * 3), ("sequential_unrolled", [((), ())] * 3), ("expand_dims", [((3,), (1,))]),
        ("broadcast_all", [((3,), (3,))]), ("legacy_vectorized", [((3,), ())]),
    ],
)  # fmt: skip
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
    seen.clear()
    y = hx.vmap(lambda a: io_callback(lambda: (seen.append(1), np.float32(len(seen)))[1], SCALAR))(x)
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_an_ordered_io_callback_has_no_order_among_lanes_and_is_refused():
    with pytest.raises(errors.CannotCross, match="io_callback"):
        hx.vmap(lambda a: io_callback(np.sin, a, a, ordered=True))(x)
    with pytest.raises(errors.CannotCross, match="io_callback"):
        hx.vmap(lambda a: lax.cond(a > 0, lambda: io_callback(np.sin, a, a, ordered=True), lambda: a))(x)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_look_is_once_for_each_lane_and_once_where_all_are_the_same(capsys, ordered):
    hx.vmap(lambda a: debug.print("{}", a, ordered=ordered))(x)
    assert printed(capsys) == ["0.0", "1.0", "2.0"]
    hx.vmap(lambda a: debug.print("{}", 7, ordered=ordered))(x)
    assert printed(capsys) == ["7"]


def test_only_the_lanes_that_take_a_branch_print(capsys):
    def f(a):
        return lax.cond(a > 0, lambda: (debug.print("{}", a), a)[1], lambda: -a)

    np.testing.assert_array_equal(hx.vmap(f)(x), [0, 1, 2])
    assert printed(capsys) == ["1.0", "2.0"]


# derivatives


def test_callbacks_with_results_have_no_derivative():
    for call in (lambda a: hx.pure_callback(np.sin, a, a), lambda a: io_callback(np.sin, a, a)):
        with pytest.raises(errors.NotDifferentiable, match="sin is asked for one"):
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


def test_a_derivative_looks_once_at_the_primal(capsys):
    def f(a):
        debug.print("{}", a)
        return a * a

    assert hx.grad(f)(3.0) == 6.0
    assert printed(capsys) == ["3.0"]
    hx.hessian(f)(3.0)
    assert printed(capsys) == ["3.0"]
    hx.grad(hx.checkpoint(f))(3.0)
    assert printed(capsys) == ["3.0"]


# formats


def test_a_format_is_that_of_python(capsys):
    debug.print("{} {y:.2f} {a.shape} {a[1]} {{}} {s!r}", x, y=1.0, a=x, s="text")
    assert printed(capsys) == ["[0. 1. 2.] 1.00 (3,) 1.0 {} 'text'"]


def test_options_may_come_first(capsys):
    debug.print(ordered=True)("{x}", x=1)
    debug.callback(ordered=True)(print, 2)
    assert printed(capsys) == ["1", "2"]
    with pytest.raises(errors.BadArgument, match="options alone"):
        debug.print(order=True)("{x}", x=1)


@pytest.mark.parametrize(
    ("fmt", "args"),
    [("{}", (1, 2)), ("{} {}", (1,)), ("{x}", (1,)), ("{", ()), ("{!q}", (1,)), ("{} {0[0]}", (1,))],
)
def test_a_format_that_does_not_fit_is_refused_while_tracing(fmt, args):
    with pytest.raises(errors.BadArgument, match="a place for each argument"):
        hx.make_program(lambda: debug.print(fmt, *args))()


def test_a_format_that_is_not_checked_may_leave_arguments_out(capsys):
    debug.print("all", 1, skip_format_check=True)
    assert printed(capsys) == ["all"]


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_are_printed_as_numpy_prints_them_where_the_program_is_traced(capsys, compiled):
    f = lambda a: debug.print("{}", a)
    with np.printoptions(precision=2):
        (hx.jit(f) if compiled else f)(x / 3)
    hx.effects_barrier()
    assert printed(capsys) == ["[0.   0.33 0.67]"]


def test_a_log_goes_to_the_logger(caplog):
    with caplog.at_level(logging.INFO, "handlax"):
        debug.log("x = {}", 3)
    assert caplog.messages == ["x = 3"]


# as values


def test_a_handler_may_answer_a_look_before_anybody_else(capsys):
    def f(a):
        def step(c, v):
            debug.print("c = {}", c, ordered=True)
            return c + v, None

        return lax.scan(step, 0.0, a)[0]

    silent = hx.handler({DebugPrint: lambda op, *xs: ()})
    assert hx.jit(hx.handle(silent)(f))(x) == 3.0
    log = hx.handler({DebugPrint: lambda log, op, c: ((*log, c), ())}, moves=hx.append)
    (seen,), total = hx.handle(log, ())(f)(x)
    np.testing.assert_array_equal(seen, [0, 0, 1])
    assert total == 3.0
    assert printed(capsys) == []


def test_a_handler_has_the_text_of_what_would_be_printed():
    texts = []
    keep = hx.handler({DebugPrint: lambda op, *xs: texts.append(op.text(*xs)) or ()})
    hx.handle(keep)(lambda: debug.print("{} {k}", 1, k="z"))()
    assert texts == ["1 z"]


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
