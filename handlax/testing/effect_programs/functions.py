"""What the text of a program with effects calls: its effects, its statements and its handlers."""

from __future__ import annotations

import math
from typing import Any

from ... import lax
from ... import numpy as hnp
from ...effects.core.arrays import perform
from ...effects.core.operation import effect
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.custom.custom_vjp import custom_vjp
from ...interpreters.direct import install
from ...interpreters.handlers import handler as handlers
from ...interpreters.handlers import state_movements
from ...interpreters.handlers.handle import handle
from ...interpreters.ragged.ragged_array import Ragged, ragged_axis
from ...interpreters.transformations import derivatives
from ...interpreters.transformations.vmap import vmap
from ...lowering.jit import ahead_of_time
from .blocks import BODIES, DEFAULTED, ONCE, OTHER, PLAIN, TREE, WITHIN, RandomClause, RandomHandler

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


KINDS = {
    PLAIN: AskPlain, TREE: AskTree, OTHER: AskOther, DEFAULTED: AskDefaulted, ONCE: AskOnce, WITHIN: RunWithin,
    BODIES: RunBodies,
}


def ask(effect: int, x: Any) -> Any:
    return perform(AskTree("t"), x, 1)["answer"] if effect == TREE else perform(KINDS[effect](), x)


def reply(op: Any, y: Any) -> Any:
    """The answer to an effect whose number is ``y``."""
    return {"answer": y, "rest": (1,)} if type(op) is AskTree else y


# statements

ARITHMETIC = {
    "add": lambda a, b: 0.6 * a + 0.5 * b,
    "mul": lambda a, b: hnp.sin(a) * b,
    "sin": lambda a, b: hnp.sin(a + 0.3 * b),
    "cos": lambda a, b: hnp.cos(a * b),
}


def arithmetic(name: str, a: Any, b: Any) -> Any:
    return ARITHMETIC[name](a, b)


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


def unrolled(f: Any, x: Any, length: int) -> Any:
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


def handled(handler: RandomHandler, f: Any, *env: Any) -> Any:
    typed = isinstance(handler.start, float) and not handler.weak
    start = hnp.asarray(handler.start, "float64") if typed else handler.start
    run = INSTALLED[handler.style](handler_of(handler), *[start] * (handler.moves is not None))(f)(*env)
    if handler.returns or not handler.answers_once:
        return run
    return result_of(handler, *(run if handler.moves is not None else (None, run)))


INSTALLED = {
    "handle": lambda h, *s: handle(h, *s),
    "direct": lambda h, *s: install.direct(h, *s),
    "replay": lambda h, *s: install.direct(h, *s, replay=True),
}


def handler_of(handler: RandomHandler) -> Any:
    """The handler in the package's words: it returns a result itself where a clause takes, or drops, the rest."""
    returns: Any = None
    if handler.returns or not handler.answers_once:
        stateful = handler.moves is not None
        returns = (lambda s, y: result_of(handler, s, y)) if stateful else lambda y: result_of(handler, None, y)
    clauses = {KINDS[effect]: clause_of(handler, clause) for effect, clause in handler.clauses.items()}
    moves = MOVES.get(handler.moves, state_movements.carry)
    if not handler.otherwise:
        return handlers.handler(clauses, returns=returns, moves=moves)
    clause = next(iter(clauses.values()))
    return handlers.handler(otherwise=clause, over=lambda op: type(op) in clauses, returns=returns, moves=moves)


MOVES: dict[str | None, Any] = {
    "append": state_movements.append,
    "sum": state_movements.merge(lambda a, b: a + b, hnp.zeros((), "float64")),
    "max": state_movements.merge(hnp.maximum, hnp.full((), -math.inf)),
    "split": state_movements.split(lambda key, n: 0.9 * key + 0.1 * hnp.arange(n, dtype="float64")),
    "tally": state_movements.tally(0, lambda a, b: a + b, max, lambda a, n: a * (5 if n is None else n)),
}


def result_of(handler: RandomHandler, state: Any, y: Any) -> Any:
    """The number that a handled block gives: its own, and what is left of the state."""
    if handler.moves == "append":
        for entry in state:
            y = y + weighed(entry)
    elif handler.moves is not None:
        y = y + {"tally": 0.01}.get(handler.moves, 0.2) * hnp.asarray(state, "float64")
    return y if handler.after is None else y + ask(handler.after, y)


def weighed(entry: Any) -> Any:
    """The sum of the values of an entry of a log, each with a weight by its place."""
    masks, value = [], entry
    while isinstance(value, state_movements.When):
        masks.append(hnp.asarray(value.taken))
        value = value.value
    weights = hnp.cos(hnp.arange(value.size, dtype="float64")).reshape(value.shape)
    for mask in masks:  # over the leading axes
        weights = hnp.where(mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim)), weights, 0.0)
    return (weights * value).sum()


def clause_of(handler: RandomHandler, clause: RandomClause) -> Any:
    """A clause of a handler, which reads off the operation which effect it answers."""
    stateful = handler.moves is not None
    if clause.kind in SCOPED_CLAUSES:
        return SCOPED_CLAUSES[clause.kind] if stateful else STATELESS_SCOPED_CLAUSES[clause.kind]
    if handler.moves == "tally":
        return lambda op, *types: 1
    if clause.ends:
        ended = lambda s, x: clause.a * onwards(clause, x) + (0.0 if s is None else s)
        return handlers.final((lambda s, op, x, *_: ended(s, x)) if stateful else lambda op, x, *_: ended(None, x))
    if clause.resumes:
        kind = handlers.once if clause.kind == "once" else handlers.ctl
        if stateful:
            return kind(lambda resume, s, op, x, *_: resumed(clause, lambda s, y: resume(s, reply(op, y)), s, x))
        return kind(lambda resume, op, x, *_: resumed(clause, lambda s, y: resume(reply(op, y)), None, x))

    def answer(s: Any, op: Any, x: Any, *_: Any) -> Any:
        s, y = answered(clause, handler.moves, s, x)
        return s, reply(op, y)

    return answer if stateful else lambda op, *xs: answer(None, op, *xs)[1]


def onwards(clause: RandomClause, x: Any) -> Any:
    return x if clause.onwards is None else ask(clause.onwards, x)


def answered(clause: RandomClause, moves: str | None, s: Any, x: Any) -> tuple[Any, Any]:
    """The state and the number of a clause that answers once."""
    a, b = clause.a, clause.b
    if moves is None:
        return None, a * (hnp.sin(b * x) if clause.onwards is None else onwards(clause, b * x))
    if moves == "carry":
        return 0.5 * s + a * x, onwards(clause, x + b * s)
    if moves == "split":
        return 0.7 * s + 0.1, hnp.sin(s) * x
    if moves == "append":
        return (*s, a * x), onwards(clause, b * x)
    return s + a * x if moves == "sum" else hnp.maximum(s, x), onwards(clause, b * x)


def resumed(clause: RandomClause, resume: Any, s: Any, x: Any) -> Any:
    """The answer of a clause that resumes ``clause.times`` times; ``resume(s, y)``, without a state s is None."""
    a, b = clause.a, clause.b
    x = onwards(clause, x)
    if clause.times == 0:
        return a * x
    first = resume(None if s is None else s + x, a * x)
    if clause.times == 1:
        return b * first
    return 0.5 * first + 0.25 * resume(None if s is None else b * s, b * x)


STATELESS_SCOPED_CLAUSES = {
    "first": lambda op, first, second, *xs: first(*xs),
    "second": lambda op, first, second, *xs: second(*xs),
    "local": lambda op, first, second, *xs: first(*xs),
}
SCOPED_CLAUSES = {
    "first": lambda s, op, first, second, *xs: first(s, *xs),
    "second": lambda s, op, first, second, *xs: second(s, *xs),
    "local": lambda s, op, first, second, *xs: (s, first(0.5 * s + 0.125, *xs)[1]),
}
