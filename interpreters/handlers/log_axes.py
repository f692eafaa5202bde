"""The leading axes of what is logged in loops and lanes: as those of a stacked result, the outermost first.

``vmap`` puts lanes directly around each effect, also inside the loops that it maps: it has *crossed* these, and the
axis of its lanes stands before theirs. So an axis has a number ``crossed``: of the loops around it that the entry has
still to leave, so many get their axis behind it. Along the axes of an entry it never rises. An effect in
``scan(vmap(scan(f)))``, whose lanes have crossed the inner loop, is logged with the axes

    in the inner loop     lanes, crossed 1
    in the outer loop     lanes, crossed 0; inner loop
    outside               outer loop; lanes; inner loop
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...effects.control.lanes import LaneLoop, Lanes
from ...effects.core.arrays import as_array
from ...effects.operations.foundations.shapes import broadcast_in_dim
from ...effects.programs.higher_order import HigherOrder
from ...effects.types.array_type import ArrayType


class LogAxis(NamedTuple):
    """A leading axis of a log entry, of lanes or a loop; ``crossed``: the enclosing loops whose axes follow it."""

    size: int
    of_lanes: bool
    crossed: int = 0
    backwards: bool = False  # a loop that executes the last one first


LogAxes = tuple[LogAxis, ...]


def place(axes: Sequence[LogAxis], op: HigherOrder) -> int:
    """The position of the axis of a loop or of lanes among the axes of an entry from its body."""
    return sum([axis.crossed > op.crossed for axis in axes])


def outside(axes: Sequence[LogAxis], op: HigherOrder) -> LogAxes:
    """The axes, outside an operation, of a log entry that was appended in the operation's body."""
    if not op.stacks:
        return tuple(axes)
    at = place(axes, op)
    before = [axis._replace(crossed=axis.crossed - 1) for axis in axes[:at]]
    return (*before, LogAxis(op.length, isinstance(op, Lanes | LaneLoop), op.crossed, op.backwards), *axes[at:])


def taken_mask(axes: Sequence[LogAxis]) -> Any:
    """The mask of an entry of a branch that is taken: True along the axes that loops further out stand behind."""
    sizes = [axis.size for axis in axes if axis.crossed]
    return broadcast_in_dim(as_array(True), sizes, ()) if sizes else as_array(True)


def no_axes(op: Any, *types: ArrayType) -> LogAxes:
    return ()


class LoggedAt(NamedTuple):
    """An operation inside a program, by the types of its operands and the axes that an entry logged for it gets."""

    op: Any
    types: tuple[ArrayType, ...]
    axes: LogAxes


def performed_inside(
    op: HigherOrder, mine: Callable[[Any], bool], own: Callable[..., LogAxes] = no_axes
) -> Iterator[LoggedAt]:
    """The operations in the bodies of ``op`` for which ``mine`` holds, with the axes that ``op`` gives their entries.

    ``own(inner, type)``: the axes in front that an operation's first operand, of this type, has already.
    """
    for body in op.bodies:
        for inner, args in zip(body.ops, body.args):
            if mine(inner):
                types = tuple([body.type_of(n) for n in args])
                yield LoggedAt(inner, types, own(inner, *types[:1]))
            elif inner.bodied:
                loop: Any = inner
                for at in performed_inside(loop, mine, own):
                    yield at._replace(axes=outside(at.axes, loop))
