"""linearize: jvp over a tape. The primal part is performed once, the linear part is recorded.

    linearize(f)(x) = f(x), (dx -> f'(x) dx)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects.programs import Builder, interpret
from ..effects.sources import user_site
from ..effects.stack import STACK, inside
from ..effects.types import ArrayType
from .jvp import Jvp
from .partial_eval import Tape
from .transpose import backward


class Linearized(NamedTuple):
    """Results, and the tape from input tangents to output tangents; None where an output has no tangent."""

    outs: list[Any]
    tape: Builder
    tangents: list[int | None]
    run: Jvp

    def pushforward(self, dxs: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs from those of the inputs; None is zero."""
        kept = [n for n in self.tangents if n is not None]
        found = iter(interpret(self.tape.freeze(kept), dxs))
        return [None if n is None else next(found) for n in self.tangents]

    def pullback(self, cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs from those of the outputs; None is zero."""
        kept = [(n, ct) for n, ct in zip(self.tangents, cts) if n is not None]
        unknown = [None] * len(self.tape.in_types)
        return backward(self.tape, unknown, [n for n, _ in kept], [ct for _, ct in kept], self.tape.consts)


def linearize(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], types: Sequence[ArrayType | None], label: str = "linearize"
) -> Linearized:
    """Run ``f`` on boxes; ``types[i]`` is the type of the tangent of primal ``i``, None for one that has none."""
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
