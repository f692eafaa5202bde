"""An interrupt at any moment leaves the library whole, also for the user's function within which it comes."""

from contextvars import copy_context

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.experimental import sparse
from handlax.experimental.jet import jet
from handlax.operations import Sin
from handlax.testing.faults import IN_FORCE, Before, interrupts


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


def guarded(broken, f, *args):
    """``f(*args)`` from code of a user's, which finds after an interrupt what it found before."""
    before = Before(*IN_FORCE)
    try:
        return f(*args)
    except KeyboardInterrupt:
        if changes := before.changes():
            broken.append(f"{getattr(f, '__name__', f)}: {', '.join(changes)}")
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
    "jet": lambda call: call(jet, lambda x: call(hnp.square, x), (1.0,), ([1.0, 0.0],)),
    "sparsify": lambda call: call(sparse.sparsify(lambda x: call(hnp.square, x)), sparse.BCOO.fromdense(hnp.eye(2))),
    "custom_vmap": with_a_batch_rule,
    "checkpoint": lambda call: call(hx.grad(hx.checkpoint(lambda x: call(hnp.sin, x))), 1.0),
    "custom rules": with_custom_rules,
    "named scope": named,
    "make_program": lambda call: call(hx.make_program(lambda x: call(hnp.sin, x)), 1.0),
}


def check(name, at, every=1):
    program, broken, count = PROGRAMS[name], [], 0
    guard = lambda f, *args: guarded(broken, f, *args)
    f = lambda: copy_context().run(program, guard)  # a block of the test's own may be open
    for fault in interrupts(f, at=at, every=every):
        assert not broken, fault
        count += 1
    assert count


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_a_block_leaves_the_library_whole(name):
    check(name, "blocks", every=20)  # the others are among the calls of the sweep


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt in a finalizer
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_any_call_leaves_the_library_whole(name):
    check(name, "calls")
