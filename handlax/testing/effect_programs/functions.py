"""What the text of a program with effects calls: its effects, its statements and its handlers."""

from __future__ import annotations

from functools import reduce
from typing import Any

from ... import lax
from ... import numpy as hnp
from ...effects.core.arrays import perform
from ...effects.core.operation import effect
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.custom.custom_vjp import custom_vjp
from ...interpreters.direct import install
from ...interpreters.handlers.state_movements import When
from ...interpreters.ragged.ragged_array import Ragged, ragged_axis
from ...interpreters.transformations import derivatives
from ...interpreters.transformations.vmap import vmap
from ...lowering.jit import ahead_of_time

NUMBER = ahead_of_time.ShapeDtypeStruct((), "float64")


@effect(vmap="per_lane", diff="stop")
class AskPlain:
    def result_type(op, x):
        return NUMBER


@effect(vmap="per_lane", diff="stop")
class AskTree:
    """With a field, an integer operand, and a tree as result."""

    label: str

    def result_type(op, x, n):
        return {"answer": NUMBER, "rest": (ahead_of_time.ShapeDtypeStruct((), "int32"),)}


@effect(vmap="per_lane", diff="stop")
class AskOther:
    def result_type(op, x):
        return NUMBER


@effect(vmap="per_lane", diff="stop", default=lambda op, x: 0.8 * hnp.sin(0.7 * x))
class AskDefaulted:
    def result_type(op, x):
        return NUMBER


@effect(vmap="once")
class AskOnce:
    def result_type(op, x):
        return NUMBER


@effect(scopes=2, vmap="per_lane", diff="bodies")
class RunWithin:
    """One of two functions, in each lane alone."""


@effect(scopes=2, vmap="bodies", diff="bodies")
class RunBodies:
    """One of two functions, of all lanes at once."""


def ask(kind: Any, x: Any) -> Any:
    """The number that an effect answers to a number."""
    return perform(AskTree("t"), x, 1)["answer"] if kind is AskTree else perform(kind(), x)


def reply(op: Any, y: Any) -> Any:
    """The answer to an effect whose number is ``y``."""
    return {"answer": y, "rest": (1,)} if type(op) is AskTree else y


# statements


def apart(x: Any, lanes: Any) -> Any:
    """A number that differs from lane to lane, wherever lanes are, and has no derivative."""
    return lax.stop_gradient(x) + 1e-3 * sum(lanes)


def weights(length: int) -> Any:
    return 0.1 * (hnp.arange(length, dtype="float64") + 1)


def switch(x: Any, functions: Any, *env: Any) -> Any:
    return lax.switch(hnp.floor(3.0 * x).astype("int32"), functions, *env)


def scan(f: Any, x: Any, length: int, backwards: bool) -> Any:
    carry, ys = lax.scan(f, x, weights(length), reverse=backwards)
    return carry + (weights(length) * ys).sum()


def map_(f: Any, x: Any, length: int) -> Any:
    return (weights(length) * lax.map(lambda w: f(x + w), weights(length))).sum()


def fori(f: Any, x: Any, length: int) -> Any:
    return lax.fori_loop(0, length, lambda k, c: f(c + 0.1 * hnp.asarray(k, "float64")), x)


def python_loop(f: Any, x: Any, length: int) -> Any:
    return install.loop(0, length, lambda k, c: f(c + 0.1 * k), x)


def counted_while(f: Any, x: Any, length: int, steps: int | None) -> Any:
    return lax.while_loop(lambda c: c[0] < length, lambda c: (c[0] + 1, f(c[1])), (0, x), max_steps=steps)[1]


def tested_while(test: Any, f: Any, x: Any, lanes: Any, bound: float, steps: int | None) -> Any:
    more = lambda c: c < bound + 0.3 * hnp.sin(test(c))
    step = lambda c: c + (0.5 + 0.1 * hnp.sin(f(c)))
    return lax.while_loop(more, step, hnp.sin(x) + 1e-3 * sum(lanes), max_steps=steps)


def in_lanes(f: Any, x: Any, size: int, lanes: Any) -> Any:
    count = hnp.arange(size, dtype="float64")
    ys = vmap(lambda x: f([*lanes, lax.stop_gradient(x)], x))(x + 0.3 * count)
    return (ys / (count + 1)).sum()


def ragged(f: Any, x: Any, lengths: tuple[int, ...], lanes: Any) -> Any:
    def lane(x: Any, rows: Any) -> Any:
        inner = [*lanes, lax.stop_gradient(x)]
        return lax.scan(lambda c, w: (f(inner, c, w), None), x, rows)[0]

    count = hnp.arange(len(lengths), dtype="float64")
    rows = Ragged(weights(sum(lengths)), lengths)
    return (vmap(lane, in_axes=(0, ragged_axis))(x + 0.3 * count, rows) / (count + 1)).sum()


def typed(f: Any, x: Any, *env: Any) -> Any:
    return x * (0.5 + len(ahead_of_time.eval_shape(f, *env).shape))


def derivative(f: Any, x: Any, mode: str) -> Any:
    y, t = DERIVATIVES[mode](f, x)
    return y + 0.3 * t


def linearized(f: Any, x: Any) -> Any:
    y, push = derivatives.linearize(f, x)
    return y, push(hnp.ones((), "float64"))


def pulled(f: Any, x: Any) -> Any:
    y, pull = derivatives.vjp(f, x)
    return y, pull(hnp.ones((), "float64"))[0]


def in_directions(f: Any, x: Any) -> Any:
    slope, y = derivatives.jacfwd(lambda x: 2 * (f(x),), has_aux=True)(x)
    return y, slope


DERIVATIVES = {
    "jvp": lambda f, x: derivatives.jvp(f, (x,), (hnp.ones((), "float64"),)),
    "grad": lambda f, x: derivatives.value_and_grad(f)(x),
    "vjp": pulled,
    "linearize": linearized,
    "jacfwd": in_directions,
    "jacrev": lambda f, x: derivatives.jacrev(lambda x: 2 * (f(x),), has_aux=True)(x)[::-1],
}


def custom(f: Any, x: Any, kind: str, rate: float, again: bool) -> Any:
    """A function with a derivative of its own.

    With ``again`` its rule calls it again, so that the rule holds for derivatives of every order, whichever of them
    uses it first. What performs effects is not performed again.
    """
    of_x = lambda x: f(hnp.ones((), "float64"), x)
    g: Any = custom_jvp(of_x) if kind == "jvp" else custom_vjp(of_x)
    value = g if again else of_x
    if kind == "jvp":
        g.defjvp(lambda xs, ts: (value(xs[0]), rate * hnp.cos(xs[0]) * ts[0]))
    else:
        g.defvjp(lambda x: (value(x), x), lambda x, ct: (rate * hnp.cos(x) * ct,))
    return g(x)


# handlers


def number(x: Any) -> Any:
    """A number of the dtype of all programs with effects."""
    return hnp.asarray(x, "float64")


def stacked(*handlers: Any) -> Any:
    """Handlers around a function, outermost first."""
    return lambda f: reduce(lambda f, handler: handler(f), reversed(handlers), f)


def logged(log: Any) -> Any:
    """The sum of the values of a log."""
    return sum([weighed(entry) for entry in log], number(0.0))


def weighed(entry: Any) -> Any:
    """The sum of the values of an entry of a log, each with a weight by its place."""
    masks, value = [], entry
    while isinstance(value, When):
        masks.append(hnp.asarray(value.taken))
        value = value.value
    weights = hnp.cos(hnp.arange(value.size, dtype="float64")).reshape(value.shape)
    for mask in masks:  # over the leading axes
        weights = hnp.where(mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim)), weights, 0.0)
    return (weights * value).sum()
