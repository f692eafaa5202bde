"""Random programs with effects, as data and as functions of the package; ``effect_oracle`` says what they mean.

A program is a ``Block``: statements, each of which gives one number, and the numbers that it returns. Number 0 is a
choice between 0 and 1 that no transformation maps or differentiates; the others are arguments and earlier results.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

EFFECTS = (0, 1, 2)


class Block(NamedTuple):
    """``statements``: (kind, *fields); ``outs``: the positions of the results among the numbers."""

    statements: tuple[Any, ...]
    outs: tuple[int, ...]


class Clause(NamedTuple):
    """The numbers ``a`` and ``b`` of a clause; whether it forwards; whether it resumes (``times``) or ends."""

    a: float
    b: float
    forwards: bool = False
    ends: bool = False
    times: int = 1


class Handled(NamedTuple):
    """A handler: ``kind`` fun, ctl or final; ``moves``, None without a state; the state's ``start``; its tally."""

    kind: str
    moves: str | None
    clauses: dict[int, Clause]
    start: Any = None
    tally: int = 0


# writing


class Scope(NamedTuple):
    """What surrounds a statement, outermost first: ("handle", handler) or a structure such as ("loop",)."""

    around: tuple[tuple[Any, ...], ...]
    depth: int

    def inside(self, *what: Any) -> Scope:
        return Scope((*self.around, what), self.depth - 1)

    def has(self, *kinds: str) -> bool:
        return any(each[0] in kinds for each in self.around)

    def allows(self, effect: int) -> bool:
        """Whether an effect performed here is answered, and crosses everything up to the handlers that answer it."""
        seen: set[str] = set()
        for i in reversed(range(len(self.around))):
            kind, *rest = self.around[i]
            if kind != "handle":
                seen.add(kind)
                if kind == "lanes" and "reified" in seen:
                    return False
                continue
            handler = rest[0]
            clause = handler.clauses.get(effect)
            if clause is not None:
                if "custom" in seen and clause.ends and handler.kind == "ctl":
                    return False
                if clause.ends and handler.kind == "ctl" and seen & {"loop", "while", "lanes"}:
                    return False
                if handler.moves == "append" and seen & {"while", "resumed"}:
                    return False
                if handler.moves == "tally" and seen & {"reified"}:
                    return False
                if not clause.forwards and handler.moves != "tally":
                    return True
            if handler.kind != "fun":
                seen |= {"reified"} | ({"resumed"} if handler.kind == "ctl" else set())
        return False


def row_of(block: Block) -> frozenset[int]:
    """The effects that a block leaves to handlers outside."""
    row: set[int] = set()
    for kind, *fields in block.statements:
        if kind == "perform":
            row.add(fields[0])
        elif kind == "handle":
            row |= left_by(fields[0], row_of(fields[1]))
        else:
            row = row.union(*map(row_of, inner_blocks(fields)))
    return frozenset(row)


def left_by(handler: Handled, effects: Any) -> set[int]:
    """The effects that reach the handlers outside of one."""
    return {e for e in effects if e not in handler.clauses or handler.clauses[e].forwards or handler.moves == "tally"}


def inner_blocks(fields: Any) -> list[Block]:
    """The blocks of a statement."""
    found: list[Block] = []
    for field in fields:
        if isinstance(field, Block):
            found.append(field)
        elif isinstance(field, tuple) and field and isinstance(field[0], Block):
            found += field
    return found


def count_of(block: Block, effects: Any) -> int:
    """The tally of a block: how often it performs one of the effects, by its text."""
    total = 0
    for kind, *fields in block.statements:
        counts = [count_of(inner, effects) for inner in inner_blocks(fields)]
        if kind == "perform":
            total += fields[0] in effects
        elif kind in ("cond", "cond_of_all", "switch"):
            total += max(counts)
        elif kind in ("scan", "vmap"):
            total += counts[0] * fields[1]
        elif kind in ("counted_while", "tested_while"):
            total += 5 * sum(counts)
        elif kind == "handle":
            total += count_of(fields[1], left_by(fields[0], effects))
        else:
            total += sum(counts)
    return total


class Writer:
    """Writes random programs with one source of random choices."""

    def __init__(self, draw: Random):
        self.draw = draw

    def number(self, low: float = -0.9, high: float = 0.9) -> float:
        return round(self.draw.uniform(low, high), 2)

    def block(self, scope: Scope, count: int, size: int, outs: int = 1, often: bool = False) -> Block:
        """A block on ``count`` numbers with about ``size`` statements; ``often`` the first performs an effect."""
        allowed = [e for e in EFFECTS if scope.allows(e)]
        statements: list[Any] = []
        if often and allowed and self.draw.random() < 0.6:
            statements.append(("perform", self.draw.choice(allowed), self.draw.randint(1, count - 1)))
        for _ in range(self.draw.randint(1 - len(statements), size)):
            statements.append(self.statement(scope, count + len(statements)))
        last = count + len(statements) - 1
        statements.append(("arithmetic", "add", last, self.draw.randint(1, last)))
        picks = [last + 1, *[self.draw.randint(max(1, last - 1), last + 1) for _ in range(outs - 1)]]
        return Block(tuple(statements), tuple(picks))

    def statement(self, scope: Scope, count: int) -> Any:
        allowed = [e for e in EFFECTS if scope.allows(e)]
        kinds = ["arithmetic"] + ["perform"] * 3 * bool(allowed)
        if scope.depth > 0:
            kinds += ["cond", "cond_of_all", "switch", "scan", "scan", "vmap", "vmap", "jit", "checkpoint"]
            kinds += ["derivative", "handle", "handle", "handle"] + ["custom"] * 2 * (not scope.has("custom"))
            kinds += ["counted_while", "tested_while", "ended_while"] * (not scope.has("reverse"))
        kind = self.draw.choice(kinds)
        i = self.draw.randint(1, count - 1)
        if kind == "arithmetic":
            return ("arithmetic", self.draw.choice(["add", "mul", "sin", "cos"]), i, self.draw.randint(1, count - 1))
        if kind == "perform":
            return ("perform", self.draw.choice(allowed), i)
        return getattr(self, f"write_{kind}")(scope, count, i)

    def write_cond(self, scope: Scope, count: int, i: int) -> Any:
        one, other = (self.block(scope.inside("branch"), count, 2) for _ in range(2))
        return ("cond", i, self.number(), one, other, row_of(one) | row_of(other))

    def write_cond_of_all(self, scope: Scope, count: int, i: int) -> Any:
        return ("cond_of_all", *[self.block(scope.inside("branch"), count, 2) for _ in range(2)])

    def write_switch(self, scope: Scope, count: int, i: int) -> Any:
        blocks = tuple([self.block(scope.inside("branch"), count, 2) for _ in range(3)])
        return ("switch", i, blocks, frozenset().union(*map(row_of, blocks)))

    def write_scan(self, scope: Scope, count: int, i: int) -> Any:
        body = self.block(scope.inside("loop"), count + 2, 3, 2)
        return ("scan", i, self.draw.randint(1, 3), self.draw.random() < 0.3, body)

    def write_counted_while(self, scope: Scope, count: int, i: int) -> Any:
        return ("counted_while", i, self.draw.randint(0, 3), self.block(scope.inside("while"), count + 1, 2))

    def write_tested_while(self, scope: Scope, count: int, i: int) -> Any:
        test, body = (self.block(scope.inside("while"), count + 1, size, often=True) for size in (1, 2))
        return ("tested_while", i, self.number(0.5, 2.0), test, body, row_of(test) | row_of(body))

    def write_ended_while(self, scope: Scope, count: int, i: int) -> Any:
        """A loop under a handler whose clause ends it, which it performs from some value of its carry on."""
        handler = self.handler(scope, "final")
        (ending,) = [effect for effect, clause in handler.clauses.items() if clause.ends]
        inside = scope.inside("handle", handler)
        within = inside.inside("while")
        test, rest = self.block(within, count + 1, 1, often=True), self.block(within, count + 2, 1)
        end = Block((("perform", ending, count),), (count + 1,))
        go_on = Block((("arithmetic", "sin", count, i),), (count + 1,))
        body = Block((("cond", count, self.number(-0.5, 1.5), end, go_on, {ending}), *rest.statements), rest.outs)
        loop = ("tested_while", i, self.number(0.5, 2.0), test, body, row_of(test) | row_of(body))
        return ("handle", handler, Block((loop,), (count,)))

    def write_vmap(self, scope: Scope, count: int, i: int) -> Any:
        return ("vmap", i, self.draw.randint(1, 3), self.block(scope.inside("lanes"), count + 1, 3))

    def write_jit(self, scope: Scope, count: int, i: int) -> Any:
        return ("jit", self.block(scope.inside("call"), count, 2))

    def write_checkpoint(self, scope: Scope, count: int, i: int) -> Any:
        return ("checkpoint", self.block(scope.inside("call"), count, 2))

    def write_derivative(self, scope: Scope, count: int, i: int) -> Any:
        mode = self.draw.choice(list(DERIVATIVES))
        inside = scope.inside("derivative")
        if mode in REVERSE:
            inside = inside._replace(around=(*inside.around, ("reverse",)))
        return ("derivative", i, mode, self.block(inside, count + 1, 3))

    def write_custom(self, scope: Scope, count: int, i: int) -> Any:
        kind = self.draw.choice(["jvp", "vjp"])
        if kind == "vjp" and not scope.has("reverse"):
            kind = "jvp"
        return ("custom", i, kind, self.number(), self.block(scope.inside("custom"), 2, 2))

    def write_handle(self, scope: Scope, count: int, i: int) -> Any:
        handler = self.handler(scope)
        inner = self.block(scope.inside("handle", handler), count, 3)
        return ("handle", handler._replace(tally=count_of(inner, set(handler.clauses))), inner)

    def handler(self, scope: Scope, kind: str | None = None, every: bool = False) -> Handled:
        draw = self.draw
        kind = kind or draw.choice(["fun"] * 5 + ["ctl", "final", "final"])
        moves = draw.choice([None, "carry", "carry"] if kind != "fun" else
                            [None, "carry", "carry", "append", "sum", "max", "split", "tally"])
        if every and moves == "tally":
            moves = "carry"
        effects = EFFECTS if every else draw.sample(EFFECTS, draw.randint(1, 2))
        clauses = {}
        for k, effect in enumerate(effects):
            forwards = not every and scope.allows(effect) and draw.random() < 0.4 and moves != "split"
            ends = kind != "fun" and k == 0
            clauses[effect] = Clause(
                self.number(), self.number(), forwards and not ends, ends, draw.choice([0, 1, 2, 2])
            )
        if moves == "tally":
            clauses = {effect: clause for effect, clause in clauses.items() if scope.allows(effect)}
        start = {None: None, "append": (), "tally": 0}.get(moves, self.number())
        return Handled(kind, moves, clauses, start)

    def program(self, depth: int, size: int) -> Block:
        """A program on (choice, x, y) that answers all its effects."""
        base = self.handler(Scope((), depth), "fun", every=True)
        scope = Scope((("handle", base),), depth)
        return Block((("handle", base, self.block(scope, 3, size)),), (3,))


def random_program(seed: int, depth: int) -> Block:
    """The program of a seed, nested so deep; the deeper, the fewer statements in a block."""
    return Writer(Random(seed)).program(depth, 5 - depth)


# the same programs as functions of the package


class _Asked:
    def result_type(op, x):
        return hx.ShapeDtypeStruct((), "float64")


KINDS = [hx.effect(vmap="per_lane", diff="stop")(type(f"Ask{i}", (), dict(vars(_Asked)))) for i in EFFECTS]


def ask(effect: int, x: Any) -> Any:
    return hx.perform(KINDS[effect](), x)


ARITHMETIC = {
    "add": lambda a, b: 0.6 * a + 0.5 * b,
    "mul": lambda a, b: hnp.sin(a) * b,
    "sin": lambda a, b: hnp.sin(a + 0.3 * b),
    "cos": lambda a, b: hnp.cos(a * b),
}


def call(block: Block, env: Any, lanes: Any) -> list[Any]:
    """The results of a block on arrays."""
    env = list(env)
    for kind, *fields in block.statements:
        env.append(PERFORMED[kind](env, lanes, *fields))
    return [env[i] for i in block.outs]


def one(block: Block, lanes: Any) -> Any:
    return lambda *env: call(block, env, lanes)[0]


def mapped(env: Any, lanes: Any, i: int) -> Any:
    return lax.stop_gradient(env[i] + 1e-3 * sum(lanes))


def do_scan(env: Any, lanes: Any, i: int, length: int, backwards: bool, body: Block) -> Any:
    weights = 0.1 * (hnp.arange(length, dtype="float64") + 1)
    step = lambda c, w: tuple(call(body, [*env, c, w], lanes))
    carry, ys = lax.scan(step, env[i], weights, reverse=backwards)
    return carry + (weights * ys).sum()


def do_counted_while(env: Any, lanes: Any, i: int, length: int, body: Block) -> Any:
    step = lambda c: (c[0] + 1, call(body, [*env, c[1]], lanes)[0])
    return lax.while_loop(lambda c: c[0] < length, step, (0, env[i]))[1]


def do_tested_while(env: Any, lanes: Any, i: int, bound: float, test: Block, body: Block, row: Any) -> Any:
    start = hnp.sin(env[i]) + lax.stop_gradient(1e-3 * sum(lanes))
    more = lambda c: c < bound + 0.3 * hnp.sin(call(test, [*env, c], lanes)[0])
    step = lambda c: c + (0.5 + 0.1 * hnp.sin(call(body, [*env, c], lanes)[0]))
    return lax.while_loop(more, step, start)


def do_switch(env: Any, lanes: Any, i: int, blocks: Any, row: Any) -> Any:
    which = hnp.floor(3.0 * mapped(env, lanes, i)).astype("int32")
    return lax.switch(which, [one(block, lanes) for block in blocks], *env)


def do_vmap(env: Any, lanes: Any, i: int, size: int, block: Block) -> Any:
    xs = env[i] + 0.3 * hnp.arange(size, dtype="float64")
    ys = hx.vmap(lambda x: call(block, [*env, x], [*lanes, x])[0])(xs)
    return (ys / (hnp.arange(size, dtype="float64") + 1)).sum()


def do_derivative(env: Any, lanes: Any, i: int, mode: str, block: Block) -> Any:
    f = lambda x: call(block, [*env, x], lanes)[0]
    y, t = DERIVATIVES[mode](f, env[i])
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
REVERSE = ("grad", "vjp", "linearize", "jacrev")


def do_custom(env: Any, lanes: Any, i: int, kind: str, rate: float, block: Block) -> Any:
    f = lambda x: call(block, [hnp.ones((), "float64"), x], lanes)[0]
    if kind == "jvp":
        g = hx.custom_jvp(f)
        g.defjvp(lambda xs, ts: (f(xs[0]), rate * hnp.cos(xs[0]) * ts[0]))
    else:
        g = hx.custom_vjp(f)
        g.defvjp(lambda x: (f(x), x), lambda x, ct: (rate * hnp.cos(x) * ct,))
    return g(env[i])


def do_handle(env: Any, lanes: Any, handler: Handled, block: Block) -> Any:
    moves, start = handler.moves, handler.start
    h = hx.handler(
        {KINDS[e]: clause_of(handler, e, clause) for e, clause in handler.clauses.items()},
        moves=MOVES.get(moves, hx.carry),
        returns=None if moves in ("append", "tally") or handler.kind == "fun" else result_of(moves),
    )
    f = one(block, lanes)
    if moves is None:
        return hx.handle(h)(f)(*env)
    result = hx.handle(h, hnp.asarray(start, "float64") if isinstance(start, float) else start)(f)(*env)
    if handler.kind != "fun":
        return result
    state, y = result
    if moves == "tally":
        return y + 0.01 * state
    if moves != "append":
        return y + 0.2 * state
    for entry in state:
        y = y + weighed(entry)
    return y


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


MOVES = {
    "append": hx.append,
    "sum": hx.merge(lambda a, b: a + b, hnp.zeros((), "float64")),
    "max": hx.merge(hnp.maximum, hnp.full((), -math.inf)),
    "split": hx.split(lambda key, n: 0.9 * key + 0.1 * hnp.arange(n, dtype="float64")),
    "tally": hx.tally(0, lambda a, b: a + b, max, lambda a, n: a * (5 if n is None else n)),
}


def result_of(moves: str | None) -> Any:
    return (lambda y: y) if moves is None else lambda s, y: y + 0.2 * s


def clause_of(handler: Handled, effect: int, clause: Clause) -> Any:
    a, b, moves = clause.a, clause.b, handler.moves
    if moves == "tally":
        return lambda op, t: 1
    if clause.ends and handler.kind == "final":
        return hx.final((lambda op, x: a * x) if moves is None else lambda s, op, x: a * x + s)
    if clause.ends:
        return hx.ctl(resuming(clause, moves is not None))
    onwards = (lambda x: ask(effect, x)) if clause.forwards else lambda x: x
    if moves is None:
        return lambda op, x: a * (ask(effect, b * x) if clause.forwards else hnp.sin(b * x))
    if moves == "carry":
        return lambda s, op, x: (0.5 * s + a * x, onwards(x + b * s))
    if moves == "split":
        return lambda s, op, x: (0.7 * s + 0.1, hnp.sin(s) * x)
    if moves == "append":
        return lambda s, op, x: ((*s, a * x), onwards(b * x))
    if moves == "sum":
        return lambda s, op, x: (s + a * x, onwards(b * x))
    return lambda s, op, x: (hnp.maximum(s, x), onwards(b * x))


def resuming(clause: Clause, stateful: bool) -> Any:
    a, b, times = clause.a, clause.b, clause.times

    def resumed(resume: Any, s: Any, x: Any) -> Any:
        if times == 0:
            return a * x
        first = resume(s + x, a * x) if stateful else resume(a * x)
        if times == 1:
            return b * first
        return 0.5 * first + 0.25 * (resume(b * s, b * x) if stateful else resume(b * x))

    if stateful:
        return lambda resume, s, op, x: resumed(resume, s, x)
    return lambda resume, op, x: resumed(resume, None, x)


PERFORMED = {
    "arithmetic": lambda env, lanes, name, i, j: ARITHMETIC[name](env[i], env[j]),
    "perform": lambda env, lanes, effect, i: ask(effect, env[i]),
    "cond": lambda env, lanes, i, bound, a, b, row: lax.cond(
        mapped(env, lanes, i) > bound, one(a, lanes), one(b, lanes), *env
    ),
    "cond_of_all": lambda env, lanes, a, b: lax.cond(env[0] > 0.5, one(a, lanes), one(b, lanes), *env),
    "switch": do_switch,
    "scan": do_scan,
    "counted_while": do_counted_while,
    "tested_while": do_tested_while,
    "jit": lambda env, lanes, block: hx.jit(one(block, lanes))(*env),
    "checkpoint": lambda env, lanes, block: hx.checkpoint(one(block, lanes))(*env),
    "vmap": do_vmap,
    "derivative": do_derivative,
    "custom": do_custom,
    "handle": do_handle,
}


def function(program: Block) -> Any:
    """The program as a function of three float64 numbers."""
    return lambda choice, x, y: call(program, [choice, x, y], [])[0]
