"""Attention and sums over lanes of different lengths, beside JAX's programs over padding with a mask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .sides import OURS, THEIRS, Side, assert_agree
from .timing import Measure, Pair, Plan, Prepare, Row, timed

LANES, LONGEST, HEADS, WIDTH = 32, 512, 4, 64


@functools.cache
def lengths() -> np.ndarray[Any, Any]:
    """Lengths from 16 to 512, of which padding to 512 would fill 45 %: the best of 200 draws."""
    draws = [np.random.default_rng(seed).integers(LONGEST // 32, LONGEST + 1, LANES) for seed in range(200)]
    draws = [np.where(np.arange(LANES) == draw.argmax(), LONGEST, draw) for draw in draws]
    return min(draws, key=lambda draw: abs(draw.mean() / LONGEST - 0.45)).astype(np.int32)


@functools.cache
def data(count: int) -> tuple[list[Any], list[Any]]:
    """Arrays of rows, and the same padded."""
    n, rng = lengths(), np.random.default_rng(0)
    mask = np.arange(LONGEST) < n[:, None]
    rows, padded = [], []
    for _ in range(count):
        rows.append(rng.standard_normal((n.sum(), HEADS, WIDTH), np.float32))
        padded.append(np.zeros((LANES, LONGEST, HEADS, WIDTH), np.float32))
        padded[-1][mask] = rows[-1]
    return rows, padded


def attention(side: Side, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Attention of one sequence [n, heads, width], in the words of either library."""
    scores = side.np.einsum("qhd,khd->hqk", q, k) / np.float32(np.sqrt(WIDTH))
    if mask is not None:
        scores = side.np.where(mask, scores, np.float32(-1e30))
    return side.np.einsum("hqk,khd->qhd", side.lib.nn.softmax(scores, axis=-1), v)


@dataclass(frozen=True)
class RaggedAttention:
    """Whether the lengths are known when the program is traced, and whether it is differentiated."""

    known: bool
    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        """The jitted function on one side, and its arguments there."""
        rows, padded = data(4)
        n = lengths()
        if side is OURS:
            static = tuple(n.tolist())
            axis = side.lib.ragged_axis
            mapped = side.lib.vmap(lambda qkv: attention(side, *qkv), axis, axis)
            args, weight = [*rows[:3], n], rows[3]
            f = lambda q, k, v, n: mapped(side.lib.Ragged((q, k, v), static if self.known else n, LONGEST)).data
        else:
            each = side.lib.vmap(functools.partial(attention, side))
            args, weight = [*padded[:3], n], padded[3]
            f = lambda q, k, v, n: each(q, k, v, side.np.arange(LONGEST) < n[:, None])
        if self.differentiate:
            g = side.lib.value_and_grad(lambda *xs: (f(*xs) * weight).sum(), argnums=(0, 1, 2))
        else:
            g = f
        return side.lib.jit(g), [side.array(x) for x in args]

    @property
    def title(self) -> str:
        lengths = "known" if self.known else "as values"
        return f"ragged attention, lengths {lengths}, {('forward', 'value and gradient')[self.differentiate]}"


def rows_of(result: Any) -> Any:
    """JAX's padded results as rows."""
    mask = np.arange(LONGEST) < lengths()[:, None]
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [rows_of(x) if isinstance(x, (list, tuple)) else np.asarray(x)[mask] if x.ndim else x for x in parts]


def agree(ours: Any, theirs: Any) -> None:
    mine = ours if isinstance(ours, (list, tuple)) else [ours]
    assert_agree(list(mine), rows_of(theirs), 2e-3, 2e-2)


def run_time(case: RaggedAttention) -> Measure:
    def make(side: Side) -> Prepare:
        f, args = case.jitted(side)
        f(*args)
        return lambda: lambda: f(*args)

    return timed(make, check=agree, samples_per_round=1)


def memory(case: RaggedAttention) -> Callable[[Plan], Pair]:
    def measure(plan: Plan) -> Pair:
        sizes = []
        for side in (OURS, THEIRS):
            f, args = case.jitted(side)
            sizes.append(f.lower(*args).compile().memory_analysis().temp_size_in_bytes)
        return Pair(*sizes)

    return measure


CASES = [RaggedAttention(known, differentiate) for known in (True, False) for differentiate in (False, True)]
ROWS = [
    row
    for case in CASES
    for row in (
        Row(case.title, 0.40 if case.known else 0.55, run_time(case), 0.30 if case.known else 0.45),
        Row(f"{case.title}: temporary memory", 0.40 if case.known else 0.25, memory(case), unit="bytes"),
    )
]
