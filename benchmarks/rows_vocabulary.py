"""Transforms of arrays, eigenvalues and singular values: compiled beside JAX, eager beside NumPy and beside JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .jitted import OfArray, run_time
from .sides import OURS, Side, assert_agree, seeded
from .timing import Prepare, Row, timed


@dataclass(frozen=True)
class Call:
    """A function of a namespace such as NumPy's and an array."""

    title: str
    f: Callable[[Any, Any], Any]
    data: np.ndarray[Any, Any]

    def __str__(self) -> str:
        return f"{self.title}, {self.data.dtype.name}{list(self.data.shape)}"

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        return side.lib.jit(lambda x: self.f(side.np, x)), [side.array(self.data)]

    def eager(self, side: Side) -> Prepare:
        x = side.array(self.data)
        return lambda: lambda: self.f(side.np, x)

    def beside_numpy(self, side: Side) -> Prepare:
        return self.eager(side) if side is OURS else lambda: lambda: self.f(np, self.data)


def agree(ours: Any, theirs: Any, rounding: float = 1e-6) -> None:
    """Equal up to rounding of the largest element."""
    assert_agree(ours, theirs, 1e-4, rounding * float(np.abs(theirs).max()))


def _agree_roughly(ours: Any, theirs: Any) -> None:
    agree(ours, theirs, 1e-4)


def _complex(*shape: int) -> np.ndarray[Any, Any]:
    return (seeded(*shape) + 1j * seeded(*shape, seed=1)).astype(np.complex64)


COMPILED = [
    Call("fft", lambda np, x: np.fft.fft(x), _complex(128, 1024)),
    Call("fftn", lambda np, x: np.fft.fftn(x), _complex(64, 64, 32)),
    Call("rfft", lambda np, x: np.fft.rfft(x), seeded(128, 1024)),
    Call("irfft2", lambda np, x: np.fft.irfft2(x), _complex(512, 257)),
    Call("svd", lambda np, x: np.linalg.svd(x)[1], seeded(64, 64)),
    Call("svd", lambda np, x: np.linalg.svd(x, full_matrices=False)[1], seeded(16, 40, 20)),
    Call("eigh", lambda np, x: np.linalg.eigh(x)[0], seeded(64, 64)),
    Call("eigvalsh", lambda np, x: np.linalg.eigvalsh(x), seeded(16, 32, 32)),
    *[Call("qr", lambda np, x: np.linalg.qr(x)[0], seeded(n, n)) for n in (8, 64)],
    *[Call("solve", lambda np, x: np.linalg.solve(x, x[:, :1]), seeded(n, n)) for n in (8, 64)],
    *[Call("cholesky", lambda np, x: np.linalg.cholesky(x @ x.T + np.eye(len(x))), seeded(n, n)) for n in (8, 64)],
]
GRADIENTS = [
    OfArray("rfft", lambda side, x: abs(side.np.fft.rfft(x)), seeded(128, 1024), True),
    OfArray("irfft", lambda side, x: side.np.fft.irfft(side.np.fft.rfft(x)), seeded(128, 1024), True),
]
OF_VECTORS = [
    OfArray("svd", lambda side, x: side.np.linalg.svd(x, False)[1], seeded(64, 64), True),
    OfArray("eigh", lambda side, x: side.np.linalg.eigh(x)[1] * side.np.arange(64), seeded(64, 64), True),
]
EAGER = [
    *[Call("fft", lambda np, x: np.fft.fft(x), _complex(*shape)) for shape in ((1000,), (10, 1000), (1000, 1000))],
    *[Call("rfft2", lambda np, x: np.fft.rfft2(x), seeded(*shape)) for shape in ((32, 32), (100, 100), (1000, 1000))],
]
ROWS = [
    *[Row(f"compiled {call}", 1.00, run_time(call.jitted, agree, 3)) for call in COMPILED],
    *[Row(f"compiled {case}", 1.05, run_time(case.jitted, agree, 5)) for case in GRADIENTS],
    *[Row(f"compiled {case}", 1.05, run_time(case.jitted, _agree_roughly, 5)) for case in OF_VECTORS],
    *[Row(f"eager {call}, beside JAX", 1.50, timed(call.eager, check=agree)) for call in EAGER],
    *[Row(f"eager {call}, beside NumPy", 1.50, timed(call.beside_numpy, check=agree)) for call in EAGER],
]
