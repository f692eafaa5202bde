"""What a function closes over is released with the function: no cache keeps it alive."""

import gc
import time
import weakref

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

FUNCTIONS, ELEMENTS = 5, 1 << 18  # of float32: a mebibyte


@pytest.fixture(scope="module", autouse=True)
def without_what_is_alive_before():
    """The garbage collector does not pass over what other tests have left, seconds each time."""
    gc.collect()
    gc.freeze()


@hx.effect
class Tick:
    def result_type(op):
        return None


counter = hx.handler({Tick: lambda n, op: (n + 1, None)})


def scanned(f, x):
    return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum()


def ticking(f, x):
    return lax.scan(lambda c, _: (f(c), hx.perform(Tick())), x, None, length=2)[0].sum()


USES = {
    "make_program": lambda f, x: hx.make_program(f)(x),
    "grad": lambda f, x: hx.grad(lambda x: f(x).sum())(x),
    "grad of a scan": lambda f, x: hx.grad(lambda x: scanned(f, x))(x),
    "vmap": lambda f, x: hx.vmap(f)(x[None]),
    "vmap of a scan": lambda f, x: hx.vmap(lambda x: scanned(f, x))(x[None]),
    "handle": lambda f, x: hx.handle(counter, 0)(f)(x),
    "handle of a scan": lambda f, x: hx.handle(counter, 0)(lambda x: ticking(f, x))(x),
    "clause": lambda f, x: hx.handle(hx.handler({Tick: lambda n, op: (n + f(x).sum(), None)}), 0.0)(
        lambda x: ticking(lambda c: c, x))(x),
    "jit": lambda f, x: hx.jit(f)(x),
    "jit of grad": lambda f, x: hx.jit(hx.grad(lambda x: f(x).sum()))(x),
    "jit of vmap": lambda f, x: hx.jit(hx.vmap(f))(x[None]),
    "handle of jit": lambda f, x: hx.handle(counter, 0)(hx.jit(f))(x),
    "checkpoint": lambda f, x: hx.grad(lambda x: hx.checkpoint(f)(x).sum())(x),
}


def release_executables():
    """Clear the caches when the runtime's threads have let go of the last programs, shortly after their results."""
    hx.effects_barrier()
    time.sleep(0.2)
    hx.clear_caches()


def kept_alive(use, array, finish=hx.effects_barrier, count=FUNCTIONS) -> int:
    """How many of the arrays are alive that functions closed over, which were used and dropped."""
    references, x = [], hnp.ones(ELEMENTS)

    def used_once(number: float) -> None:
        constant = array(np.full(ELEMENTS, number, np.float32))
        references.append(weakref.ref(constant))
        use(lambda x: x * x + constant, x)

    for number in range(count):
        used_once(float(number))
    finish()
    gc.collect()
    return sum(reference() is not None for reference in references)


@pytest.mark.parametrize("array", [hnp.asarray, np.asarray], ids=["handlax", "numpy"])
@pytest.mark.parametrize("name", USES)
def test_what_a_dropped_function_closed_over_is_released(name, array):
    assert kept_alive(USES[name], array) == 0


def with_jvp(f):
    g = hx.custom_jvp(lambda x: f(x).sum())
    g.defjvp(lambda primals, tangents: (f(primals[0]).sum(), (f(primals[0]) * tangents[0]).sum()))
    return g


def with_vjp(f):
    g = hx.custom_vjp(lambda x: f(x).sum())
    g.defvjp(lambda x: (f(x).sum(), None), lambda residual, ct: (ct * f(hnp.ones(ELEMENTS)),))
    return g


def with_lanes(f):
    g = hx.custom_batching.custom_vmap(f)
    g.def_vmap(lambda size, mapped, x: (f(x), True))
    return g


RULES = {
    "custom_jvp": lambda f, x: hx.grad(with_jvp(f))(x),
    "jit of custom_jvp": lambda f, x: hx.grad(hx.jit(with_jvp(f)))(x),
    "custom_vjp": lambda f, x: hx.grad(with_vjp(f))(x),
    "jit of custom_vjp": lambda f, x: hx.grad(hx.jit(with_vjp(f)))(x),
    "custom_vjp in jit": lambda f, x: hx.grad(hx.jit(lambda x: with_vjp(f)(x) * 2.0))(x),
    "custom_vjp in a scan": lambda f, x: hx.grad(lambda x: scanned(lambda x: x * with_vjp(f)(x), x))(x),
    "jvp of custom_vjp": lambda f, x: hx.jvp(with_vjp(f), (x,), (x,)),
    "custom_vjp in a branch": lambda f, x: hx.grad(lambda x: lax.cond(x[0] > 9, hnp.sum, with_vjp(f), x))(x),
    "custom_vmap": lambda f, x: hx.grad(lambda x: with_lanes(f)(x).sum())(x),
    "vmap of custom_vmap": lambda f, x: hx.vmap(hx.grad(lambda x: with_lanes(f)(x).sum()))(x[None]),
    "a policy": lambda f, x: hx.grad(hx.jit(hx.checkpoint(lambda x: hnp.sin(hnp.sin(x)).sum(), policy=(
        lambda *_, **__: f is None))))(x),
}


@pytest.mark.parametrize("name", RULES)
def test_what_a_dropped_rule_closed_over_is_released(name):
    assert kept_alive(RULES[name], np.asarray, count=4) == 0


RESULT = hx.ShapeDtypeStruct((ELEMENTS,), "float32")
CALLBACKS = {
    "pure_callback": lambda f, x: hx.jit(lambda x: hx.pure_callback(f, RESULT, x))(x),
    "io_callback": lambda f, x: hx.jit(lambda x: hx.experimental.io_callback(f, RESULT, x, ordered=True))(x),
    "debug.callback": lambda f, x: hx.jit(lambda x: hx.debug.callback(f, x))(x),
    "a callback in a branch": lambda f, x: lax.cond(x[0] > 0, lambda x: hx.pure_callback(f, RESULT, x), lambda x: x, x),
    "a callback in a loop": lambda f, x: scanned(lambda x: hx.pure_callback(f, RESULT, x), x),
}


@pytest.mark.parametrize("use", CALLBACKS.values(), ids=CALLBACKS)
def test_what_a_dropped_callback_closed_over_is_released_by_the_next_ones(use):
    assert kept_alive(use, np.asarray, count=8) <= 3
    assert kept_alive(use, np.asarray, release_executables, count=4) == 0


def test_what_is_kept_is_seen():
    functions = []
    assert kept_alive(lambda f, x: functions.append(f), np.asarray) == FUNCTIONS
