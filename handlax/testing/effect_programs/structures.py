"""The vocabulary of programs with effects: arithmetic, effects, and structures, which have blocks.

    "map": Structure(1, "map_({2}, n{0}, {1})", "{n}", (OPERAND, between(1, 3), Inner("loop", 3)))

A structure is how often it is chosen, its text, the parameters of its blocks, and how its fields are chosen, in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ..generator.author import Scope, Statement, Unfit, Vocabulary
from .blocks import ASKING, DEFAULTED, ONCE, SCOPED, Block, RandomClause, RandomHandler, row_of
from .random_handlers import EffectAuthor, random_handler
from .refusals import DERIVATIVES, Place, around_derived

STEPS = 12  # no loop has more


class OpenBlock(Scope):
    """A block that is being written, on ``count`` numbers; the variables are all but number 0."""

    around: Place

    def __init__(self, place: Place, depth: int, count: int):
        super().__init__(dict.fromkeys(range(count)), range(1, count), depth, place)
        self.statements: list[Any] = []

    @property
    def count(self) -> int:
        return len(self.names) + 1

    def mark(self) -> Any:
        return len(self.names), len(self.statements)

    def reset(self, mark: Any) -> None:
        del self.names[mark[0] :], self.statements[mark[1] :]

    def write(self, *statement: Any) -> None:
        """Write a statement, which gives the next number."""
        self.space[self.count] = None
        self.names.append(self.count)
        self.statements.append(statement)


def performing(effect: int, i: int) -> Any:
    """A statement that performs an effect; one that is performed once gets what no transformation maps."""
    return ("perform", effect, 0 if effect == ONCE else i)


def arithmetic(a: EffectAuthor, scope: OpenBlock) -> None:
    scope.write("arithmetic", a.choice(["add", "mul", "sin", "cos"]), a.variable(scope), a.variable(scope))


def performs(a: EffectAuthor, scope: OpenBlock) -> None:
    effects = a.effects(scope.around)
    if not effects:
        raise Unfit
    scope.write(*performing(a.choice(effects), a.variable(scope)))


# by the author, where a structure stands, earlier fields
FieldChoice = Callable[[EffectAuthor, OpenBlock, list[Any]], Any]


class Inner(NamedTuple):
    """A field that is a block; with ``copies`` a tuple of them.

    ``around``: what it is in, words or a function of the author, the place and the fields. ``size``: about how many
    statements it has; ``outs``: results; ``often``: its first statement mostly performs an effect.
    """

    around: str | Callable[[EffectAuthor, Place, list[Any]], Place]
    size: int
    outs: int = 1
    often: bool = False
    copies: int = 0


class Structure(NamedTuple):
    """A kind of statement with blocks.

    ``text``: with its fields, of which blocks are functions. ``parameters``: of these, ``{env}`` all numbers so far,
    ``{n}`` the next one, ``{m}`` the one after that. ``fits``: whether it may stand at a place.
    """

    weight: float
    text: str
    parameters: str
    fields: tuple[FieldChoice | Inner, ...]
    fits: Callable[[EffectAuthor, Place], bool] = lambda a, place: True

    def within(self, count: int) -> int:
        """How many numbers there are in its blocks, given those around it."""
        return 2 if self.parameters == "n0, n1" else count + self.parameters.count("{n}") + self.parameters.count("{m}")


def branch(kind: str) -> Callable[[EffectAuthor, Place, list[Any]], Place]:
    """In a branch, which is chosen while it is written if all values are known."""
    return lambda a, place, fields: place.inside("chosen" if a.eager and place.chosen else kind)


def between(low: int, high: int) -> FieldChoice:
    return lambda a, scope, fields: a.integer(low, high)


def steps(a: EffectAuthor, scope: OpenBlock, fields: list[Any]) -> int | None:
    """The bound of a loop of unknown length, which it needs in reverse mode."""
    if not scope.around.has("reverse"):
        return None
    if a.dares():
        a.dared = "a while loop in reverse mode"
        return None
    return STEPS


def lengths(a: EffectAuthor, scope: OpenBlock, fields: list[Any]) -> tuple[int, ...]:
    return tuple([a.integer(0, 2) for _ in range(a.integer(1, 3))])


def rule(a: EffectAuthor, scope: OpenBlock, fields: list[Any]) -> str:
    return a.choice(["jvp", "vjp"]) if scope.around.has("reverse") else "jvp"


def scoped(a: EffectAuthor, place: Place) -> list[int]:
    """The scoped effects that are answered here."""
    return [effect for effect in SCOPED if place.allows(effect)]


OPERAND: FieldChoice = lambda a, scope, fields: a.variable(scope)
RATE: FieldChoice = lambda a, scope, fields: a.number()
BOUND: FieldChoice = lambda a, scope, fields: a.number(0.5, 2.0)
BRANCH, BRANCH_OF_ALL = Inner(branch("branch"), 2), Inner(branch("branch of all"), 2)
IF, CALL = Inner("python branch", 2), Inner("call", 2)
SCOPE = Inner(lambda a, place, fields: place.inside("scope", fields[0]), 2)
STRUCTURES = {
    "scan": Structure(2, "scan({3}, n{0}, {1}, {2})", "{n}, {m}", (
        OPERAND, between(1, 3), lambda a, scope, fields: a.chance(0.3), Inner("loop", 3, outs=2))),
    "map": Structure(1, "map_({2}, n{0}, {1})", "{n}", (OPERAND, between(1, 3), Inner("loop", 3))),
    "fori": Structure(1, "fori({2}, n{0}, {1})", "{n}", (OPERAND, between(1, 3), Inner("loop", 3))),
    "python_loop": Structure(1, "python_loop({2}, n{0}, {1})", "{n}", (OPERAND, between(1, 2), Inner("python", 2))),
    "cond": Structure(1, "lax.cond(apart(n{0}, lanes) > {1}, {2}, {3}, {env})", "{env}", (
        OPERAND, RATE, BRANCH, BRANCH)),
    "cond_of_all": Structure(1, "lax.cond(n0 > 0.5, {0}, {1}, {env})", "{env}", (BRANCH_OF_ALL, BRANCH_OF_ALL)),
    "switch": Structure(1, "switch(apart(n{0}, lanes), {1}, {env})", "{env}", (OPERAND, BRANCH._replace(copies=3))),
    "python_cond": Structure(
        3, "({2} if n{0} > {1} else {3})()", "", (OPERAND, RATE, IF, IF), lambda a, place: a.eager and place.eager),
    "counted_while": Structure(1, "counted_while({3}, n{0}, {1}, {2})", "{n}", (
        OPERAND, between(0, 3), steps, Inner("while", 2))),
    "tested_while": Structure(1, "tested_while({3}, {4}, n{0}, lanes, {1}, {2})", "{n}", (
        OPERAND, BOUND, steps, Inner("until", 1, often=True), Inner("until", 2, often=True))),
    "vmap": Structure(2, "in_lanes({2}, n{0}, {1}, lanes)", "lanes, {n}", (
        OPERAND, between(1, 3), Inner("lanes", 3))),
    "ragged": Structure(
        1, "ragged({2}, n{0}, {1}, lanes)", "lanes, {n}, {m}", (OPERAND, lengths, Inner("ragged", 2)),
        lambda a, place: not place.has("ragged")),
    "jit": Structure(
        1, "hx.jit({0})({env})", "{env}", (CALL,),
        lambda a, place: a.compiles or place.has("loop", "while", "until", "branch", "chosen")),
    "checkpoint": Structure(1, "hx.checkpoint({0})({env})", "{env}", (CALL,)),
    "eval_shape": Structure(0.3, "typed({1}, n{0}, {env})", "{env}", (OPERAND, Inner("shape", 2))),
    "derivative": Structure(1, "derivative({2}, n{0}, {1!r})", "{n}", (
        OPERAND, lambda a, scope, fields: a.choice(DERIVATIVES),
        Inner(lambda a, place, fields: Place((*place.around, *around_derived(fields[1]))), 3))),
    "custom": Structure(
        2, "custom({3}, n{0}, {1!r}, {2}, {4})", "n0, n1",
        (OPERAND, rule, RATE, Inner("custom", 2), lambda a, scope, fields: not row_of(fields[3])),
        lambda a, place: not place.has("custom")),
    "scoped": Structure(
        2, "hx.perform({0}(), {1}, {2}, {env})", "{env}",
        (lambda a, scope, fields: a.choice(scoped(a, scope.around)), SCOPE, SCOPE),
        lambda a, place: bool(scoped(a, place))),
    "handle": Structure(3, "{0}({1})({env})", "{env}", (
        lambda a, scope, fields: random_handler(a, scope.around),
        Inner(lambda a, place, fields: place.inside("handle", fields[0]), 3))),
}


def structured(kind: str, a: EffectAuthor, scope: OpenBlock) -> None:
    """Write a structure. Raises: Unfit: it may not stand here."""
    structure, fields = STRUCTURES[kind], list[Any]()
    if not structure.fits(a, scope.around):
        raise Unfit
    a.left -= 1
    count = structure.within(scope.count)
    for field in structure.fields:
        if isinstance(field, Inner):
            written = [inner(a, scope, count, field, fields) for _ in range(field.copies or 1)]
            fields.append(tuple(written) if field.copies else written[0])
        else:
            fields.append(field(a, scope, fields))
    scope.write(kind, *fields)


def inner(a: EffectAuthor, scope: OpenBlock, count: int, field: Inner, fields: list[Any]) -> Block:
    """A block of a structure."""
    around = field.around
    place = scope.around.inside(around) if isinstance(around, str) else around(a, scope.around, fields)
    return block(a, place, scope.depth - 1, count, field.size, field.outs, field.often)


def ended_while(a: EffectAuthor, scope: OpenBlock) -> None:
    """A loop under a handler whose clause ends it, which it performs from some value of its carry on."""
    handler = random_handler(a, scope.around, "final", "handle")
    within, count, depth = scope.around.inside("handle", handler).inside("until"), scope.count, scope.depth - 2
    (ending,) = handler.ends
    if not within.inside("branch").allows(ending):
        raise Unfit
    a.left -= 1
    i, bounds = a.variable(scope), (a.number(0.5, 2.0), steps(a, scope, []))
    test, rest = block(a, within, depth, count + 1, 1, often=True), block(a, within, depth, count + 2, 1)
    end = Block((performing(ending, count),), (count + 1,))
    go_on = Block((("arithmetic", "sin", count, i),), (count + 1,))
    body = Block((("cond", count, a.number(-0.5, 1.5), end, go_on), *rest.statements), rest.outs)
    scope.write("handle", handler, Block((("tested_while", i, *bounds, test, body),), (count,)))


def block(
    a: EffectAuthor, place: Place, depth: int, count: int, size: int, outs: int = 1, often: bool = False
) -> Block:
    """A block on ``count`` numbers with about ``size`` statements; ``often`` the first performs an effect."""
    scope = OpenBlock(place, depth, count)
    if often and a.chance(0.6):
        a.statement(scope, {performs: 1.0})
    for _ in range(a.integer(1 - len(scope.statements), size)):
        a.statement(scope, a.vocabulary.bodied if depth > 0 and a.left > 0 else a.vocabulary.plain)
    last = scope.count - 1
    scope.write("arithmetic", "add", last, a.variable(scope))
    picks = [last + 1, *[a.integer(max(1, last - 1), last + 1) for _ in range(outs - 1)]]
    return Block(tuple(scope.statements), tuple(picks))


PLAIN: dict[Statement, float] = {arithmetic: 1, performs: 3}
BODIED: dict[Statement, float] = {
    **{partial(structured, kind): structure.weight for kind, structure in STRUCTURES.items()}, ended_while: 1,
}
EFFECTS = Vocabulary(PLAIN, {**PLAIN, **BODIED})


class Written(NamedTuple):
    """A program, and the refusal that it dares, if any."""

    program: Block
    dares: str | None


def random_block(random: Random, depth: int, *, derivative: str | None = None, **options: Any) -> Written:
    """A program on (choice, x, y), nested so deep; the deeper, the fewer statements in a block.

    All its effects are answered, but for one with a default now and then.

    ``derivative``: how it is to be differentiated, one of ``DERIVATIVES``; the other options are those of the author.
    """
    a = EffectAuthor(random, EFFECTS, **options)
    answered = [effect for effect in (*ASKING, ONCE) if effect != DEFAULTED or a.chance()]
    clauses = {effect: RandomClause("fun", *a.numbers()) for effect in answered}
    clauses |= {effect: RandomClause("first", *a.numbers()) for effect in SCOPED}
    base = RandomHandler(clauses, *a.choice([(None, None), ("carry", a.number())]))
    place = Place(() if derivative is None else around_derived(derivative)).inside("handle", base)
    body = block(a, place, depth, 3, max(2, 5 - depth))
    return Written(Block((("handle", base, body),), (3,)), a.dared)
