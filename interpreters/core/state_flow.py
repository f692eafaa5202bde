"""State flows: how the state of a handler crosses one higher-order operation, beside the values of a transformed body.

A flow says with which operands the state enters the bodies, what of it they return, and how the results of several
bodies are laid out. ``body_transform.cross`` asks it; a handler without a state has ``STATELESS``.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ...effects.core.named_axes import SizedAxis
from ...effects.core.varying import vary
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program
from ...effects.types.array_type import INVARIANT, ArrayType

# Static description of a value that belongs to a handler's run, such as the mapped axis of a batched value; None for
# values that do not belong to the run.
Mark = Any


class TransformedBody(NamedTuple):
    """A body transformed by a handler.

    ``program`` maps the parts of the inputs to the parts of the results. ``marks``: the marks of the results.
    ``state``, ``structure``: types and structure of the handler's state at the end of the body. ``located``: a clause
    asked for its site, so that it is the body at this place alone. ``brought``: the constants of the program that are
    not the body's, where the handler ``lifts`` them.
    """

    program: Program
    marks: tuple[Mark, ...]
    state: tuple[ArrayType, ...] = ()
    structure: Any = None
    located: bool = False
    brought: tuple[Any, ...] = ()


class RequiredSignature(NamedTuple):
    """The results that a transformed body must have, so that all branches, or a loop's carry, agree.

    ``marks``: the marks of the results. ``state``: the types of the state's results of all branches. ``positions``:
    where among the latter this body's own stand, zeros filling the rest; None: it has all of them, in order.
    ``number``: the body's number, which is its last state result; None: there is no such result.
    """

    marks: Sequence[Mark]
    state: Sequence[ArrayType] = ()
    positions: tuple[int, ...] | None = None
    number: int | None = None


class StateFlow:
    """How a handler's state crosses one higher-order operation; this base class is for handlers without a state.

    ``operands``: the state's values that become operands of the operation. If ``in_carry``, these are carries of a
    loop, and so are the values that ``end`` returns; else loops slice the operands and stack what ``end`` returns.
    """

    in_carry: bool = False
    stacked: bool = False  # each operand has a row for each iteration or lane
    fixed: bool = False  # there are no values, and the handler's key and the operation determine all of it
    # the axes of a mesh along which the state's values inside a body vary; None: it does not cross a mesh
    varying: frozenset[SizedAxis] | None = None
    operands: Sequence[Any] = ()

    def key(self) -> Hashable:
        """The cache key of the state: all but types that a transformed body depends on; None: bodies are not cached."""
        return () if self.fixed else None

    def without_values(self) -> Any:
        """The same flow without values of operands, to be kept after the operation is performed."""
        flow = copy.copy(self)
        flow.operands = ()
        return flow

    def inner_types(self) -> list[ArrayType]:
        """The types that the state's values have inside a body."""
        types = [x.type for x in self.operands]
        return [t.without_dimension(0).along(self.varying or INVARIANT) for t in types] if self.stacked else types

    def vary(self, values: Sequence[Any]) -> list[Any]:
        """The values at the end of a body as values of which each device of a mesh has its own."""
        return [vary(x, x.type.varying | self.varying) for x in values] if self.varying else [*values]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        """Set the state of ``run`` to ``values``, the state's inputs of a body, before the body is interpreted."""

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        """The values of the state of ``run`` after a body was interpreted, and their structure."""
        return (), None

    def join(
        self, run: Any, op: HigherOrder, bodies: Sequence[TransformedBody], before: Sequence[ArrayType]
    ) -> StateLayout:
        """The common layout of the state's results of all bodies: by default that of the first body.

        ``before``: the types of the state's inputs.
        """
        return StateLayout(bodies[0].state, bodies[0].structure)

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        """Set the state of ``run`` after the operation, whose state results are ``values``."""


class StateLayout(NamedTuple):
    """The types and structure of the state's results of an operation.

    ``positions``: for each body the positions of its own results among these, None if each body has all in order. If
    ``numbered``, the last result is the number of the body that was executed.
    """

    types: Sequence[ArrayType]
    structure: Any
    positions: Sequence[tuple[int, ...]] | None = None
    numbered: bool = False

    def required(self, marks: Sequence[Mark], body: int) -> RequiredSignature:
        """The results that body number ``body`` must have in this layout, beside results with these marks."""
        positions = None if self.positions is None else self.positions[body]
        return RequiredSignature(marks, self.types, positions, body if self.numbered else None)


class Stateless(StateFlow):
    """The flow of a handler without a state, so that operations with transformed bodies can be cached."""

    fixed = True


STATELESS = Stateless()
