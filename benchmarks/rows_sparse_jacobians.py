"""Sparse Jacobians by the interpreter of examples/interpreters, beside JAX's dense ``jacfwd``."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .jitted import run_time
from .sides import OURS, Side, assert_agree, seeded
from .timing import Row

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "interpreters"


def brusselator(side: Side) -> Callable[[Any], Any]:
    """A reaction with diffusion on a ring, both substances in one vector."""

    def slopes(u: Any) -> Any:
        a, b = u.reshape(2, -1)
        spread = lambda c: side.np.roll(c, 1) - 2 * c + side.np.roll(c, -1)
        return side.np.concatenate([1 + a * a * b - 4 * a + spread(a), 3 * a - a * a * b + spread(b)])

    return slopes


def jacobian(size: int, side: Side) -> tuple[Any, list[Any]]:
    """The jitted Jacobian as a dense matrix; here by compressed columns, whose pattern is found beforehand."""
    f, u = brusselator(side), side.array(seeded(size))
    if side is not OURS:
        return side.lib.jit(side.lib.jacfwd(f)), [u]
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    compressed = importlib.import_module("compressed_jacobian").sparse_jacobian(f, np.zeros(size, np.float32))
    return side.lib.jit(lambda u: compressed(u).todense()), [u]


ROWS = [
    Row(f"Jacobian of {size} equations with 4 unknowns each, compressed beside dense", 1.00,
        run_time(functools.partial(jacobian, size), functools.partial(assert_agree, rtol=1e-4)))
    for size in (400, 2000)
]
