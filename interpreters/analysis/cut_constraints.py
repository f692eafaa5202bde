"""Programs on whole types: what types state of how values are cut along explicit axes becomes constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.core.arrays import ConcreteArray, concrete
from ...effects.core.operation import shared
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
    whole = Program(
        [*map(_whole, program.in_types)], program.ops, program.args,
        [op.from_results([*map(_whole, op.as_results(t))]) for op, t in zip(program.ops, program.types)],
        program.outs, [*map(_whole_array, program.consts)], program.sites, program.name,
    )
    types = program.numbered_types()
    fresh = len(types)
    equations: list[RetainedEquation] = []
    for (op, args, results, outs), whole_outs, site in zip(program.steps(), whole.types, program.sites):
        operands = [program.consts[-1 - n].type if n < 0 else types[n] for n in args]
        constraints = _constraints(operands, outs)
        if op.bodied:
            op = op.map_bodies(with_constraints)  # type: ignore[attr-defined]
        elif op.states_cut:
            op, constraints = _constraint(op.sharding), [None]  # type: ignore[attr-defined]
        raw = tuple([n if cut is None else fresh + k for k, (n, cut) in enumerate(zip(results, constraints))])
        fresh += len(raw)
        equations.append(RetainedEquation(op, args, raw, whole_outs, site))
        for n, k, cut, t in zip(results, raw, constraints, outs):
            if cut is not None:
                equations.append(RetainedEquation(_constraint(cut), (k,), (n,), _whole(t), site))
    return assemble(whole, equations, program.outs)


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
    hides = any([cut.hides for cut in cuts])
    made: list[NamedSharding | None] = []
    for t in results:
        if hides and t.cut is None:
            made.append(None)
            continue
        spec = [rest] * len(t.shape) if t.cut is None else [rest if entry is None else entry for entry in t.cut.spec]
        made.append(None if {*spec} == {UNCONSTRAINED} else cuts[0].with_spec(spec))
    return made


def _constraint(sharding: NamedSharding) -> Any:
    """The constraint over automatic axes, so that the type of its result states no cut."""
    return shared(ShardingConstraint, sharding.automatic)


def _whole(t: ArrayType) -> ArrayType:
    return t.cut_by(None)


def _whole_array(x: Any) -> Any:
    return concrete(_whole(x.type), x._value, x._buffer) if type(x) is ConcreteArray and x.type.cut is not None else x
