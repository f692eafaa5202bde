"""Programs on whole types: what types state of how values are cut along explicit axes becomes constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.caches import cached
from ...effects.base.source_locations import RawSite
from ...effects.core.arrays import ConcreteArray, concrete
from ...effects.core.operation import Operation, shared
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.mesh import AbstractMesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.types.array_type import ArrayType


@derived_once
def with_constraints(program: Program) -> Program:
    """The program on whole types, with a constraint on each result of an equation whose types state cuts.

        with_constraints(p)(*xs) == p(*xs)
    """
    if not stated_meshes(program):
        return program
    types = [*program.numbered_types(), *[const.type for const in reversed(program.consts)]]
    whole = {t: t.cut_by(None) for t in {*types}}
    numbers = [*range(len(program.in_types))]  # value -> the number that it gets
    count = len(numbers)
    ops: list[Operation] = []
    args: list[tuple[int, ...]] = []
    made: list[Any] = []
    sites: list[RawSite] = []
    for (op, operands, _, outs), site in zip(program.steps(), program.sites):
        constraints = _constraints(tuple([types[n] for n in operands]), tuple(outs))
        if op.bodied:
            op = op.map_bodies(with_constraints)  # type: ignore[attr-defined]
        elif op.states_cut:
            op, constraints = _over_automatic_axes(op.sharding), [None]  # type: ignore[attr-defined]
        given = [whole[t] for t in outs]
        raw = range(count, count := count + len(outs))
        ops.append(op)
        args.append(tuple([numbers[n] if n >= 0 else n for n in operands]))
        made.append(op.from_results(given))
        sites.append(site)
        for n, t, constraint in zip(raw, given, constraints):
            numbers.append(n if constraint is None else count)
            if constraint is not None:
                ops.append(constraint)
                args.append((n,))
                made.append(t)
                sites.append(site)
                count += 1
    return Program(
        [whole[t] for t in program.in_types], ops, args, made, [numbers[n] if n >= 0 else n for n in program.outs],
        [*map(_whole_array, program.consts)], sites, program.name,
    )


@derived_once
def stated_meshes(program: Program) -> tuple[AbstractMesh, ...]:
    """The meshes over which types of values state cuts, in the program or in one that is part of it."""
    cuts = dict.fromkeys([t.cut for t in (*program.numbered_types(), *[const.type for const in program.consts])])
    bodies = [body for op in program.ops if op.bodied for body in op.bodies]  # type: ignore[attr-defined]
    own = [cut.mesh for cut in cuts if cut is not None]
    return tuple(dict.fromkeys([*own, *[mesh for body in bodies for mesh in stated_meshes(body)]]))


@cached("constraints on results", 4096)
def _constraints(operands: tuple[ArrayType, ...], results: tuple[ArrayType, ...]) -> Sequence[Operation | None]:
    """The constraint on each result of an equation with operands of these types; None: the compiler chooses."""
    cuts = [t.cut for t in (*operands, *results) if t.cut is not None]
    if not cuts:
        return [None] * len(results)
    hides = any([cut.hides for cut in cuts])
    made: list[Operation | None] = []
    for t in results:
        cut = t.cut or cuts[0]  # a call may give results over other axes than those of its operands
        rest = UNCONSTRAINED if cut.mesh.auto_axes else None
        spec = [rest] * len(t.shape) if t.cut is None else [rest if entry is None else entry for entry in t.cut.spec]
        is_open = (hides and t.cut is None) or {*spec} == {UNCONSTRAINED}
        made.append(None if is_open else _over_automatic_axes(cut.with_spec(spec)))
    return made


@cached("constraints over automatic axes", 1024)
def _over_automatic_axes(sharding: NamedSharding) -> Any:
    """The constraint over automatic axes, so that the type of its result states no cut."""
    return shared(ShardingConstraint, sharding.automatic)


def _whole_array(x: Any) -> Any:
    stated = type(x) is ConcreteArray and x.type.cut is not None
    return concrete(x.type.cut_by(None), x._value, x._buffer) if stated else x
