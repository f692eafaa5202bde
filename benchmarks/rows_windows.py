"""Convolutions and reductions over windows: compiled beside JAX, and eager beside JAX and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .jitted import run_time
from .rows_vocabulary import agree
from .sides import OURS, Side, seeded
from .timing import Prepare, Row, timed

Program = Callable[[Side, Any, Any], Any]
WORDS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def _agree(ours: Any, theirs: Any) -> None:
    """Each of the results, one array or two, up to rounding of its largest element."""
    for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (ours, theirs)]):
        agree(a, b)


def _conv(*strides: int, groups: int = 1) -> Program:
    return lambda side, x, w: side.lax.conv_general_dilated(
        x, w, strides, "SAME", dimension_numbers=WORDS[len(strides)], feature_group_count=groups
    )


def _transposed(side: Side, x: Any, w: Any) -> Any:
    return side.lax.conv_transpose(x, w, (2, 2), "SAME")


def _pooled(side: Side, x: Any, w: Any) -> Any:
    return side.lax.reduce_window(x, -np.inf, side.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def _summed(side: Side, x: Any, w: Any) -> Any:
    return side.lax.reduce_window(x, 0.0, side.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")


def _gradients(f: Program) -> Program:
    """Of the sum of squares, by both operands."""
    return lambda side, x, w: side.lib.grad(lambda x, w: (f(side, x, w) ** 2).sum(), (0, 1))(x, w)


IMAGES, SMALL = seeded(8, 32, 32, 16), seeded(1, 8, 8, 3)
HALF, SEQUENCES, VOLUMES = seeded(8, 16, 16, 16), seeded(16, 256, 16), seeded(2, 12, 12, 12, 8)
DEPTHWISE = seeded(3, 3, 1, 16, seed=1)
WEIGHTS, FEW = seeded(3, 3, 16, 32, seed=1), seeded(3, 3, 3, 4, seed=1)
COMPILED = [
    ("conv 3x3", _conv(1, 1), IMAGES, WEIGHTS),
    ("conv 3x3, strides 2", _conv(2, 2), IMAGES, WEIGHTS),
    ("gradients of conv 3x3", _gradients(_conv(1, 1)), IMAGES, WEIGHTS),
    ("conv_transpose 3x3", _transposed, HALF, WEIGHTS),
    ("gradients of conv_transpose 3x3", _gradients(_transposed), HALF, WEIGHTS),
    ("depthwise conv 3x3", _conv(1, 1, groups=16), IMAGES, DEPTHWISE),
    ("gradients of depthwise conv 3x3", _gradients(_conv(1, 1, groups=16)), IMAGES, DEPTHWISE),
    ("conv of sequences", _conv(1), SEQUENCES, seeded(5, 16, 32, seed=1)),
    ("gradients of conv of sequences", _gradients(_conv(1)), SEQUENCES, seeded(5, 16, 32, seed=1)),
    ("conv of volumes", _conv(1, 1, 1), VOLUMES, seeded(3, 3, 3, 8, 16, seed=1)),
    ("gradients of conv of volumes", _gradients(_conv(1, 1, 1)), VOLUMES, seeded(3, 3, 3, 8, 16, seed=1)),
    ("max of windows 3x3", _pooled, IMAGES, WEIGHTS),
    ("gradients of max of windows 3x3", _gradients(_pooled), IMAGES, WEIGHTS),
    ("sum of windows 3x3", _summed, IMAGES, WEIGHTS),
]
EAGER = [
    ("conv 3x3", _conv(1, 1), IMAGES, WEIGHTS),
    ("conv 3x3 of a small image", _conv(1, 1), SMALL, FEW),
    ("max of windows 3x3", _pooled, IMAGES, WEIGHTS),
]


def _jitted(f: Program, *data: Any) -> Callable[[Side], Any]:
    return lambda side: (side.lib.jit(lambda x, w: f(side, x, w)), [side.array(x) for x in data])


def _eager(f: Program, *data: Any) -> Callable[[Side], Prepare]:
    def prepare(side: Side) -> Prepare:
        x, w = [side.array(x) for x in data]
        return lambda: lambda: f(side, x, w)

    return prepare


def _convolved(n: int, m: int) -> Callable[[Side], Prepare]:
    """NumPy's convolution of two vectors beside itself."""

    def prepare(side: Side) -> Prepare:
        x, y = seeded(n), seeded(m, seed=1)
        if side is not OURS:
            return lambda: lambda: np.convolve(x, y)
        a, b = side.array(x), side.array(y)
        return lambda: lambda: side.np.convolve(a, b)

    return prepare


ROWS = [
    *[Row(f"compiled {name}", 1.05, run_time(_jitted(f, *data), _agree, 5)) for name, f, *data in COMPILED],
    *[Row(f"eager {name}, beside JAX", 1.50, timed(_eager(f, *data), check=agree)) for name, f, *data in EAGER],
    *[
        Row(f"eager convolve, {n} numbers with {m}, beside NumPy", 1.50, timed(_convolved(n, m), check=agree))
        for n, m in ((10_000, 50), (100_000, 100))
    ],
]
