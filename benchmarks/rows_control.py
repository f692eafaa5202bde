"""Loops and branches: tracing, differentiating, lowering, compiled programs, and eager calls."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import programs_control as programs
from .rows_compiled import Case, both, compiled_rows
from .rows_trace import parse_text
from .sides import OURS, THEIRS, Side, assert_agree, on, renewed, seeded
from .timing import Pair, Plan, Prepare, Row, timed

MODELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan of 1,000 steps": (programs.recurrent, programs.recurrent_data()),
    "nested scan, depth 2": (programs.nested(2), programs.nested_data(30)),
    "nested scan, depth 3": (programs.nested(3), programs.nested_data(10)),
    "cond in scan": (programs.branching, programs.branching_data()),
    "fori of 1,000 steps": (programs.counting, programs.counting_data()),
    "12 blocks by scan": (programs.blocks, programs.blocks_data()),
    "while": (programs.iteration, programs.iteration_data()),
}
_constants = itertools.count(1)
FORWARD = ("while",)  # a loop of unknown length has no reverse mode in JAX


def staged(title: str, differentiate: bool, lower: bool) -> Callable[[Side], Prepare]:
    """Trace a program with new code each round, or lower it to StableHLO that is parsed and verified.

    Its body has a new constant each round, so that caches of equal bodies miss.
    """
    make, data = MODELS[title]

    def prepared(side: Side) -> Prepare:
        args = on(side, data)

        def prepare() -> Callable[[], Any]:
            g = renewed(make(side.np, side.lax, 1e-5 + 1e-9 * next(_constants)))
            h = side.lib.value_and_grad(g) if differentiate else g
            if not lower:
                return lambda: side.trace(h, *args)
            jitted = side.lib.jit(h)
            if side is THEIRS:
                return lambda: jitted.lower(*args)
            return lambda: parse_text(jitted.lower(*args).as_text())

        return prepare

    return prepared


def stage_row(title: str, differentiate: bool, lower: bool) -> Row:
    def check(ours: Any, theirs: Any) -> None:
        """Both sides compute the same values, and their lowered programs have equally many loops and branches."""
        case = next(c for c in CASES if c.title.startswith(title) and c.differentiate == differentiate)
        assert_agree(*[f(*args) for f, args in map(case.jitted, (OURS, THEIRS))])
        if lower:
            texts = str(ours), theirs.as_text()
            for op in ("stablehlo.while", "stablehlo.case"):
                assert texts[0].count(op) == texts[1].count(op), op

    stages = "trace + lower" if lower else "trace"
    name = f"{stages} of grad: {title}" if differentiate else f"{stages}: {title}"
    bar = 0.25 if lower else 0.10 if differentiate else 0.15
    return Row(name, bar, timed(staged(title, differentiate, lower), check=check, cold=True))


def _step(side: Side) -> Callable[..., Any]:
    return lambda c, x: (side.np.tanh(c * x + 1.0), c)


SINGLE: dict[str, Callable[[Side], Callable[..., Any]]] = {
    "scan": lambda side: functools.partial(lambda step, c, xs: side.lax.scan(step, c, xs), _step(side)),
    "cond": lambda side: lambda c, xs: side.lax.cond(xs[0, 0] > 0, side.np.sin, side.np.cos, c),
    "while": lambda side: functools.partial(
        lambda going, step, c, xs: side.lax.while_loop(going, step, (0, c)),
        lambda s: s[0] < 10, lambda s: (s[0] + 1, side.np.sin(s[1])),
    ),
    "grad of scan": lambda side: side.lib.grad(
        functools.partial(lambda step, c, xs: side.np.sum(side.lax.scan(step, c, xs)[0]), _step(side))
    ),
}


def single_row(name: str) -> Row:
    """A call outside ``jit`` with the same functions every time: JAX finds their traces in its cache."""

    def make(side: Side) -> Prepare:
        f, c, xs = SINGLE[name](side), side.array(seeded(8)), side.array(seeded(100, 8))
        return lambda: lambda: f(c, xs)

    return Row(f"eager {name}, 100 x f32[8]", 1.00, timed(make))


def bounded_while_row(bound: dict[str, int]) -> Row:
    """The gradient of a while loop against that of a scan of as many steps, for handlax alone."""

    def measure(plan: Plan) -> Pair:
        params, xs = on(OURS, programs.recurrent_data())
        lib, lax, hnp = OURS.lib, OURS.lax, OURS.np

        def cell(params, h, x):
            return hnp.tanh(x @ params["in"] + h @ params["again"] + params["bias"])

        def by_scan(params, n):
            return hnp.sum(lax.scan(lambda h, x: (cell(params, h, x), None), params["start"], xs)[0])

        def by_while(params, n):
            step = lambda state: (state[0] + 1, cell(params, state[1], xs[state[0]]))
            return hnp.sum(lax.while_loop(lambda state: state[0] < n, step, (0, params["start"]), **bound)[1])

        n = OURS.array(np.int32(programs.STEPS))
        grads = [lib.jit(lib.grad(f)) for f in (by_while, by_scan)]
        assert_agree(*[g(params, n) for g in grads])
        pair = timed(lambda side: lambda: lambda: grads[side is THEIRS](params, n), check=None)(plan)
        memory = [g.lower(params, n).compile().memory_analysis().temp_size_in_bytes for g in grads]
        return Pair(pair.ours, pair.theirs, (f"temporary memory: {memory[0]:,} bytes, of the scan {memory[1]:,}",))

    (name, count), = bound.items()
    title = f"gradient of 1,000 steps by while_loop({name}={count}) against scan"
    return Row(title, None, measure, beside=False)


CASES: list[Case] = [
    case for title, (make, data) in MODELS.items()
    for case in both(title, lambda side, make=make: make(side.np, side.lax), data)
    if not (case.differentiate and title in FORWARD)
]
ROWS = [
    *[stage_row(title, differentiate, lower)
      for lower in (False, True) for differentiate in (False, True) for title in MODELS
      if not (differentiate and title in FORWARD)],
    *[single_row(name) for name in SINGLE],
    *compiled_rows(CASES, "rows_control"),
    bounded_while_row({"max_steps": 1000}), bounded_while_row({"checkpoints": 10}),
]
