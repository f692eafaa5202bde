"""Devices of a mesh that choose differently and meet inside: what they do as lanes of ``vmap`` would, without waiting.

A branch or loop in which devices meet is executed by all of them or by none. Where the types of values do not tell
along which axes they vary, or all devices of the mesh meet, of which those of one axis choose alike, this is so only if
they agree, which they find out when they arrive: those that agree take one branch, others all branches, of which each
selects its own result; a loop iterates while the test of any of them holds, and those whose test has failed keep their
carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import STACK, Run, installed, perform
from ...effects.control.branches import Cond
from ...effects.control.callbacks import IoCallback
from ...effects.control.loops import While
from ...effects.control.recorded_bodies import Meeting, meetings
from ...effects.core.arrays import scalar
from ...effects.core.columns import zeros_like
from ...effects.core.named_axes import Axis, SizedAxis, is_root
from ...effects.core.operation import effects_text, operation
from ...effects.core.varying import LaneOperations
from ...effects.operations.elementwise.comparison import clamp, eq, select
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.types.dtypes import int32
from ..core.record import record
from .divergent_lanes import all_branches, guarded_step


@operation
class CoherentCond(Cond):
    """A conditional of which all devices of a mesh execute the same branch."""


@operation
class CoherentWhile(While):
    """A loop of which all devices of a mesh execute the same number of iterations."""


def coherent(program: Program, axes: Sequence[SizedAxis]) -> Program:
    """The program of each device of a mesh, rewritten so that all devices arrive at the collectives in branches and
    loops.

    ``axes``: those of the mesh that the program is executed over, of which types do not tell which values vary.
    """
    if not any([op.bodied and any(map(meetings, op.bodies)) for op in program.ops]):  # type: ignore[attr-defined]
        return program

    def agreeing(*xs: Any) -> Sequence[Any]:
        with installed(_Agreement(STACK.get(), tuple(axes))):
            return interpret(program, xs)

    return record(agreeing, program.in_types, program.name)


class _Agreement(Run):
    """A handler that makes devices agree on branches and loops that contain collectives; it forwards all else."""

    __slots__ = ("axes",)
    owns_boxes = False

    def __init__(self, outer: Run, axes: tuple[SizedAxis, ...]):
        super().__init__(outer, "")
        self.axes = axes

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        met = {at for body in op.bodies for at in meetings(body)} if op.bodied else ()
        if not met:
            return self.outer.answer(op, operands)
        inside = op.with_bodies([coherent(body, self.axes) for body in op.bodies])
        between = self.between(op, operands, met)
        around = STACK.get()
        try:
            STACK.set(self.outer)
            if isinstance(op, CoherentCond | CoherentWhile) or not between or op.runs not in ("one", "until"):
                return self.outer.answer(inside, operands)
            return (_branch if op.runs == "one" else _loop)(inside, operands, between)
        finally:
            STACK.set(around)

    def between(self, op: Any, operands: tuple[Any, ...], met: Iterable[Meeting]) -> tuple[SizedAxis, ...]:
        """The axes along which the devices must agree on ``op``, in which they have these meetings."""
        if not any([at.by_all for at in met]):
            along = {at.axis for at in met}
            return tuple([axis for axis in self.axes if axis in along])
        choices = [test.out_types[0] for test in op.tests] or [x.type for x in operands[: op.selects]]
        known = frozenset[SizedAxis]().union(*[t.varying for t in choices])
        return (*self.axes, *sorted(known.difference(self.axes), key=str))


def _branch(op: HigherOrder, operands: tuple[Any, ...], axes: tuple[SizedAxis, ...]) -> Any:
    """A ``cond`` with collectives: the branch if all devices chose one, else all branches, or an error for effects."""
    index, *xs = operands
    count = len(op.bodies)
    own = clamp(scalar(0, int32), index, scalar(count - 1, int32))
    highest, lowest = perform(LaneOperations.highest(axes), own), perform(LaneOperations.lowest(axes), own)
    which = select(eq(highest, lowest), highest, scalar(count, int32))

    def differing(own: Any, *values: Any) -> Sequence[Any]:
        if not is_root(op):
            return all_branches(op, (own, *values), [True] * len(operands))
        _fail(op, axes)
        return [zeros_like(t) for t in op.result_type(own.type, *[x.type for x in values])]

    def alike(body: Program) -> Program:
        return record(lambda own, *values: interpret(body, values), types, body.name)

    types = [own.type, *[x.type for x in xs]]
    bodies, captured = close_all([*map(alike, op.bodies), record(differing, types, "differing")])
    return perform(CoherentCond(bodies, len(captured)), which, *captured, own, *xs)


def _loop(op: Any, operands: tuple[Any, ...], axes: tuple[SizedAxis, ...]) -> Any:
    """A loop with collectives: it continues while any device's test holds; with effects all tests must agree."""
    test, body = op.bodies
    joined = (LaneOperations.lowest if is_root(op) else LaneOperations.highest)(axes)
    again = record(lambda *xs: [perform(joined, interpret(test, xs)[0])], test.in_types, test.name)
    if not is_root(op):
        step = guarded_step(test, body, (True,) * op.shared, bool(op.slots))
        return perform(CoherentWhile((again, step), op.shared, op.carry, op.slots), *operands)
    results = perform(CoherentWhile((again, body), op.shared, op.carry, op.slots), *operands)
    (more,) = interpret(test, (*operands[: op.shared], *results))
    bodies = (record(lambda: (), (), "all"), record(lambda: _fail(op, axes), (), "some"))
    perform(CoherentCond(bodies), convert(perform(LaneOperations.highest(axes), more), int32))
    return results


def _fail(op: HigherOrder, axes: tuple[SizedAxis, ...]) -> tuple[()]:
    """Perform a host call without results that raises an error when it is executed."""
    along = ", ".join([str(name) for name, _ in axes])
    names = effects_text([effect for effect in op.effects if not isinstance(effect, Axis)])

    def refuse() -> None:
        raise CannotCross(
            f"{op.name}: devices chose differently, meet along {along} inside, and some of them would perform {names}.",
            hint="choose by the same value on all of them: pmax(test, axis).",
        )

    perform(IoCallback(refuse, ()))
    return ()
