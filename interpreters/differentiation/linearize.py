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
from ...effects.programs.program import Builder, interpret
from ...effects.types.array_type import ArrayType
from .jvp import Jvp
from .partial_eval import Tape
from .transpose import backward


class Linearized(NamedTuple):
    """The results ``outs`` of a function, and the tape from input tangents to output tangents.

    ``tangents``: for each output the tape's variable of its tangent, None where it is zero.
    """

    outs: list[Any]
    tape: Builder
    tangents: list[int | None]
    run: Jvp

    def pushforward(self, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs, None for zero, from those of the inputs."""
        outs = [n for n in self.tangents if n is not None]
        results = iter(interpret(self.tape.freeze(outs), dxs))
        return [None if n is None else next(results) for n in self.tangents]

    def pullback(self, cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs from those of the outputs; None is zero."""
        pairs = [(n, ct) for n, ct in zip(self.tangents, cts) if n is not None]
        known = [None] * len(self.tape.in_types)
        return backward(self.tape, known, [n for n, _ in pairs], [ct for _, ct in pairs], self.tape.consts)


def linearize(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], types: Sequence[ArrayType | None], label: str = "linearize"
) -> Linearized:
    """Linearize a flat function at ``primals``; ``types[i]`` is the type of tangent ``i``, None where it is zero."""
    site = user_site(2)
    tape = Tape(STACK.get(), "", site)
    run = Jvp(tape, label, site)
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
    return Linearized(outs, tape.builder, tangents, run)
