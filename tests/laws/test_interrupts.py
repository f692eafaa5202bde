"""An interrupt at any moment leaves the handlers in force, the settings and the sites as they were at the call."""

import contextvars
import sys

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base import wrapping
from handlax.effects.base.stack import STACK
from handlax.experimental import sparse
from handlax.experimental.jet import jet
from handlax.operations import Sin

VARIABLES = wrapping._VARIABLES


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return None


@hx.effect(vmap="once", diff="stop")
class Ask:
    def result_type(op):
        return hx.ArrayType((), np.dtype("float32"))


@hx.effect(vmap="per_lane", diff="stop", default=lambda op, x: 2 * x)
class Twice:
    def result_type(op, x):
        return x


COUNTER = hx.handler({Tick: lambda n, op: (n + 1, None)})
ANSWER = hx.handler({Ask: lambda op: 2.0})
FORTY_TWO = hx.handler({Sin: lambda op, x: x * 0 + 42.0})
TWO_ANSWERS = hx.handler({Ask: hx.ctl(lambda resume, op: resume(1.0) + resume(2.0))})
FIRST = hx.handler({Ask: hx.final(lambda op: 5.0)})


def state():
    run = STACK.get()
    return [variable.get() for variable in VARIABLES], run.cell and run.cell.site


def same(before):
    return all(x is y for x, y in zip(state()[0], before[0])) and state()[1] == before[1]


def guarded(broken, f, *args):
    """``f(*args)`` from code of a user's, which finds after an interrupt what it found before."""
    before = state()
    try:
        return f(*args)
    except KeyboardInterrupt:
        if not same(before):
            broken.append(f"{getattr(f, '__name__', f)} under {before[0][VARIABLES.index(STACK)].label}")
        raise


def ticking(call):
    def f(x):
        call(hx.perform, Tick())
        return call(hnp.sin, x) * x

    return f


def looping(call):
    return lambda x: call(lax.fori_loop, 0, 3, lambda i, c: ticking(call)(c), x)


def asking(call):
    return lambda x: call(lax.cond, x > 0, lambda: call(hx.perform, Ask()) * x, lambda: x)


def hypot(x, y):
    return hnp.sqrt(x * x + y * y)


def in_a_block(call):
    with hx.handle(COUNTER, 0):
        return call(ticking(call), 1.0), call(hx.jit(looping(call)), 1.0)


def named(call):
    def f(x):
        with hx.named_scope("layer"):
            return call(hnp.sin, x)

    return call(hx.jit(f), 1.0)


def with_custom_rules(call):
    @hx.custom_jvp
    def f(x):
        return call(hnp.sin, x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 2))

    @hx.custom_vjp
    def g(x):
        return call(hnp.sin, x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * x,))
    return call(f, 1.0), call(hx.grad(lambda x: f(x) + g(x)), 1.0), call(hx.vmap(g), hnp.ones(2))


def with_a_batch_rule(call):
    @hx.custom_batching.custom_vmap
    def f(x):
        return call(hnp.sin, x)

    f.def_vmap(lambda size, batched, x: (call(hnp.sin, x), True))
    return call(f, 1.0), call(hx.vmap(f), hnp.ones(2))


PROGRAMS = {
    "handle": lambda call: call(hx.handle(COUNTER, 0)(ticking(call)), 1.0),
    "handle a loop": lambda call: call(hx.handle(COUNTER, 0)(looping(call)), 1.0),
    "handle jit": lambda call: call(hx.handle(COUNTER, 0)(hx.jit(looping(call))), 1.0),
    "handle an operation": lambda call: call(hx.handle(FORTY_TWO)(hnp.sin), 1.0),
    "handle ctl": lambda call: call(hx.handle(TWO_ANSWERS)(asking(call)), 1.0),
    "handle final": lambda call: call(hx.handle(FIRST)(asking(call)), 1.0),
    "handle vmap": lambda call: call(hx.handle(COUNTER, 0)(hx.vmap(ticking(call))), hnp.ones(2)),
    "vmap handle": lambda call: call(hx.vmap(hx.handle(COUNTER, 0)(looping(call))), hnp.ones(2)),
    "grad handle": lambda call: call(hx.grad(lambda x: hx.handle(COUNTER, 0)(looping(call))(x)[1]), 1.0),
    "block": in_a_block,
    "default": lambda call: (call(hx.perform, Twice(), 2.0), call(hx.jit(lambda x: hx.perform(Twice(), x)), 2.0)),
    "jit": lambda call: call(hx.jit(lambda x: call(hnp.hypot, x, x)), 1.0),
    "jit in jit": lambda call: call(hx.jit(lambda x: call(hx.jit(lambda y: call(hnp.sin, y)), x)), 1.0),
    "eager": lambda call: [call(hnp.hypot, hnp.ones(3), hnp.ones(3)) for _ in range(3)],
    "scan": lambda call: call(lax.scan, lambda c, x: (c + call(hnp.sin, x), x), 0.0, hnp.ones(3)),
    "linearize": lambda call: call(hx.linearize(lambda x: call(hnp.hypot, x, x), 1.0)[1], 1.0),
    "jvp": lambda call: call(hx.jvp, lambda x: call(hnp.hypot, x, x), (1.0,), (1.0,)),
    "hessian": lambda call: call(hx.hessian(lambda x: call(hnp.sin, x)), 1.0),
    "jet": lambda call: call(jet, lambda x: call(hnp.hypot, x, x), (1.0,), ([1.0, 0.0],)),
    "sparsify": lambda call: call(sparse.sparsify(lambda x: call(hnp.square, x)), sparse.BCOO.fromdense(hnp.eye(2))),
    "custom_vmap": with_a_batch_rule,
    "checkpoint": lambda call: call(hx.grad(hx.checkpoint(lambda x: call(hnp.sin, x))), 1.0),
    "custom rules": with_custom_rules,
    "named scope": named,
    "make_program": lambda call: call(hx.make_program(lambda x: call(hnp.sin, x)), 1.0),
}


def package_of(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


def at_blocks(frame, event, argument):
    """Where a block of a ``with`` begins or ends, or a scoped variable has been set."""
    if event == "call":
        block = frame.f_code.co_name in ("__enter__", "__exit__")
        return block and (package_of(frame) == "handlax" or package_of(frame.f_back) == "handlax")
    return event == "c_return" and any(getattr(argument, "__self__", None) is v for v in VARIABLES)


def at_calls(frame, event, argument):
    """Where any function of the package is entered, or a scoped variable has been set."""
    return (event == "call" and package_of(frame) == "handlax") or at_blocks(frame, event, argument)


def interrupted(program, moments, number):
    """Interrupt a program at moment ``number``: whether there is one, and the calls that it left changed."""
    broken, seen = [], 0

    def profile(frame, event, argument):
        nonlocal seen
        if moments(frame, event, argument):
            if seen == number:
                sys.setprofile(None)
                raise KeyboardInterrupt
            seen += 1

    def run():
        try:
            sys.setprofile(profile)
            program(lambda f, *args: guarded(broken, f, *args))
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)

    contextvars.copy_context().run(run)
    return seen == number, broken


def check(name, moments, step):
    program, number, broken, there = PROGRAMS[name], 0, {}, True
    program(lambda f, *args: f(*args))
    while there:
        there, left = interrupted(program, moments, number)
        if left:
            broken[number] = left
        number += step
    assert number > 1 and not broken


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_a_block_leaves_the_scoped_variables_as_they_were(name):
    check(name, at_blocks, 1)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt in a finalizer
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_any_call_leaves_the_scoped_variables_as_they_were(name):
    check(name, at_calls, 1)
