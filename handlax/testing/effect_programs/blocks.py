"""Programs with effects, as data: what they are made of, and what follows from their structure.

    random_block(random, depth)     structures      a program
    text_of_block(program)          text            the same as Python text
    simpler(program)                here            those with one statement less

They are data, since an oracle interprets them, in plain Python, that shares nothing with the package.

A program is a ``Block``: statements, each of which gives one number, and the numbers that it returns. Number 0 is a
choice between 0 and 1 that no transformation maps or differentiates; the others are arguments and earlier results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

# The effects. Each asks for a number, given one; the last two take two functions, of which one is executed.
PLAIN, TREE, OTHER, DEFAULTED, ONCE, WITHIN, BODIES = range(7)
ASKING = (PLAIN, TREE, OTHER, DEFAULTED)
SCOPED = (WITHIN, BODIES)


class Block(NamedTuple):
    """``statements``: (kind, *fields); ``outs``: the positions of the results among the numbers."""

    statements: tuple[Any, ...]
    outs: tuple[int, ...]


class RandomClause(NamedTuple):
    """``kind``: fun, ctl, once or final; for a scoped effect first, second or local: which function, with which state.

    ``a``, ``b``: its numbers; ``onwards``: the effect that it performs further out; ``times``: how often it resumes.
    """

    kind: str
    a: float
    b: float
    onwards: int | None = None
    times: int = 1

    @property
    def resumes(self) -> bool:
        return self.kind in ("ctl", "once")

    @property
    def ends(self) -> bool:
        return self.kind == "final"


class RandomHandler(NamedTuple):
    """A handler and how it is installed.

    ``moves``: the movement of its state, None without one. ``start``: the initial state; ``weak``: its type follows
    from what is added to it. ``style``: handle, direct or replay. ``returns``: the result is made by the handler's
    ``returns``, which performs ``after``. ``otherwise``: its plain clauses are one default clause. ``open``: effects in
    it may get beyond the lanes around it, which part where a ``final`` clause may have ended some.
    """

    clauses: dict[int, RandomClause]
    moves: str | None = None
    start: Any = None
    weak: bool = False
    style: str = "handle"
    returns: bool = False
    after: int | None = None
    otherwise: bool = False
    open: bool = False

    @property
    def resumes(self) -> bool:
        return any([clause.resumes for clause in self.clauses.values()])

    @property
    def ends(self) -> frozenset[int]:
        """The effects whose clauses end the program."""
        return frozenset([effect for effect, clause in self.clauses.items() if clause.ends])

    @property
    def answers_once(self) -> bool:
        return not (self.resumes or self.ends)

    @property
    def makes_result(self) -> bool:
        """Whether the result is made by the handler's own ``returns``."""
        return self.returns or not self.answers_once

    @property
    def executes(self) -> bool:
        """Whether the handled block is executed, not recorded."""
        return self.answers_once or self.style != "handle"


# what follows from the text


def inner_blocks(fields: Iterable[Any]) -> list[Block]:
    """The blocks of a statement."""
    blocks: list[Block] = []
    for field in fields:
        if isinstance(field, Block):
            blocks.append(field)
        elif isinstance(field, tuple) and field and isinstance(field[0], Block):
            blocks += field
    return blocks


def row_of(block: Block, parting: bool = False) -> set[int]:
    """The effects that a block leaves to handlers outside; ``parting``: that a lane may perform and others not."""
    return set().union(*[row_of_statement(statement, parting) for statement in block.statements])


def row_of_statement(statement: Any, parting: bool = False) -> set[int]:
    kind, *fields = statement
    if kind == "perform":
        return set() if parting else {fields[0]}
    if kind == "eval_shape":
        return set()
    parting = parting and kind not in ("cond", "switch", "tested_while", "ragged")
    row: set[int] = set().union(*[row_of(inner, parting) for inner in inner_blocks(fields)])
    if kind == "scoped":
        return row if parting else {fields[0], *row}
    if kind == "handle":
        return left_by(fields[0], row) | (set() if parting else performed_after(fields[0]))
    return row


def left_by(handler: RandomHandler, effects: Iterable[int]) -> set[int]:
    """The effects that reach the handlers outside of one if these reach it."""
    return {outside for effect in effects if (outside := beyond(handler, effect)) is not None}


def beyond(handler: RandomHandler, effect: int) -> int | None:
    """The effect that a handler performs where it gets this one."""
    clause = handler.clauses.get(effect)
    return effect if clause is None or handler.moves == "tally" else clause.onwards


def performed_after(handler: RandomHandler) -> set[int]:
    return set() if handler.after is None else {handler.after}


def count_of(block: Block, effects: set[int]) -> int:
    """The tally of a block: how often it performs one of the effects, by its text."""
    total = 0
    for kind, *fields in block.statements:
        counts = [count_of(inner, effects) for inner in inner_blocks(fields)]
        if kind == "perform":
            total += fields[0] in effects
        elif kind in ("cond", "cond_of_all", "python_cond", "switch"):
            total += max(counts)
        elif kind in ("scan", "map", "fori", "python_loop", "vmap"):
            total += counts[0] * fields[1]
        elif kind in ("counted_while", "tested_while"):
            total += 5 * sum(counts)
        elif kind == "handle":
            handler, inner = fields
            total += count_of(inner, {e for e in (*ASKING, ONCE) if beyond(handler, e) in effects})
            total += handler.after in effects
        elif kind != "eval_shape":
            total += sum(counts)
    return total


# smaller programs


NOTHING = ("arithmetic", "add", 1, 1)


def simpler(block: Block) -> Iterator[Block]:
    """The blocks with one statement less, the largest statements first."""
    for i, statement in enumerate(block.statements):
        if statement[0] != "arithmetic":
            yield _with(block, i, NOTHING)
    for i, (kind, *fields) in enumerate(block.statements):
        for k, field in enumerate(fields):
            for smaller in simpler_fields(field):
                yield _with(block, i, (kind, *fields[:k], smaller, *fields[k + 1 :]))


def simpler_fields(field: Any) -> Iterator[Any]:
    """What may stand in the place of a field: a simpler block, or a handler with fewer features."""
    if isinstance(field, Block):
        yield from simpler(field)
    elif isinstance(field, RandomHandler):
        for name in ("returns", "after", "otherwise", "weak"):
            if getattr(field, name):
                yield field._replace(**{name: RandomHandler._field_defaults[name]})
    elif isinstance(field, tuple) and field and isinstance(field[0], Block):
        for i, inner in enumerate(field):
            for smaller in simpler(inner):
                yield (*field[:i], smaller, *field[i + 1 :])


def _with(block: Block, i: int, statement: Any) -> Block:
    return block._replace(statements=(*block.statements[:i], statement, *block.statements[i + 1 :]))
