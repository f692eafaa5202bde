"""Eager evaluation: single calls, transformations of small functions, sizes and dtypes, idle handlers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import ml_dtypes
import numpy as np

import handlax

from .sides import OURS, Side, assert_agree, renewed, seeded
from .timing import Pair, Plan, Prepare, Row, single, timed


def call(f: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> Callable[[Side], Prepare]:
    """``f(side, *arrays)``; the last of many calls is awaited."""

    def make(side: Side) -> Prepare:
        xs = [side.array(x) for x in arrays]
        return lambda: lambda: f(side, *xs)

    return make


SMALL, SQUARE, LARGER_SQUARE = seeded(8), seeded(32, 32), seeded(128, 128)

SINGLE = [
    Row("eager x + y, f32[8]", 0.30, timed(call(lambda s, x, y: x + y, SMALL, SMALL)), 0.12),
    Row("eager sum, f32[8]", 0.70, timed(call(lambda s, x: s.np.sum(x), SMALL)), 0.33),
    Row("eager matmul, f32[32,32]", 0.70, timed(call(lambda s, x, y: x @ y, SQUARE, SQUARE)), 0.33),
    Row("eager matmul, f32[128,128]", 1.00, timed(call(lambda s, x, y: x @ y, LARGER_SQUARE, LARGER_SQUARE))),
]


def drawn(name: str, *args: Any) -> Callable[[Side], Prepare]:
    """``random.name(key, *args)`` of a typed key, awaited."""

    def make(side: Side) -> Prepare:
        f, key = getattr(side.lib.random, name), side.lib.random.key(0)
        return lambda: lambda: side.ready(f(key, *args))

    return make


def _same_keys(ours: Any, theirs: Any) -> None:
    assert_agree(handlax.random.key_data(ours), jax.random.key_data(theirs))


DRAWS = [
    *[Row(f"eager random.normal, f32[{n}]", 1.00, timed(drawn("normal", (n,)))) for n in (10, 10_000, 1_000_000)],
    *[Row(f"eager random.split into {n}", 1.00, timed(drawn("split", n), check=_same_keys)) for n in (2, 10_000)],
]


def _sin_x(side: Side) -> Any:
    sin = side.np.sin

    def f(x):
        return sin(x) * x

    return f


def _sum_sin_x(side: Side) -> Any:
    sin, total = side.np.sin, side.np.sum

    def f(x):
        return total(sin(x) * x)

    return f


SMALL_TRANSFORMS: dict[str, Callable[[Side, Any], Any]] = {
    "jvp": lambda side, x: (_sin_x(side), lambda f: side.lib.jvp(f, (x,), (x,))),
    "vmap": lambda side, x: (_sin_x(side), lambda f: side.lib.vmap(f)(x)),
    "grad": lambda side, x: (_sum_sin_x(side), lambda f: side.lib.grad(f)(x)),
    "vjp": lambda side, x: (_sin_x(side), lambda f: side.lib.vjp(f, x)[1](x)),
}


def eager_transform(name: str, cold: bool) -> Row:
    """A transformation of a small function, evaluated eagerly; cold: of a function with new code."""

    def make(side: Side) -> Prepare:
        f, apply = SMALL_TRANSFORMS[name](side, side.array(SMALL))

        def prepare() -> Callable[[], Any]:
            g = renewed(f) if cold else f
            return lambda: side.ready(apply(g))

        return prepare

    bar, aim = (0.10, 0.04) if cold else (0.05, 0.02)
    return Row(f"eager {name}, {'cold' if cold else 'warm'}", bar, timed(make, cold=cold), aim)


OPERATIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "add": (lambda s, x, y: x + y, 2), "mul": (lambda s, x, y: x * y, 2), "div": (lambda s, x, y: x / y, 2),
    "maximum": (lambda s, x, y: s.np.maximum(x, y), 2), "less": (lambda s, x, y: x < y, 2),
    "exp": (lambda s, x: s.np.exp(x), 1), "tanh": (lambda s, x: s.np.tanh(x), 1), "sin": (lambda s, x: s.np.sin(x), 1),
    "sqrt": (lambda s, x: s.np.sqrt(x), 1), "sum": (lambda s, x: s.np.sum(x), 1), "max": (lambda s, x: s.np.max(x), 1),
    "where": (lambda s, x, y: s.np.where(x < y, x, y), 2),
}
SIZES = (1_000, 1_000_000)
DTYPES = {"f32": np.dtype("float32"), "bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype("float16")}


@dataclass(frozen=True)
class Case:
    operation: str
    size: int
    dtype: str
    origin: str

    def __str__(self) -> str:
        return f"{self.operation} {self.dtype}[{self.size}] {self.origin}"


CASES = [Case(o, n, d, w) for o in OPERATIONS for n in SIZES for d in DTYPES for w in ("fresh", "of jit")]
_measured: dict[Plan, dict[Case, Pair]] = {}


def _case(case: Case) -> Callable[[Side], Prepare]:
    f, arity = OPERATIONS[case.operation]
    data = [seeded(case.size, dtype=DTYPES[case.dtype], seed=i) for i in range(arity)]

    def make(side: Side) -> Prepare:
        xs = [side.array(x) for x in data]
        if case.origin == "of jit":
            # two distinct results of one program; doubling and halving are exact in every dtype
            halve = side.lib.jit(lambda x: (x + x) * 0.5)
            xs = [side.ready(halve(x)) for x in xs]
        return lambda: lambda: f(side, *xs).block_until_ready()

    return make


def _agree(case: Case) -> Callable[[Any, Any], None]:
    # a long sum in 16 bits depends on the order of its terms
    tolerance = {"f32": 2e-5, "bf16": 2e-2, "f16": 4e-3}[case.dtype] * (4 if case.operation == "sum" else 1)
    return lambda ours, theirs: assert_agree(ours, theirs, rtol=tolerance)


WORST = 1.50


def all_cases(plan: Plan) -> dict[Case, Pair]:
    """Every case, measured once for both rows that read it; cases above the bar again, with more samples."""
    if plan not in _measured:
        quick = {case: timed(_case(case), check=_agree(case), samples_per_round=3)(plan) for case in CASES}
        again = {case: timed(_case(case), check=_agree(case))(plan) for case in CASES if quick[case].ratio > WORST}
        _measured[plan] = {**quick, **again}
    return _measured[plan]


def _median(plan: Plan) -> Pair:
    cases = all_cases(plan)
    ratios = sorted(cases, key=lambda c: cases[c].ratio)
    slower = [f"{c}: {cases[c].ours:.1f} us, JAX {cases[c].theirs:.1f}, ratio {cases[c].ratio:.2f}"
              for c in reversed(ratios) if cases[c].ratio > 1.0]
    middle = statistics.median([pair.ratio for pair in cases.values()])
    return Pair(middle, 1.0, (f"{len(cases)} cases; slower than JAX: {len(slower)}", *slower[:24]))


def _worst(plan: Plan) -> Pair:
    cases = all_cases(plan)
    worst = max(cases, key=lambda c: cases[c].ratio)
    return Pair(cases[worst].ours, cases[worst].theirs, (str(worst),))


@handlax.operation
class Unused:
    """An operation that no measured program performs: a handler with a clause for it alone is idle."""

    def result_type(op, x):
        return x


def idle(staged: bool) -> Callable[[Plan], float]:
    """Microseconds that an idle handler adds to an operation."""
    length = 100
    handler = handlax.handler({Unused: lambda op, x: x})

    def chain(x):
        for _ in range(length):
            x = x + x
        return x

    x = OURS.array(np.zeros(8, np.float32))
    idly = handlax.handle(handler)(chain)
    plain, under = (
        (lambda: handlax.make_program(chain)(x), lambda: handlax.make_program(idly)(x))
        if staged else (lambda: chain(x), lambda: idly(x))
    )

    def measure(plan: Plan) -> float:
        np.testing.assert_array_equal(np.asarray(idly(x)), np.asarray(chain(x)))
        added = []
        for i in range(plan.rounds * 90):
            pair = [0.0, 0.0]
            for which, thunk in ((0, plain), (1, under)) if i % 2 else ((1, under), (0, plain)):
                start = time.perf_counter()
                thunk()
                pair[which] = time.perf_counter() - start
            added.append(pair[1] - pair[0])
        return statistics.median(added) / length * 1e6

    return measure


ROWS = [
    *SINGLE,
    *DRAWS,
    *[eager_transform(name, cold) for cold in (True, False) for name in SMALL_TRANSFORMS],
    Row("eager, 12 operations x sizes x dtypes x origins, median", 1.00, _median, 0.50, unit="ratio", beside=False),
    Row("eager, 12 operations x sizes x dtypes x origins, worst", WORST, _worst),
    Row("idle handler, per eager operation", 0.3, single(idle(False)), 0.0, unit="us", beside=False),
    Row("idle handler, per recorded operation", 0.3, single(idle(True)), 0.0, unit="us", beside=False),
]
