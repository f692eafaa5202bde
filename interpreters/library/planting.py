"""How values that are planted or reaped move: into loops row by row, out of loops of unknown length as the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...effects import trees
from ...effects.arrays import lift
from ...effects.columns import zeros_like
from ...effects.control import HigherOrder
from ...effects.conversion import convert
from ...effects.errors import CannotCross, ShapeMismatch
from ...effects.programs import Program
from ...effects.types import ArrayType
from ..cross import Flow, Joined, Lifted
from ..movements import Append, Movement, When
from .gathering import Sown, entries_of, last_of

Path = tuple[str, ...]


class Place(NamedTuple):
    """Where a name is sown in a body, how many loops stand between, and the types of one value."""

    op: Any
    depth: int
    types: tuple[ArrayType, ...]


def places_in(program: Program, mine: Callable[[Any], bool], depth: int = 0) -> Iterator[Place]:
    """The places in a program, and in what it runs, where something of mine is sown."""
    for op, args in zip(program.ops, program.args):
        if mine(op):
            yield Place(op, depth, tuple([program.type_of(n) for n in args]))
        elif op.bodied:
            for body in op.bodies:  # type: ignore[attr-defined]
                yield from places_in(body, mine, depth + op.stacks)  # type: ignore[attr-defined]


def at(values: Any, path: Path) -> Any:
    """What a dictionary of dictionaries has under a path; None where it has nothing."""
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


def with_at(values: Any, path: Path, new: Any) -> Any:
    """The dictionary with something else under a path that it has."""
    return {**values, path[0]: with_at(values[path[0]], path[1:], new)} if path else new


class Rows(Movement):
    """The state is a dictionary of values to plant: a loop gives each run its row of those that have rows."""

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        rows: dict[Path, list[Any]] = {}
        if op.stacks:
            for body in op.bodies:
                for place in places_in(body, self.mine):
                    leaves = [lift(x) for x in trees.leaves(at(run.current, place.op.path))]
                    if _stacked(leaves, place):
                        rows[place.op.path] = _checked(op, place, leaves)
        return Sliced(run.current, rows)


def _stacked(leaves: Sequence[Any], place: Place) -> bool:
    """Whether there is a row for every run of this loop and of those inside it."""
    more = place.depth + 1
    return bool(leaves) and all(len(x.type.shape) == len(t.shape) + more for x, t in zip(leaves, place.types))


def _checked(op: HigherOrder, place: Place, leaves: list[Any]) -> list[Any]:
    for x in leaves:
        if x.type.shape[0] != op.length:
            raise ShapeMismatch(
                f"plant: {'/'.join(place.op.path)!r} is sown in a loop of {op.length} runs, got {x.type}.",
                hint="give one row for each run, as reap does, or one value for all.",
            )
    return leaves


class Sliced(Flow):
    """Each run has its rows of some of the values, and all of the others."""

    def __init__(self, values: Any, rows: dict[Path, list[Any]]):
        self.values = values
        self.rows = rows
        self.operands = [x for leaves in rows.values() for x in leaves]

    def inner_types(self) -> list[ArrayType]:
        return [x.type.update(shape=x.type.shape[1:]) for x in self.operands]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        found = iter(values)
        inner = self.values
        for path, leaves in self.rows.items():
            tree = trees.structure(at(self.values, path))
            inner = with_at(inner, path, trees.unflatten(tree, [next(found) for _ in leaves]))
        run.current = inner


class Log(Append):
    """A log of what is sown, of which a loop of unknown length keeps the last."""

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        if op.runs not in ("until", "lanes"):
            return super().flow(run, op)
        places = [place for body in op.bodies for place in places_in(body, self.mine)]
        if op.runs == "lanes":
            clobbered = [repr("/".join(place.op.path)) for place in places if place.op.mode == "clobber"]
            if clobbered:
                raise CannotCross(
                    f"reap: lanes that go different ways would overwrite each other's {clobbered[0]}.",
                    hint="harvest inside: vmap(reap(f)).",
                )
            return super().flow(run, op)
        for place in places:
            if place.op.mode != "clobber":
                raise CannotCross(
                    f"{op.name}: {'/'.join(place.op.path)!r} is sown in a loop of unknown length, and nothing says how "
                    "much it will hold.",
                    hint="use scan or fori_loop with constant bounds, or keep the last: sow(..., mode='clobber').",
                )
        return Latest(list({place.op.path: place for place in places}.values()))


class Latest(Flow):
    """Of every name the last value goes round in the loop, with whether there is one."""

    turns = True

    def __init__(self, places: Sequence[Place]):
        self.places = places
        self.operands = [x for p in places for x in (lift(False), *map(zeros_like, p.types))]

    def entries(self, values: Sequence[Any]) -> tuple[Any, ...]:
        found = iter(values)
        made = []
        for place in self.places:
            taken = next(found)
            leaves = [next(found) for _ in place.types]
            made.append(When(taken, Sown(leaves, place.op.path, place.op.mode, place.op.tree, place.types)))
        return tuple(made)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = self.entries(values)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        left = []
        for place in self.places:
            path = place.op.path
            mask, leaves = last_of(repr("/".join(path)), entries_of(run.current, path))
            left += [lift(True) if mask is None else mask]
            left += [convert(x, t.dtype, t.weak) for x, t in zip(leaves, place.types)]
        return left, None

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined(lifted[0].state, None, (0,))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = (*run.current, *self.entries(values))
