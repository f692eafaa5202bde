"""linearize: forward mode over a tape. The primal part is performed once, the linear part is recorded.

    linearize(f)(x) = f(x), (dx -> f'(x) dx)

Jvp performs primal and tangent operations on the tape. The tape records those on tangents, which are its boxes, and
captures the primal values they use as residuals; reverse mode transposes the tape.

Source: Radul et al. 2022, You Only Linearize Once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, inside
from ...effects.core.arrays import as_array, is_shared
from ...effects.programs.closure_conversion import with_inputs
from ...effects.programs.program import Builder, Program, interpret
from ...effects.types.array_type import ArrayType
from ..analysis.dependence import scattered
from ..analysis.simplify import dead_code_elimination
from .jvp import Jvp
from .linearize_bodies import LinearizingJvp
from .partial_eval import Tape
from .transpose import backward


class Linearized(NamedTuple):
    """A linear map as a tape from input tangents to output tangents, or as a program that takes ``residuals`` first.

    ``tangents``: for each output the tape's variable of its tangent, None where it is zero.
    """

    tape: Builder | Program
    tangents: Sequence[int | None]
    residuals: tuple[Any, ...] = ()

    def pushforward(self, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs from those of the inputs; None is zero."""
        results = interpret(self.program(), [*map(as_array, self.residuals), *dxs])
        return scattered(results, [n is not None for n in self.tangents])

    def pullback(self, cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs from those of the outputs; None is zero."""
        pairs = [(n, ct) for n, ct in zip(self.tangents, cts) if n is not None]
        count = len(self.residuals)
        known = [*map(as_array, self.residuals), *[None] * (len(self.tape.in_types) - count)]
        return backward(self.tape, known, [n for n, _ in pairs], [ct for _, ct in pairs], self.tape.consts)[count:]

    def program(self) -> Program:
        """The program of the linear map, whose results are the tangents that are not zero."""
        tape = self.tape
        return tape if isinstance(tape, Program) else tape.freeze([n for n in self.tangents if n is not None], "linear")

    def closed(self) -> Linearized:
        """The same map with residuals as operands; only constants that are numbers stay in the program."""
        program = self.program()
        values = {id(x): x for x in program.consts if x.run is not None or x.type.shape or not is_shared(x)}
        residuals = tuple(values.values())
        closed = with_inputs(program, residuals, [x.type for x in residuals])
        keep = [False] * len(residuals) + [True] * len(program.in_types)
        closed, used = dead_code_elimination(closed, instantiate=keep)
        tangents = scattered(closed.outs, [n is not None for n in self.tangents])
        return Linearized(closed, tangents, tuple([x for x, yes in zip(residuals, used) if yes]))


class LinearizedCall(NamedTuple):
    """The results of a linearized call, its derivative at the arguments, and the run of jvp that computed both."""

    outs: list[Any]
    derivative: Linearized
    run: Jvp


def linearize(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], types: Sequence[ArrayType | None], label: str = "linearize"
) -> LinearizedCall:
    """Linearize a flat function at ``primals``; ``types[i]`` is the type of tangent ``i``, None where it is zero."""
    site = user_site(2)
    tape = Tape(STACK.get(), "", site)
    run = LinearizingJvp(tape, label, site)
    boxes = [x if t is None else run.pair(x, tape.input(t)) for x, t in zip(primals, types)]
    try:
        with inside(run):
            results = f(*boxes)
        outs, tangents = [], []
        for y in results:
            primal, tangent = run.unbox(y)
            outs.append(primal)
            tangents.append(None if tangent is None else tape.number(tangent))
    finally:
        run.ended = tape.ended = True
    return LinearizedCall(outs, Linearized(tape.builder, tangents), run)
