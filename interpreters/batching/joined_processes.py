"""Programs in which processes meet, each with values of its own: those of all devices, which are lanes of ``vmap``, of
which each does what its process does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.caches import cached
from ...effects.base.errors import CannotCross
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, STACK, Run, inside, installed, perform
from ...effects.core.arrays import ConcreteArray, is_shared
from ...effects.core.named_axes import PROCESSES
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint
from ...effects.operations.manipulation.slicing import axis_at, index_in_dim
from ...effects.programs.closure_conversion import Closed, close_all
from ...effects.programs.program import Program, derived_once, interpret
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import P
from ..core.record import record
from .batch import batch_program


def of_all_processes(
    program: Program, operands: Sequence[ConcreteArray], mesh: Any
) -> tuple[Program, tuple[ConcreteArray, ...], NamedSharding]:
    """The program of all devices, its operands, and how they and its results lie: in a row for each device.

    Operands are values of this process, and so are constants; an array over devices of several processes is the same
    in each.

    Raises: CannotCross: it calls the host outside of what devices execute together.
    """
    _need_no_host(program)
    rows = NamedSharding(mesh, P(mesh.axis_names[0]))
    closed, captured = with_arrays_outside(program)
    given: Any = [*captured, *operands]
    dims = tuple([0 if x.is_fully_addressable else None for x in given])
    with inside(BASE):
        own = mesh.local_mesh.size
        whole = [x if d is None else LaterLayers.assembled(rows, axis_at(x, None, 0, own)) for x, d in zip(given, dims)]
    return _in_lanes(closed, dims, rows), tuple(whole), rows


def own_results(ys: Sequence[Any], rows: NamedSharding) -> tuple[Any, ...]:
    """This process's results, of those in a row for each device."""
    with inside(BASE):
        return tuple([index_in_dim(LaterLayers.own_part(rows, y), 0, 0, keepdims=False) for y in ys])


def _need_no_host(program: Program) -> None:
    """Raises CannotCross: a process calls its host, other than from the devices of a ``shard_map``."""
    for op in program.ops:
        if op.calls_host:
            raise CannotCross(
                f"{op.name}: in a program in which processes meet, none can call its own host.",
                hint="call the host inside of pmap, where each device does, or outside of jit, loops and branches.",
            )
        if op.bodied and op.runs != "mesh":  # type: ignore[attr-defined]
            for body in op.bodies:  # type: ignore[attr-defined]
                _need_no_host(body)


def with_arrays_outside(program: Program) -> Closed:
    """The program, whose only constants are numbers, those of its bodies too; its arrays, of this process, are inputs.
    """
    (closed,), captured = _closed([_outside_of_bodies(program)])
    return Closed(closed, captured)


def _closed(programs: Sequence[Program]) -> tuple[tuple[Program, ...], tuple[Any, ...]]:
    """Their closure conversion, in which numbers alone are constants."""
    return close_all(programs, [x for program in programs for x in program.consts if not is_shared(x)])


@derived_once
def _outside_of_bodies(program: Program) -> Program:
    def outside(*xs: Any) -> Sequence[Any]:
        with installed(_ArraysOutside(STACK.get(), "")):
            return interpret(program, xs)

    return record(outside, program.in_types, program.name)


class _ArraysOutside(Run):
    """The handler of ``with_arrays_outside``. What devices execute together is the same in each process."""

    __slots__ = ()
    owns_boxes = False

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.bodied and op.captures and op.runs != "mesh":
            bodies, captured = _closed([*map(_outside_of_bodies, op.bodies)])
            op = op.with_bodies(bodies, shared=op.shared + len(captured))
            operands = (*operands[: op.selects], *captured, *operands[op.selects :])
        return self.outer.answer(op, operands)


@cached("programs of all processes", 1024)
def _in_lanes(program: Program, dims: tuple[int | None, ...], rows: NamedSharding) -> Program:
    count = rows.mesh.size
    lanes, out = batch_program(program, dims, count, PROCESSES)

    def with_rows(*xs: Any) -> Sequence[Any]:
        ys = interpret(lanes, xs)
        return [perform(ShardingConstraint(rows), axis_at(y, d, 0, count)) for y, d in zip(ys, out)]

    return record(with_rows, lanes.in_types, program.name)
