"""Lanes of different lengths: attention, and a model with it, beside JAX's program over padding with a mask; what does
not relate the rows of a lane beside JAX's program over as many rows, of which it knows no lanes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .jitted import compile_time, run_time, temporary_memory
from .sides import OURS, Side, assert_agree, on
from .timing import Row

LANES, LONGEST, HEADS, WIDTH = 32, 512, 4, 64


@functools.cache
def lengths(occupancy: float = 0.45) -> np.ndarray[Any, Any]:
    """Lengths from 16 to 512, which fill that part of padding to 512: the best of 200 draws; all 512 where it is 1."""
    if occupancy == 1:
        return np.full(LANES, LONGEST, np.int32)
    draws = [np.random.default_rng(seed).integers(LONGEST // 32, LONGEST + 1, LANES) for seed in range(200)]
    draws = [np.where(np.arange(LANES) == draw.argmax(), LONGEST, draw) for draw in draws]
    return min(draws, key=lambda draw: abs(draw.mean() / LONGEST - occupancy)).astype(np.int32)


@functools.cache
def data(count: int, occupancy: float) -> tuple[list[Any], list[Any]]:
    """Arrays of rows, and the same padded."""
    n, rng = lengths(occupancy), np.random.default_rng(0)
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
    occupancy: float = 0.45

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        """The jitted function on one side, and its arguments there."""
        rows, padded = data(4, self.occupancy)
        n = lengths(self.occupancy)
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
        lengths = "all the longest, " * (self.occupancy == 1) + ("known" if self.known else "as values")
        return f"ragged attention, lengths {lengths}, {('forward', 'value and gradient')[self.differentiate]}"

    def agree(self, ours: Any, theirs: Any) -> None:
        mine = ours if isinstance(ours, (list, tuple)) else [ours]
        assert_agree(list(mine), rows_of(theirs, self.occupancy), 2e-3, 2e-2)


def rows_of(result: Any, occupancy: float) -> Any:
    """JAX's padded results as rows."""
    mask = np.arange(LONGEST) < lengths(occupancy)[:, None]
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [
        rows_of(x, occupancy) if isinstance(x, (list, tuple)) else np.asarray(x)[mask] if x.ndim else x for x in parts
    ]


WORDS, LABELS = 1000, 16
MODEL = {
    "embed": (WORDS, HEADS * WIDTH),
    "before": (HEADS * WIDTH,),
    "qkv": (3, HEADS * WIDTH, HEADS, WIDTH),
    "out": (HEADS, WIDTH, HEADS * WIDTH),
    "after": (HEADS * WIDTH,),
    "up": (HEADS * WIDTH, 512),
    "down": (512, HEADS * WIDTH),
    "head": (HEADS * WIDTH, LABELS),
}


def sentence_loss(side: Side, w: Any, words: Any, label: Any, mask: Any = None) -> Any:
    """A layer of a transformer and the mean over the words, in the words of either library."""

    def normalised(x: Any, scale: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return scale * centred / side.np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-6))

    x = w["embed"][words]
    q, k, v = side.np.einsum("nd,cdhw->cnhw", normalised(x, w["before"]), w["qkv"])
    x = x + side.np.einsum("nhw,hwd->nd", attention(side, q, k, v, mask), w["out"])
    x = x + side.lib.nn.gelu(normalised(x, w["after"]) @ w["up"]) @ w["down"]
    mean = x.mean(0) if mask is None else side.np.where(mask[:, None], x, 0).sum(0) / mask.sum()
    return -side.lib.nn.log_softmax(mean @ w["head"])[label]


@dataclass(frozen=True)
class RaggedModel:
    """A model on lanes of any lengths, and JAX's on padded ones."""

    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        n, rng = lengths(), np.random.default_rng(0)
        mask = np.arange(LONGEST) < n[:, None]
        words = rng.integers(0, WORDS, (LANES, LONGEST), np.int32)
        w = {name: rng.standard_normal(shape, np.float32) / 16 for name, shape in MODEL.items()}
        label = rng.integers(0, LABELS, LANES, np.int32)
        each = functools.partial(sentence_loss, side)
        if side is OURS:
            mapped = side.lib.vmap(each, (None, side.lib.ragged_axis, 0))
            f = lambda w, words, label, n: mapped(w, side.lib.Ragged(words, n, LONGEST), label).mean()
        else:
            mapped = side.lib.vmap(each, (None, 0, 0, 0))
            f = lambda w, words, label, n: mapped(w, words, label, side.np.arange(LONGEST) < n[:, None]).mean()
        g = side.lib.value_and_grad(f) if self.differentiate else f
        return side.lib.jit(g), on(side, [w, words[mask] if side is OURS else words, label, n])

    @property
    def title(self) -> str:
        return f"ragged model, lengths as values, {('forward', 'value and gradient')[self.differentiate]}"


CHANNELS = 256
ON_ROWS: dict[str, Callable[[Side, Any, Any], Any]] = {
    "elementwise": lambda side, x, w: side.np.tanh(x) * x + w[0],
    "sum": lambda side, x, w: x.sum(0),
    "product with a shared matrix": lambda side, x, w: x @ w,
}


@dataclass(frozen=True)
class OnRows:
    """An operation that does not relate the rows of a lane, on lanes that fill half of padding; JAX's on all rows."""

    name: str
    known: bool
    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        n, rng = lengths(0.5), np.random.default_rng(0)
        x = rng.standard_normal((n.sum(), CHANNELS), np.float32)
        w = rng.standard_normal((CHANNELS, CHANNELS), np.float32) / 16
        static, apply = tuple(n.tolist()), ON_ROWS[self.name]
        f: Any = lambda x, w, n: apply(side, x, w)
        if side is OURS:
            axis = side.lib.ragged_axis
            each = lambda x, w: apply(side, x, w)
            mapped = side.lib.vmap(each, (axis, None), 0 if self.name == "sum" else axis)

            def f(x: Any, w: Any, n: Any) -> Any:
                y = mapped(side.lib.Ragged(x, static if self.known else n, LONGEST), w)
                return y if self.name == "sum" else y.data

        loss = lambda x, w, n: (f(x, w, n) ** 2).sum()
        g = side.lib.grad(loss, argnums=(0, 1)) if self.differentiate else f
        return side.lib.jit(g), [side.array(v) for v in (x, w, n)]

    @property
    def title(self) -> str:
        lengths = "known" if self.known else "as values"
        return f"ragged {self.name}, lengths {lengths}, {('forward', 'gradient')[self.differentiate]}, and as many rows"

    def agree(self, ours: Any, theirs: Any) -> None:
        if self.name != "sum":  # JAX's has one sum, not one for each lane
            assert_agree(ours, theirs, 2e-3, 2e-2)


WAYS = [(known, differentiate) for known in (True, False) for differentiate in (False, True)]
CASES = [RaggedAttention(*way) for way in WAYS]
ROWS = []
for case in CASES:
    time_bar, time_goal, memory_bar = (0.40, 0.30, 0.40) if case.known else (0.55, 0.45, 0.25)
    memory = temporary_memory(case.jitted)
    ROWS += [
        Row(case.title, time_bar, run_time(case.jitted, case.agree), time_goal),
        Row(f"{case.title}: temporary memory", memory_bar, memory, unit="bytes"),
    ]
MODELS = [RaggedModel(differentiate) for differentiate in (False, True)]
for model in MODELS:
    ROWS += [
        Row(model.title, 0.55, run_time(model.jitted, lambda x, y: assert_agree(x, y, 5e-3, 5e-3)), 0.45),
        Row(f"{model.title}: compile, processor time", 4.0 - model.differentiate / 2, compile_time(model.jitted), 1.5),
    ]
FULL = [RaggedAttention(*way, 1) for way in WAYS]
ROWS += [Row(case.title, 1.1, run_time(case.jitted, case.agree)) for case in FULL]
ON_ROWS_CASES = [OnRows(name, *way) for name in ON_ROWS for way in WAYS]
ROWS += [Row(case.title, 1.2, run_time(case.jitted, case.agree, 5)) for case in ON_ROWS_CASES]
