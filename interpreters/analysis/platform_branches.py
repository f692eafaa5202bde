"""Programs for one platform: of ``platform_dependent`` its function for that platform remains."""

from __future__ import annotations

from ...effects.control.branches import Cond, branch_on
from ...effects.core.operation import shared
from ...effects.programs.higher_order import Call
from ...effects.programs.program import Program, derived_once
from .simplify import RetainedEquation, assemble


@derived_once
def for_platform(program: Program, platform: str) -> Program:
    """The program with the branches for a platform, such as "cpu", in place of those for all.

        for_platform(p, "cpu")(*xs) == p(*xs)    where it is executed on that platform

    Raises: BadArgument: there is no function for the platform.
    """
    if Cond not in program.operations:
        return program
    equations: list[RetainedEquation] = []
    for (op, args, results, _), types, site in zip(program.steps(), program.types, program.sites):
        if isinstance(op, Cond) and op.branches_platforms is not None:
            op, args = shared(Call, (op.bodies[branch_on(platform, op.branches_platforms)],), "branch", True), args[1:]
        if op.bodied:
            op = op.map_bodies(lambda body: for_platform(body, platform))  # type: ignore[attr-defined]
        equations.append(RetainedEquation(op, tuple(args), tuple(results), types, site))
    return assemble(program, equations, program.outs)
