"""What a function closes over is released with the function: no cache keeps it alive."""

import gc
import weakref

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

FUNCTIONS, ELEMENTS = 20, 1 << 18  # of float32: a mebibyte


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


def kept_alive(use, array) -> int:
    """How many of the arrays are alive that functions closed over, which were used and dropped."""
    references, x = [], hnp.ones(ELEMENTS)

    def used_once(number: float) -> None:
        constant = array(np.full(ELEMENTS, number, np.float32))
        references.append(weakref.ref(constant))
        use(lambda x: x * x + constant, x)

    for number in range(FUNCTIONS):
        used_once(float(number))
    gc.collect()
    return sum(reference() is not None for reference in references)


@pytest.mark.parametrize("array", [hnp.asarray, np.asarray], ids=["handlax", "numpy"])
@pytest.mark.parametrize("name", USES)
def test_what_a_dropped_function_closed_over_is_released(name, array):
    assert kept_alive(USES[name], array) == 0


def test_what_is_kept_is_seen():
    functions = []
    assert kept_alive(lambda f, x: functions.append(f), np.asarray) == FUNCTIONS
