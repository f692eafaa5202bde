"""The error of an effect that nobody handles."""

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


@hx.effect(vmap="once", diff="stop")
class Ask:
    label: str

    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect(scopes=1)
class Attempt:
    pass


def asking(x):
    y = x * 2.0
    return y + hx.perform(Ask("scale"))    # the line


def attempting(x):
    y = x * 2.0
    return hx.perform(Attempt(), hnp.sin, y)    # the line


NESTS = {
    "eager": lambda f: f,
    "jit": hx.jit,
    "jit in jit": lambda f: hx.jit(lambda x: hx.jit(f)(x)),
    "scan": lambda f: hx.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]),
    "eager scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "cond": lambda f: hx.jit(lambda x: lax.cond(x > 0.0, f, lambda x: x, x)),
    "grad": lambda f: hx.jit(hx.grad(lambda x: x * lax.stop_gradient(f(1.0)))),
    "lower": lambda f: hx.jit(f).lower,
    "export": lambda f: hx.export.export(hx.jit(f)),
}


@pytest.mark.parametrize(("nest", "f", "effect"), [
    *[(nest, asking, "Ask(label='scale')") for nest in NESTS],
    *[(nest, attempting, "Attempt()") for nest in NESTS if nest != "grad"],  # it refuses derivatives
])
def test_the_operation_the_line_that_performs_it_and_the_remedy_are_named(nest, f, effect):
    with pytest.raises(errors.UnhandledEffect) as caught:
        NESTS[nest](f)(1.0)
    what, where, hint = str(caught.value).splitlines()
    assert what.endswith(f": nobody handles {effect}.")
    assert f"test_unhandled_effects.py:{f.__code__.co_firstlineno + 2}" in where
    assert hint == "  hint: run it under hx.handle(handler)(f), with a clause for it."


def test_the_remedy_is_that_of_the_effect():
    with pytest.raises(errors.UnhandledEffect, match="hint: give it a start value"):
        hx.library.get("n")
    with pytest.raises(errors.UnhandledEffect, match="hint: give the program a key"):
        hx.jit(hx.random.keyless.normal)()
