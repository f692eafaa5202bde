"""``handlax.interop.jax``: a name says nothing of what an operation means; rules and settings in force are kept."""

import numpy as np
import pytest
from beside_jax.test_interop import X, same

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.programs.primitives import primitive_names
from handlax.errors import EscapedBox, NotAnArray, NotProvided, UnhandledEffect
from handlax.extend import mlir
from handlax.extend.core import Primitive
from handlax.interop.jax import from_jax, to_jax
from handlax.interop.jax_modules import is_of_jax, jax_primitives
from handlax.interop.jaxpr_reader import READERS
from handlax.interop.jaxpr_writer import WRITERS

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")
jex = pytest.importorskip("jax.extend.core")

NAMES = sorted({*jax_primitives(), *READERS, *WRITERS, *primitive_names()})


def plus_100(called):
    """An operation of the user's, x + 100, that has this name."""
    return hx.operation(type("Plus100", (), {
        "__module__": __name__, "name": called, "result_type": lambda op, x: x, "evaluate": lambda op, x: x + 100,
        "lower": lambda op, emit, x: emit.decompose(lambda x: [x + 100.0], x)[0], "jvp": hx.columns.linear,
        "transpose": lambda op, ct, x: ct}))


def their_plus_100(called):
    """The same as a primitive of JAX's that a library makes."""
    p = jex.Primitive(called)
    p.def_impl(lambda x: x + 100.0)
    p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    return p


def test_an_operation_of_a_user_means_the_same_in_jax_whatever_its_name():
    for name in NAMES:
        kind = plus_100(name)
        jaxpr = jax.make_jaxpr(to_jax(lambda x: hx.perform(kind(), x)))(X)
        assert [eqn.primitive.name for eqn in jaxpr.eqns] == [f"handlax.{name}"]
    for name in ("neg", "copy", "mul", "sort", "clamp", "debug_callback", "erf_inv"):
        kind = plus_100(name)
        f = lambda x: hx.perform(kind(), x)
        same(to_jax(f)(X), X + 100)
        same(from_jax(to_jax(f))(X), X + 100)
        assert kind in [type(op) for op in hx.make_program(from_jax(to_jax(f)))(X).ops]


def test_a_primitive_of_a_user_means_the_same_in_jax_whatever_its_name():
    for name in ("exp", "copy", "squeeze"):
        p = Primitive(name)
        p.def_impl(lambda x: x + 100.0)
        p.def_abstract_eval(lambda x: x)
        mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 100.0, multiple_results=False))
        same(to_jax(lambda x: p.bind(x))(X), X + 100)


def test_an_effect_of_a_user_is_refused_whatever_its_name():
    for called in NAMES:
        kind = hx.effect(vmap="per_lane")(type("Mine", (), {
            "__module__": __name__, "name": called, "result_type": lambda op, x: None}))
        with pytest.raises(UnhandledEffect, match=f"to_jax: every effect must be handled, got {called} at"):
            to_jax(lambda x: (hx.perform(kind(), x), x)[1])(X)


def test_a_primitive_of_another_library_is_refused_whatever_its_name():
    for name in ("logistic", "sin", "copy", "scan", "squeeze", "softmax", "cube", "custom_jvp_call", "debug_callback"):
        p = their_plus_100(name)
        with pytest.raises(NotProvided, match=f"from_jax: an operation of JAX's own is needed, got another {name} "):
            from_jax(lambda x: p.bind(x))(X)


def test_the_primitives_that_jax_binds_are_its_own():
    assert all(map(is_of_jax, jax_primitives().values()))
    assert not is_of_jax(their_plus_100("sin"))


def test_a_policy_is_asked_about_its_own_library_s_primitives_alone():
    saved = []
    policy = lambda primitive, *types, **params: saved.append(primitive.name) or True
    kind = plus_100("sin")
    f = to_jax(hx.checkpoint(lambda x: hx.perform(kind(), hnp.cos(x)).sum(), policy=policy))
    jax.grad(f)(X)
    assert "sin" not in saved[: saved.index("cos")]


# Rules


def five(op, primals, tangents):
    return hx.perform(op, *primals), 5.0 * tangents[0]


def test_a_rule_that_is_replaced_holds_in_jax_within_its_scope_alone():
    f = to_jax(lambda x: hnp.tanh(x).sum())
    slope = 1 - np.tanh(X) ** 2
    same(jax.grad(f)(X), slope)
    with hx.rules(jvp={hx.operations.Tanh: five}):
        same(jax.grad(f)(X), np.full_like(X, 5.0))
        same(jax.jit(jax.grad(lambda x: f(x)))(X), np.full_like(X, 5.0))
        same(jax.grad(lambda x: jax.grad(f)(x).sum())(X), np.zeros_like(X))
        same(f(X), np.tanh(X).sum())
    same(jax.grad(f)(X), slope)
    same(jax.jit(jax.grad(lambda x: f(x)))(X), slope)


def plus(number):
    return lambda op, emit, x: emit.decompose(lambda x: [x + number], x)[0]


@pytest.mark.parametrize("outside_first", [True, False])
def test_a_lowering_that_is_replaced_is_not_found_in_another_scope(outside_first):
    kind = plus_100(f"shifted{outside_first}")
    f = to_jax(lambda x: hx.perform(kind(), x))
    outside = lambda: (f(X), jax.jit(lambda x: f(x))(X), jax.vmap(f)(X), X + 100)

    def inside():
        with hx.rules(lower={kind: plus(7.0)}, batch={kind: lambda op, dims, x: (hx.perform(op, x), dims[0])}):
            return f(X), jax.jit(lambda x: f(x))(X), jax.vmap(f)(X), X + 7

    hx.columns.BATCH.rule(kind)(lambda op, dims, x: (hx.perform(op, x), dims[0]))
    for results in (outside(), inside(), outside()) if outside_first else (inside(), outside(), inside()):
        *found, expected = results
        for y in found:
            same(y, expected)


def test_a_pullback_that_is_called_outside_of_the_scope_has_its_rules():
    with hx.rules(jvp={hx.operations.Tanh: five}):
        _, pull = jax.vjp(to_jax(hnp.tanh), X)
    same(pull(np.ones_like(X))[0], np.full_like(X, 5.0))


def test_a_rule_that_is_replaced_for_a_call_of_the_host_is_refused():
    f = to_jax(lambda x: (hx.debug.print("{}", x), x)[1])
    refused = pytest.raises(NotProvided, match=r"hx.rules may replace rules of pure operations, debug_print at")
    with hx.rules(lower={hx.Operation: plus(0.0)}), refused:
        f(X)


# Settings of JAX's


def test_bits_that_depend_on_other_elements_are_refused():
    key = jax.random.key(0)
    draws = {
        "bits": lambda k: jax.random.bits(k, (3,)), "normal": lambda k: jax.random.normal(k, (3,)),
        "split": lambda k: jax.random.key_data(jax.random.split(k, 3)), "gamma": lambda k: jax.random.gamma(k, 2.0),
    }
    for f in draws.values():
        program, ours = jax.make_jaxpr(f)(key), from_jax(f)
        expected = f(key)
        for convert in (lambda: ours(key), lambda: from_jax(program)(key)[0]):
            same(convert(), expected)
            with jax.threefry_partitionable(False), pytest.raises(NotProvided, match="jax_threefry_partitionable must"):
                convert()
            same(convert(), expected)
    with jax.threefry_partitionable(False):
        assert from_jax(lambda k: jax.random.fold_in(k, 3))(key) is not None
        for f in (lambda k: hx.random.normal(k, (3,)), lambda k: hx.random.key_data(hx.random.split(k, 3))):
            same(to_jax(f)(key), f(hx.random.key(0)))
            same(jax.jit(to_jax(f))(key), f(hx.random.key(0)))


# Lanes


def host_calls(log):
    """Functions of a number that call the host, and write down what it gets."""
    seen = lambda x: hx.debug.callback(lambda v: log.append(float(v)), x)
    number = hx.ShapeDtypeStruct((), "float32")
    return {
        "callback": lambda x: (seen(x), x)[1],
        "io_callback": lambda x: hx.experimental.io_callback(
            lambda v: (log.append(float(v)), np.float32(v))[1], number, x),
        "cond": lambda x: lax.cond(x > 0, lambda: (seen(x), x)[1], lambda: x),
        "while": lambda x: lax.while_loop(lambda c: c < 1, lambda c: (seen(c), c + 1.0)[1], x),
        "scan": lambda x: lax.scan(lambda c, _: ((seen(c), c + 1.0)[1], None), x, None, length=2)[0],
    }


@pytest.mark.parametrize("name", list(host_calls([])))
def test_a_call_of_the_host_in_lanes_is_one_for_each_lane(name):
    log = []
    f, xs = host_calls(log)[name], X[0]

    def told(g, *args):
        y = np.asarray(g(*args))
        hx.effects_barrier(), jax.effects_barrier()
        seen = sorted(log)
        log.clear()
        return y.tolist(), seen

    assert told(to_jax(hx.vmap(f)), xs) == told(hx.vmap(f), xs)
    assert told(jax.jit(to_jax(hx.vmap(hx.vmap(f)))), X) == told(hx.vmap(hx.vmap(f)), X)


# Values from outside, and messages


def test_a_key_of_handlax_is_no_part_of_what_handlax_traces():
    key = hx.random.key(0)
    f = to_jax(lambda x: x + hx.random.normal(key))
    expected = 1 + float(hx.random.normal(key))
    same(hx.jit(lambda y: y * np.asarray(f(np.float32(1.0))))(1.0), np.float32(expected))
    counter = hx.handler(otherwise=lambda n, op, *xs: (n + 1, hx.perform(op, *xs)), over=hx.is_pure)
    count, y = hx.handle(counter, 0)(lambda: f(np.float32(1.0)))()
    assert count == 0
    same(y, np.float32(expected))


def test_an_array_of_handlax_that_a_function_of_jax_closes_over_is_to_be_an_argument():
    weights = hnp.ones(3)
    for f in (lambda x: x * weights, lambda x: weights * x):
        with pytest.raises(EscapedBox, match=r"JAX traces is no operand of handlax(.|\n)*arguments of from_jax"):
            from_jax(f)(X)


def test_messages_name_the_function_of_the_user():
    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"test_interop_names.py(.|\n)*the argument x\."):
        from_jax(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"test_interop_names.py(.|\n)*leaves\[1\]"):
        from_jax(lambda x: -x["a"] if x["b"] > 0 else x)({"a": 1.0, "b": 1.0})
    with pytest.raises(NotAnArray, match=r"<lambda>: results must be arrays.*, got str for the result\['a'\]\[1\]"):
        to_jax(lambda x: {"a": (x, "b")})(X)
