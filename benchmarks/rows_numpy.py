"""``numpy``'s functions called eagerly: 60 on small arrays, and 40 over three sizes beside the better of two peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .sides import OURS, THEIRS, Side, seeded
from .timing import Pair, Plan, Prepare, Row, make_timer, medians, timed

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
}


def _calls(f: Callable[..., Any], arrays: tuple[Any, ...]) -> Callable[[Side], Prepare]:
    def make(side: Side) -> Prepare:
        module, xs = side.np, [side.array(x) for x in arrays]
        return lambda: lambda: f(module, *xs)

    return make


def _median(plan: Plan) -> Pair:
    pairs = {name: timed(_calls(*case), samples_per_round=2)(plan) for name, case in SMALL.items()}
    slowest = sorted(pairs, key=lambda name: -pairs[name].ratio)
    notes = [f"{name}: {pairs[name].ours:.1f} us, JAX {pairs[name].theirs:.1f}, ratio {pairs[name].ratio:.2f}"
             for name in slowest if pairs[name].ratio > 1 / 3]
    middle = statistics.median([pair.ratio for pair in pairs.values()])
    return Pair(middle, 1.0, (f"{len(pairs)} functions; above a third: {len(notes)}", *notes))


@dataclass(frozen=True)
class Call:
    """A function of a namespace like NumPy's, with its arguments at each of three sizes."""

    name: str
    f: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], ...]


def _vectors(count: int) -> tuple[tuple[Any, ...], ...]:
    return tuple([tuple([seeded(n, seed=i) for i in range(count)]) for n in (100_000, 1_000_000, 4_000_000)])


def _matrices(*columns: bool) -> tuple[tuple[Any, ...], ...]:
    """Well conditioned square matrices of three sizes, positive definite; a column is a right-hand side."""
    return tuple([
        tuple([seeded(n, 1) if column else _definite(n) for column in columns or (False,)]) for n in (64, 128, 256)
    ])


def _definite(n: int) -> np.ndarray[Any, Any]:
    x = seeded(n, n)
    return x @ x.T / n + np.eye(n, dtype=np.float32)


LARGE = [
    *[Call(name, lambda np, x, f=name: getattr(np, f)(x), _vectors(1)) for name in (
        "exp", "log", "sin", "tanh", "sqrt", "floor", "abs", "sum", "max", "argmax", "mean", "var", "cumsum", "cumprod",
        "sort", "argsort", "median", "exp2", "diff", "isnan", "any")],
    *[Call(name, lambda np, x, y, f=name: getattr(np, f)(x, y), _vectors(2)) for name in (
        "add", "multiply", "divide", "maximum", "power", "arctan2", "mod", "floor_divide", "less", "dot")],
    Call("where", lambda np, x, y: np.where(x < y, x, y), _vectors(2)),
    Call("concatenate", lambda np, x, y: np.concatenate([x, y]), _vectors(2)),
    Call("fft", lambda np, x: np.fft.fft(x), _vectors(1)),
    Call("rfft", lambda np, x: np.fft.rfft(x), _vectors(1)),
    Call("matmul", lambda np, x, y: np.matmul(x, y), _matrices(False, False)),
    Call("solve", lambda np, x, y: np.linalg.solve(x, y), _matrices(False, True)),
    Call("inv", lambda np, x: np.linalg.inv(x), _matrices()),
    Call("cholesky", lambda np, x: np.linalg.cholesky(x), _matrices()),
    Call("qr", lambda np, x: np.linalg.qr(x), _matrices()),
]


def _beside_numpy(call: Call, arrays: tuple[Any, ...], plan: Plan) -> Pair:
    """The times of handlax and of the faster of JAX and NumPy, each result awaited.

    NumPy's are ready when it returns; of calls that are not awaited JAX computes several at the same time.
    """
    sides = [(side.np, [side.array(x) for x in arrays], side.ready) for side in (OURS, THEIRS)]
    timers = [make_timer(_awaited(call.f, *side), lambda result: result, False)
              for side in (*sides, (np, arrays, lambda result: result))]
    rest = _SPINNING if max([x.ndim for x in arrays]) == 2 else 0.0
    ours, theirs, own = [1e6 * m for m in medians(timers, plan.rounds * (1 if rest else 2), rest=rest)]
    return Pair(ours, min(theirs, own), (f"NumPy {own:.3g} us, JAX {theirs:.3g} us",))


_SPINNING = 0.05  # seconds in which the threads of BLAS give way: beside them a call may take a hundred times as long


def _awaited(f: Callable[..., Any], module: Any, xs: Any, ready: Callable[[Any], Any]) -> Prepare:
    return lambda: lambda: ready(f(module, *xs))


def _worst(plan: Plan) -> Pair:
    cells = {f"{call.name}, size {i}": (call, arrays)
             for call in LARGE for i, arrays in enumerate(call.arguments, 1)}
    pairs = {name: _beside_numpy(*cell, plan) for name, cell in cells.items()}
    # cells that are slower once more: of so many samples some are chance
    pairs.update({name: _beside_numpy(*cells[name], plan) for name, pair in pairs.items() if pair.ratio > 1.2})
    slowest = sorted(pairs, key=lambda name: -pairs[name].ratio)
    notes = [f"{name}: {pairs[name].ours:.3g} us, ratio {pairs[name].ratio:.2f} ({pairs[name].notes[0]})"
             for name in slowest if pairs[name].ratio > 1.2]
    above = sum([pair.ratio > 1.5 for pair in pairs.values()])
    worst = pairs[slowest[0]]
    return Pair(worst.ours, worst.theirs, (f"{len(pairs)} calls; above 1.2: {len(notes)}, 1.5: {above}", *notes[:24]))


ROWS = [
    Row("eager numpy, 60 functions of f32[8], median", 1 / 3, _median, unit="ratio", beside=False),
    Row("eager numpy, 40 functions at three sizes beside the better of NumPy and JAX, worst", 1.5, _worst),
]
