"""Programs on whole types: what types state of how values are cut along explicit axes becomes constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.core.arrays import ConcreteArray, concrete
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.types.array_type import ArrayType
from .simplify import RetainedEquation, assemble


@derived_once
def with_constraints(program: Program) -> Program:
    """The program on whole types, with a constraint on each result of an equation whose types state cuts.

        with_constraints(p)(*xs) == p(*xs)
    """
    if not states_cuts(program):
        return program
    types, fresh = program.numbered_types(), len(program.numbered_types())
    equations: list[RetainedEquation] = []
    for (op, args, results, outs), site in zip(program.steps(), program.sites):
        operands = [program.consts[-1 - n].type if n < 0 else types[n] for n in args]
        op = op.map_bodies(with_constraints) if op.bodied else op  # type: ignore[attr-defined]
        whole = op.from_results([*map(_whole, outs)])
        constraints = _constraints(operands, outs) if not op.states_cut else [None] * len(outs)
        made = tuple([n if cut is None else fresh + k for k, (n, cut) in enumerate(zip(results, constraints))])
        fresh += len(made)
        equations.append(RetainedEquation(op, args, made, whole, site))
        for n, raw, cut, t in zip(results, made, constraints, outs):
            if cut is not None:
                equations.append(RetainedEquation(ShardingConstraint(cut), (raw,), (n,), _whole(t), site))
    outs_of_equations = [op.from_results([*map(_whole, op.as_results(t))]) for op, t in zip(program.ops, program.types)]
    on_whole = Program(
        [*map(_whole, program.in_types)], program.ops, program.args, outs_of_equations, program.outs,
        [*map(_whole_array, program.consts)], program.sites, program.name,
    )
    return assemble(on_whole, equations, program.outs)


@derived_once
def states_cuts(program: Program) -> bool:
    """Whether the type of a value states a cut, in the program or in one that is part of it."""
    values = [*program.numbered_types(), *[const.type for const in program.consts]]
    bodies = [body for op in program.ops if op.bodied for body in op.bodies]  # type: ignore[attr-defined]
    return any([t.cut is not None for t in values]) or any(map(states_cuts, bodies))


def _constraints(operands: Sequence[ArrayType], results: Sequence[ArrayType]) -> list[NamedSharding | None]:
    """The constraint on each result of an equation; None: the compiler chooses."""
    cuts = [t.cut for t in (*operands, *results) if t.cut is not None]
    if not cuts:
        return [None] * len(results)
    rest = UNCONSTRAINED if cuts[0].mesh.auto_axes else None
    if any([cut.hides for cut in cuts]) and all([t.cut is None for t in results]):
        return [None] * len(results)
    made = []
    for t in results:
        spec = [rest] * len(t.shape) if t.cut is None else [rest if entry is None else entry for entry in t.cut.spec]
        made.append(None if {*spec} == {UNCONSTRAINED} else cuts[0].with_spec(spec))
    return made


def _whole(t: ArrayType) -> ArrayType:
    return t.cut_by(None)


def _whole_array(x: Any) -> Any:
    return concrete(_whole(x.type), x._value, x._buffer) if type(x) is ConcreteArray and x.type.cut is not None else x
