"""How planted and reaped values move through bodies: row by row into loops; out of loops of unknown length the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ....effects.base.errors import CannotCross, ShapeMismatch
from ....effects.core.arrays import as_array
from ....effects.core.columns import zeros_like
from ....effects.operations.elementwise.conversion import convert
from ....effects.programs.higher_order import HigherOrder
from ....effects.programs.program import Program
from ....effects.trees import pytrees
from ....effects.types.array_type import ArrayType
from ...core.body_transform import StateFlow, StateLayout, TransformedBody
from ...handlers.open_log import with_entries
from ...handlers.state_movements import AppendMovement, Movement, When
from .log_entries import SownEntry, entries_of, last_of

SownPath = tuple[str, ...]


class SowSite(NamedTuple):
    """A ``Sow`` in a body, the number of stacking loops and lanes around it there, and the types of its operands."""

    op: Any
    depth: int
    types: tuple[ArrayType, ...]


def sow_sites(program: Program, mine: Callable[[Any], bool], depth: int = 0) -> Iterator[SowSite]:
    """The ``Sow`` operations in a program and its sub-programs for which ``mine`` holds."""
    for op, args in zip(program.ops, program.args):
        if mine(op):
            yield SowSite(op, depth, tuple([program.type_of(n) for n in args]))
        elif op.bodied:
            for body in op.bodies:  # type: ignore[attr-defined]
                yield from sow_sites(body, mine, depth + op.stacks)  # type: ignore[attr-defined]


def value_at(values: Any, path: SownPath) -> Any:
    """The value under a path of nested dictionaries; None if there is none."""
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


def replaced_at(values: Any, path: SownPath, new: Any) -> Any:
    """Nested dictionaries with the value under an existing path replaced."""
    return {**values, path[0]: replaced_at(values[path[0]], path[1:], new)} if path else new


class PlantedRows(Movement):
    """The state is a dictionary of values to plant: each iteration of a loop gets its row of those that have rows."""

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        rows: dict[SownPath, list[Any]] = {}
        if op.stacks:
            for body in op.bodies:
                for sown in sow_sites(body, self.mine):
                    leaves = [as_array(x) for x in pytrees.leaves(value_at(run.current, sown.op.path))]
                    if _has_rows(leaves, sown):
                        rows[sown.op.path] = _checked(op, sown, leaves)
        return SlicedState(run.current, rows)


def _has_rows(leaves: Sequence[Any], sown: SowSite) -> bool:
    """Whether the leaves have an axis in front for this loop and for each loop inside it around the ``Sow``."""
    more = sown.depth + 1
    return bool(leaves) and all(len(x.type.shape) == len(t.shape) + more for x, t in zip(leaves, sown.types))


def _checked(op: HigherOrder, sown: SowSite, leaves: list[Any]) -> list[Any]:
    """The leaves. Raises: ShapeMismatch: they do not have one row for each iteration."""
    for x in leaves:
        if x.type.shape[0] != op.length:
            raise ShapeMismatch(
                f"plant: {'/'.join(sown.op.path)!r} is sown in a loop of {op.length} iterations, got {x.type}.",
                hint="give one row for each iteration, as reap does, or one value for all.",
            )
    return leaves


class SlicedState(StateFlow):
    """Each iteration gets its row of the values in ``rows``, and all of the other values."""

    def __init__(self, values: Any, rows: dict[SownPath, list[Any]]):
        self.values = values
        self.rows = rows
        self.operands = [x for leaves in rows.values() for x in leaves]

    def inner_types(self) -> list[ArrayType]:
        return [x.type.update(shape=x.type.shape[1:]) for x in self.operands]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        leaf = iter(values)
        inner = self.values
        for path, leaves in self.rows.items():
            tree = pytrees.structure(value_at(self.values, path))
            inner = replaced_at(inner, path, pytrees.unflatten(tree, [next(leaf) for _ in leaves]))
        run.current = inner


class SownLog(AppendMovement):
    """A log of sown values; out of a loop of unknown length come the last values of names in ``clobber`` mode."""

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        if op.runs not in ("until", "lanes"):
            return super().flow(run, op)
        sites = [site for body in op.bodies for site in sow_sites(body, self.mine)]
        if op.runs == "lanes":
            clobbered = [repr("/".join(site.op.path)) for site in sites if site.op.mode == "clobber"]
            if clobbered:
                raise CannotCross(
                    f"reap: lanes that branch differently would overwrite each other's {clobbered[0]}.",
                    hint="harvest inside: vmap(reap(f)).",
                )
            return super().flow(run, op)
        for site in sites:
            if site.op.mode != "clobber":
                raise CannotCross(
                    f"{op.name}: {'/'.join(site.op.path)!r} is sown in a loop of unknown length: the number of its "
                    "values must be known when it is traced.",
                    hint="use scan or fori_loop with constant bounds, or keep the last: sow(..., mode='clobber').",
                )
        return LatestValues(list({site.op.path: site for site in sites}.values()))


class LatestValues(StateFlow):
    """The last value of every name is carried through the loop, with a flag of whether there is one."""

    in_carry = True

    def __init__(self, sites: Sequence[SowSite]):
        self.sites = sites
        self.operands = [x for site in sites for x in (as_array(False), *map(zeros_like, site.types))]

    def entries(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The carried values as log entries."""
        value = iter(values)
        entries = []
        for site in self.sites:
            taken = next(value)
            leaves = [next(value) for _ in site.types]
            entries.append(When(taken, SownEntry(leaves, site.op.path, site.op.mode, site.op.tree, site.types)))
        return tuple(entries)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = self.entries(values)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        values = []
        for site in self.sites:
            path = site.op.path
            mask, leaves = last_of(repr("/".join(path)), entries_of(run.current, path))
            values += [as_array(True) if mask is None else mask]
            values += [convert(x, t.dtype, t.weak) for x, t in zip(leaves, site.types)]
        return values, None

    def join(
        self, run: Any, op: HigherOrder, transformed: Sequence[TransformedBody], before: Sequence[ArrayType]
    ) -> StateLayout:
        return StateLayout(transformed[0].state, None)

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = with_entries(run.current, self.entries(values))
