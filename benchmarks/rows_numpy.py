"""``numpy``'s functions called eagerly: 60 on small arrays, and 40 over three sizes beside the better of two peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from .sides import Side, seeded
from .timing import Pair, Plan, Prepare, Row, timed

X, Y = seeded(8), seeded(8, seed=1)
SQUARE, INTEGERS = seeded(4, 4), np.arange(8, dtype=np.int32)
SMALL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{name: (lambda np, x, f=name: getattr(np, f)(x), (X,)) for name in (
        "abs", "exp", "log", "sqrt", "sin", "tanh", "floor", "sign", "square", "isnan", "negative", "log1p", "sum",
        "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "any", "all", "cumsum", "cumprod", "sort",
        "argsort", "median", "ptp", "flip", "ravel", "diff", "zeros_like", "ones_like", "count_nonzero", "atleast_2d",
        "nan_to_num")},
    **{name: (lambda np, x, y, f=name: getattr(np, f)(x, y), (X, Y)) for name in (
        "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "arctan2", "mod", "floor_divide",
        "less", "equal", "dot", "outer", "hypot", "logaddexp")},
    "where": (lambda np, x, y: np.where(x < y, x, y), (X, Y)),
    "concatenate": (lambda np, x, y: np.concatenate([x, y]), (X, Y)),
    "stack": (lambda np, x, y: np.stack([x, y]), (X, Y)),
    "clip": (lambda np, x: np.clip(x, 0.3, 0.6), (X,)),
    "reshape": (lambda np, x: np.reshape(x, (2, 4)), (X,)),
    "transpose": (lambda np, x: np.transpose(x), (SQUARE,)),
    "take": (lambda np, x, i: np.take(x, i), (X, INTEGERS)),
}  # fmt: skip


def _calls(f: Callable[..., Any], arrays: tuple[Any, ...]) -> Callable[[Side], Prepare]:
    def make(side: Side) -> Prepare:
        module, xs = side.np, [side.array(x) for x in arrays]
        return lambda: lambda: f(module, *xs)

    return make


def _median(plan: Plan) -> Pair:
    pairs = {name: timed(_calls(*case), samples_per_round=2)(plan) for name, case in SMALL.items()}
    slowest = sorted(pairs, key=lambda name: -pairs[name].ratio)
    notes = [f"{name}: {pairs[name].ours:.1f} us, JAX {pairs[name].theirs:.1f}, ratio {pairs[name].ratio:.2f}"
             for name in slowest if pairs[name].ratio > 1 / 3]  # fmt: skip
    middle = statistics.median([pair.ratio for pair in pairs.values()])
    return Pair(middle, 1.0, (f"{len(pairs)} functions; above a third: {len(notes)}", *notes))


ROWS = [Row("eager numpy, 60 functions of f32[8], median", 1 / 3, _median, unit="ratio", beside=False)]
