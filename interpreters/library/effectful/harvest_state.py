"""How planted and reaped values cross bodies: sliced and stacked over loops; out of loops of unknown length, the last
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ....effects.base.errors import CannotCross, ShapeMismatch
from ....effects.core.arrays import as_array
from ....effects.core.columns import zeros_like
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import move_axis
from ....effects.programs.higher_order import HigherOrder
from ....effects.trees import pytrees
from ....effects.types.array_type import ArrayType, array_type
from ....effects.types.dtypes import bool_
from ...core.state_flow import StateFlow
from ...handlers.log_axes import LogAxes, LogAxis, performed_inside, place
from ...handlers.open_log import OpenLog, known_entries, with_entries
from ...handlers.state_movements import AppendedState, AppendMovement, Movement, When, broadcast_mask
from .log_entries import SownEntry, entries_of, in_order, last_of, sown_in, with_axes

SownPath = tuple[str, ...]


def lane_axes(op: Any, type: ArrayType) -> LogAxes:
    """The leading axes of a sown value that are mapped axes."""
    return tuple([LogAxis(size, True, crossed) for size, crossed in zip(type.shape, op.lanes)])


class SowSite(NamedTuple):
    """A ``Sow`` in a body: the axes of loops around it within the body, and the types of its values without them."""

    op: Any
    axes: LogAxes
    types: tuple[ArrayType, ...]


def sow_sites(op: HigherOrder, mine: Callable[[Any], bool]) -> Iterator[SowSite]:
    """The ``Sow`` operations for which ``mine`` holds in the bodies of an operation."""
    for sown in performed_inside(op, mine, lane_axes):
        lanes = len(sown.op.lanes)
        yield SowSite(sown.op, sown.axes, tuple([t.update(shape=t.shape[lanes:]) for t in sown.types]))


def value_at(values: Any, path: SownPath) -> Any:
    """The value at a path in nested dictionaries; None if there is none."""
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


def replaced_at(values: Any, path: SownPath, new: Any) -> Any:
    """The nested dictionaries with the value at an existing path replaced."""
    return {**values, path[0]: replaced_at(values[path[0]], path[1:], new)} if path else new


class PlantedRows(Movement):
    """How a dictionary of values to plant crosses a loop: each iteration gets its slice of the stacked values."""

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        rows: dict[SownPath, list[Any]] = {}
        if op.stacks:
            for sown in sow_sites(op, self.mine):
                leaves = [as_array(x) for x in pytrees.leaves(value_at(run.current, sown.op.path))]
                if _has_rows(leaves, sown):
                    rows[sown.op.path] = _rows_first(op, sown, leaves)
        return SlicedState(run.current, rows)


def _has_rows(leaves: Sequence[Any], sown: SowSite) -> bool:
    """Whether the leaves are stacked over this loop, besides the inner loops around the ``Sow``."""
    more = len(sown.axes) + 1
    return bool(leaves) and all(len(x.type.shape) == len(t.shape) + more for x, t in zip(leaves, sown.types))


def _rows_first(op: HigherOrder, sown: SowSite, leaves: list[Any]) -> list[Any]:
    """The leaves with the loop's axis first. Raises: ShapeMismatch: its size is not the number of iterations."""
    at = place(sown.axes, op)
    for x in leaves:
        if x.type.shape[at] != op.length:
            raise ShapeMismatch(
                f"plant: {'/'.join(sown.op.path)!r} is sown in a loop of {op.length} iterations, got {x.type}.",
                hint="give one row for each iteration, as reap does, or one value for all.",
            )
    return [move_axis(x, at, 0) for x in leaves]


class SlicedState(StateFlow):
    """Each iteration gets its slice of the values in ``rows``, and all other values whole."""

    stacked = True

    def __init__(self, values: Any, rows: dict[SownPath, list[Any]]):
        self.values = values
        self.rows = rows
        self.operands = [x for leaves in rows.values() for x in leaves]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        leaf = iter(values)
        inner = self.values
        for path, leaves in self.rows.items():
            tree = pytrees.structure(value_at(self.values, path))
            inner = replaced_at(inner, path, pytrees.unflatten(tree, [next(leaf) for _ in leaves]))
        run.current = inner


class SownEntries(AppendedState):
    """The log of sown values of a body, whose entries describe their own leading axes.

    At the end of an iteration those of one name are stacked, so that values are in the order of execution.
    """

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        if self.op.stacks:
            run.current = OpenLog(run.label, in_order(known_entries(run.current)))
        return super().end(run)

    def axes(self, run: Any) -> Sequence[LogAxes]:
        return [sown_in(entry).axes for entry in known_entries(run.current)]

    def extend(self, run: Any, bodies: Sequence[Sequence[Any]], axes: Sequence[Sequence[LogAxes]]) -> None:
        super().extend(run, [list(map(with_axes, *body)) for body in zip(bodies, axes)], axes)


class SownLog(AppendMovement):
    """How a log of sown values crosses bodies; from a loop of unknown length only the last value of a ``clobber`` name.
    """

    __slots__ = ("mine",)

    def __init__(self, mine: Callable[[Any], bool]):
        self.mine = mine

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        if op.runs != "until":
            return SownEntries(op)
        sites = list(sow_sites(op, self.mine))
        for site in sites:
            if site.op.mode != "clobber":
                raise CannotCross(
                    f"{op.name}: {'/'.join(site.op.path)!r} is sown in a loop of unknown length: the number of its "
                    "values must be known when it is traced.",
                    hint="use scan or fori_loop with constant bounds, or keep the last: sow(..., mode='clobber').",
                )
        return LatestValues(list({site.op.path: site for site in sites}.values()))


def _last_types(site: SowSite) -> list[ArrayType]:
    """The types of a ``clobber`` name in a loop's carry: whether it was sown, and its last value."""
    lanes = tuple([axis.size for axis in site.axes])
    return [array_type(lanes, bool_), *[t.update(shape=(*lanes, *t.shape)) for t in site.types]]


class LatestValues(StateFlow):
    """How sown values cross a loop: the last value of every name is carried, and per lane whether there is one."""

    in_carry = True

    def __init__(self, sites: Sequence[SowSite]):
        self.sites = [site._replace(axes=tuple([axis for axis in site.axes if axis.of_lanes])) for site in sites]
        self.operands = [zeros_like(t) for site in self.sites for t in _last_types(site)]

    def entries(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The carried values as log entries."""
        value = iter(values)
        entries = []
        for site in self.sites:
            taken = next(value)
            leaves = [next(value) for _ in site.types]
            entries.append(When(taken, SownEntry(leaves, site.op.path, site.op.mode, site.op.tree, site.axes)))
        return tuple(entries)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = self.entries(values)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        values = []
        for site in self.sites:
            path = site.op.path
            mask, leaves = last_of(repr("/".join(path)), entries_of(run.current, path))
            types = _last_types(site)
            values += [broadcast_mask(as_array(True) if mask is None else mask, types[0].shape)]
            values += [convert(x, t.dtype, t.weak) for x, t in zip(leaves, types[1:])]
        return values, None

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = with_entries(run.current, self.entries(values))
