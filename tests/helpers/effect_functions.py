"""The random programs of ``effect_programs`` as functions of the package."""

from __future__ import annotations

import math
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

from .effect_programs import BODIES, DEFAULTED, ONCE, OTHER, PLAIN, TREE, WITHIN, Block, Clause, Handled

NUMBER = hx.ShapeDtypeStruct((), "float64")


@hx.effect(vmap="per_lane", diff="stop")
class Plain:
    def result_type(op, x):
        return NUMBER


@hx.effect(vmap="per_lane", diff="stop")
class Tree:
    """With a field, an integer operand, and a tree as result."""

    label: str

    def result_type(op, x, n):
        return {"answer": NUMBER, "rest": (hx.ShapeDtypeStruct((), "int32"),)}


@hx.effect(vmap="per_lane", diff="stop")
class Other:
    def result_type(op, x):
        return NUMBER


@hx.effect(vmap="per_lane", diff="stop", default=lambda op, x: 0.8 * hnp.sin(0.7 * x))
class Defaulted:
    def result_type(op, x):
        return NUMBER


@hx.effect(vmap="once")
class Once:
    def result_type(op, x):
        return NUMBER


@hx.effect(scopes=2, vmap="per_lane", diff="bodies")
class Within:
    """One of two functions, in each lane alone."""


@hx.effect(scopes=2, vmap="bodies", diff="bodies")
class Bodies:
    """One of two functions, of all lanes at once."""


KINDS = {
    PLAIN: Plain, TREE: Tree, OTHER: Other, DEFAULTED: Defaulted, ONCE: Once, WITHIN: Within, BODIES: Bodies
}
EFFECTS = {kind: effect for effect, kind in KINDS.items()}


def ask(effect: int, x: Any) -> Any:
    return hx.perform(Tree("t"), x, 1)["answer"] if effect == TREE else hx.perform(KINDS[effect](), x)


def reply(op: Any, y: Any) -> Any:
    """The answer to an effect whose number is ``y``."""
    return {"answer": y, "rest": (1,)} if type(op) is Tree else y


# statements

ARITHMETIC = {
    "add": lambda a, b: 0.6 * a + 0.5 * b,
    "mul": lambda a, b: hnp.sin(a) * b,
    "sin": lambda a, b: hnp.sin(a + 0.3 * b),
    "cos": lambda a, b: hnp.cos(a * b),
}


def call(block: Block, env: Any, lanes: Any) -> list[Any]:
    """The results of a block on arrays; ``lanes``: the mapped values of the lanes around it, without derivatives."""
    env = list(env)
    for kind, *fields in block.statements:
        env.append(PERFORMED[kind](env, lanes, *fields))
    return [env[i] for i in block.outs]


def one(block: Block, lanes: Any) -> Any:
    return lambda *env: call(block, env, lanes)[0]


def mapped(env: Any, lanes: Any, i: int) -> Any:
    return lax.stop_gradient(env[i]) + 1e-3 * sum(lanes)


def weights(length: int) -> Any:
    return 0.1 * (hnp.arange(length, dtype="float64") + 1)


def do_cond(env: Any, lanes: Any, i: int, bound: float, a: Block, b: Block) -> Any:
    return lax.cond(mapped(env, lanes, i) > bound, one(a, lanes), one(b, lanes), *env)


def do_switch(env: Any, lanes: Any, i: int, blocks: Any) -> Any:
    which = hnp.floor(3.0 * mapped(env, lanes, i)).astype("int32")
    return lax.switch(which, [one(block, lanes) for block in blocks], *env)


def do_scan(env: Any, lanes: Any, i: int, length: int, backwards: bool, body: Block) -> Any:
    step = lambda c, w: tuple(call(body, [*env, c, w], lanes))
    carry, ys = lax.scan(step, env[i], weights(length), reverse=backwards)
    return carry + (weights(length) * ys).sum()


def do_map(env: Any, lanes: Any, i: int, length: int, body: Block) -> Any:
    ys = lax.map(lambda w: call(body, [*env, env[i] + w], lanes)[0], weights(length))
    return (weights(length) * ys).sum()


def do_fori(env: Any, lanes: Any, i: int, length: int, body: Block) -> Any:
    step = lambda k, c: call(body, [*env, c + 0.1 * hnp.asarray(k, "float64")], lanes)[0]
    return lax.fori_loop(0, length, step, env[i])


def do_unrolled(env: Any, lanes: Any, i: int, length: int, body: Block) -> Any:
    return hx.loop(0, length, lambda k, c: call(body, [*env, c + 0.1 * k], lanes)[0], env[i])


def do_python_cond(env: Any, lanes: Any, i: int, bound: float, a: Block, b: Block) -> Any:
    return call(a if env[i] > bound else b, env, lanes)[0]


def do_counted_while(env: Any, lanes: Any, i: int, length: int, steps: int | None, body: Block) -> Any:
    step = lambda c: (c[0] + 1, call(body, [*env, c[1]], lanes)[0])
    return lax.while_loop(lambda c: c[0] < length, step, (0, env[i]), max_steps=steps)[1]


def do_tested_while(env: Any, lanes: Any, i: int, bound: float, steps: int | None, test: Block, body: Block) -> Any:
    start = hnp.sin(env[i]) + 1e-3 * sum(lanes)
    more = lambda c: c < bound + 0.3 * hnp.sin(call(test, [*env, c], lanes)[0])
    step = lambda c: c + (0.5 + 0.1 * hnp.sin(call(body, [*env, c], lanes)[0]))
    return lax.while_loop(more, step, start, max_steps=steps)


def do_vmap(env: Any, lanes: Any, i: int, size: int, block: Block) -> Any:
    xs = env[i] + 0.3 * hnp.arange(size, dtype="float64")
    ys = hx.vmap(lambda x: call(block, [*env, x], [*lanes, lax.stop_gradient(x)])[0])(xs)
    return (ys / (hnp.arange(size, dtype="float64") + 1)).sum()


def do_ragged(env: Any, lanes: Any, i: int, lengths: tuple[int, ...], block: Block) -> Any:
    def lane(x: Any, rows: Any) -> Any:
        inner = [*lanes, lax.stop_gradient(x)]
        return lax.scan(lambda c, w: (call(block, [*env, c, w], inner)[0], None), x, rows)[0]

    count = hnp.arange(len(lengths), dtype="float64")
    rows = hx.Ragged(weights(sum(lengths)), lengths)
    ys = hx.vmap(lane, in_axes=(0, hx.ragged_axis))(env[i] + 0.3 * count, rows)
    return (ys / (count + 1)).sum()


def do_eval_shape(env: Any, lanes: Any, i: int, block: Block) -> Any:
    return env[i] * (0.5 + len(hx.eval_shape(one(block, lanes), *env).shape))


def do_derivative(env: Any, lanes: Any, i: int, mode: str, block: Block) -> Any:
    y, t = DERIVATIVES[mode](lambda x: call(block, [*env, x], lanes)[0], env[i])
    return y + 0.3 * t


def linearized(f: Any, x: Any) -> Any:
    y, push = hx.linearize(f, x)
    return y, push(hnp.ones((), "float64"))


def pulled(f: Any, x: Any) -> Any:
    y, pull = hx.vjp(f, x)
    return y, pull(hnp.ones((), "float64"))[0]


def in_directions(f: Any, x: Any) -> Any:
    slope, y = hx.jacfwd(lambda x: 2 * (f(x),), has_aux=True)(x)
    return y, slope


DERIVATIVES = {
    "jvp": lambda f, x: hx.jvp(f, (x,), (hnp.ones((), "float64"),)),
    "grad": lambda f, x: hx.value_and_grad(f)(x),
    "vjp": pulled,
    "linearize": linearized,
    "jacfwd": in_directions,
    "jacrev": lambda f, x: hx.jacrev(lambda x: 2 * (f(x),), has_aux=True)(x)[::-1],
}


def do_custom(env: Any, lanes: Any, i: int, kind: str, rate: float, block: Block) -> Any:
    """A function whose rule calls it again: the rule holds for derivatives of every order, whichever uses it first."""
    f = lambda x: call(block, [hnp.ones((), "float64"), x], lanes)[0]
    if kind == "jvp":
        g = hx.custom_jvp(f)
        g.defjvp(lambda xs, ts: (g(xs[0]), rate * hnp.cos(xs[0]) * ts[0]))
    else:
        g = hx.custom_vjp(f)
        g.defvjp(lambda x: (g(x), x), lambda x, ct: (rate * hnp.cos(x) * ct,))
    return g(env[i])


def do_scoped(env: Any, lanes: Any, effect: int, first: Block, second: Block) -> Any:
    return hx.perform(KINDS[effect](), one(first, lanes), one(second, lanes), *env)


# handlers


def do_handle(env: Any, lanes: Any, handler: Handled, block: Block) -> Any:
    typed = isinstance(handler.start, float) and not handler.weak
    start = hnp.asarray(handler.start, "float64") if typed else handler.start
    run = INSTALLED[handler.style](handler_of(handler), *[start] * (handler.moves is not None))(one(block, lanes))(*env)
    if handler.returns or not handler.answers_once:
        return run
    return result_of(handler, *(run if handler.moves is not None else (None, run)))


INSTALLED = {
    "handle": lambda h, *s: hx.handle(h, *s),
    "direct": lambda h, *s: hx.direct(h, *s),
    "replay": lambda h, *s: hx.direct(h, *s, replay=True),
}


def handler_of(handler: Handled) -> Any:
    """The handler in the package's words: it returns a result itself where a clause takes, or drops, the rest."""
    returns: Any = None
    if handler.returns or not handler.answers_once:
        stateful = handler.moves is not None
        returns = (lambda s, y: result_of(handler, s, y)) if stateful else lambda y: result_of(handler, None, y)
    clauses = {KINDS[effect]: clause_of(handler, clause) for effect, clause in handler.clauses.items()}
    moves = MOVES.get(handler.moves, hx.carry)
    if not handler.otherwise:
        return hx.handler(clauses, returns=returns, moves=moves)
    clause = next(iter(clauses.values()))
    return hx.handler(otherwise=clause, over=lambda op: type(op) in clauses, returns=returns, moves=moves)


MOVES = {
    "append": hx.append,
    "sum": hx.merge(lambda a, b: a + b, hnp.zeros((), "float64")),
    "max": hx.merge(hnp.maximum, hnp.full((), -math.inf)),
    "split": hx.split(lambda key, n: 0.9 * key + 0.1 * hnp.arange(n, dtype="float64")),
    "tally": hx.tally(0, lambda a, b: a + b, max, lambda a, n: a * (5 if n is None else n)),
}


def result_of(handler: Handled, state: Any, y: Any) -> Any:
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
    while isinstance(value, hx.When):
        masks.append(hnp.asarray(value.taken))
        value = value.value
    weights = hnp.cos(hnp.arange(value.size, dtype="float64")).reshape(value.shape)
    for mask in masks:  # over the leading axes
        weights = hnp.where(mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim)), weights, 0.0)
    return (weights * value).sum()


def clause_of(handler: Handled, clause: Clause) -> Any:
    """A clause of a handler, which reads off the operation which effect it answers."""
    stateful = handler.moves is not None
    if clause.kind in SCOPED_CLAUSES:
        return SCOPED_CLAUSES[clause.kind] if stateful else STATELESS_SCOPED_CLAUSES[clause.kind]
    if handler.moves == "tally":
        return lambda op, *types: 1
    if clause.ends:
        ended = lambda s, x: clause.a * onwards(clause, x) + (0.0 if s is None else s)
        return hx.final((lambda s, op, x, *_: ended(s, x)) if stateful else lambda op, x, *_: ended(None, x))
    if clause.resumes:
        kind = hx.once if clause.kind == "once" else hx.ctl
        if stateful:
            return kind(lambda resume, s, op, x, *_: resumed(clause, lambda s, y: resume(s, reply(op, y)), s, x))
        return kind(lambda resume, op, x, *_: resumed(clause, lambda s, y: resume(reply(op, y)), None, x))

    def answer(s: Any, op: Any, x: Any, *_: Any) -> Any:
        s, y = answered(clause, handler.moves, s, x)
        return s, reply(op, y)

    return answer if stateful else lambda op, *xs: answer(None, op, *xs)[1]


def onwards(clause: Clause, x: Any) -> Any:
    return x if clause.onwards is None else ask(clause.onwards, x)


def answered(clause: Clause, moves: str | None, s: Any, x: Any) -> tuple[Any, Any]:
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


def resumed(clause: Clause, resume: Any, s: Any, x: Any) -> Any:
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

PERFORMED = {
    "arithmetic": lambda env, lanes, name, i, j: ARITHMETIC[name](env[i], env[j]),
    "perform": lambda env, lanes, effect, i: ask(effect, env[i]),
    "cond": do_cond,
    "cond_of_all": lambda env, lanes, a, b: lax.cond(env[0] > 0.5, one(a, lanes), one(b, lanes), *env),
    "switch": do_switch,
    "scan": do_scan,
    "map": do_map,
    "fori": do_fori,
    "unrolled": do_unrolled,
    "python_cond": do_python_cond,
    "counted_while": do_counted_while,
    "tested_while": do_tested_while,
    "jit": lambda env, lanes, block: hx.jit(one(block, lanes))(*env),
    "checkpoint": lambda env, lanes, block: hx.checkpoint(one(block, lanes))(*env),
    "vmap": do_vmap,
    "ragged": do_ragged,
    "eval_shape": do_eval_shape,
    "derivative": do_derivative,
    "custom": do_custom,
    "scoped": do_scoped,
    "handle": do_handle,
}


def function(program: Block) -> Any:
    """The program as a function of three float64 numbers."""
    return lambda choice, x, y: call(program, [choice, x, y], [])[0]
