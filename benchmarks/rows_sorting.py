"""Sorts, cumulative sums and their relatives over axes of several dtypes: compiled beside JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jitted import OfArray, run_time
from .rows_vocabulary import agree
from .sides import seeded
from .timing import Row


def _integers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-1000, 1000, shape).astype(np.int32)


VECTOR, MATRIX, INTEGERS = seeded(20_000), seeded(256, 256), _integers(256, 256)
CASES = [
    OfArray("sort", lambda side, x: side.np.sort(x), VECTOR),
    *[OfArray(f"sort along {axis}", lambda side, x, axis=axis: side.np.sort(x, axis), x)
      for axis in (0, 1) for x in (MATRIX, INTEGERS)],
    *[OfArray(f"argsort along {axis}", lambda side, x, axis=axis: side.np.argsort(x, axis), MATRIX) for axis in (0, 1)],
    OfArray("sort of pairs", lambda side, x: side.lax.sort((x, 2 * x), num_keys=2)[1], VECTOR),
    OfArray("top_k, 8", lambda side, x: side.lax.top_k(x, 8)[0], MATRIX),
    OfArray("cumsum", lambda side, x: side.np.cumsum(x), VECTOR),
    *[OfArray(f"cumsum along {axis}", lambda side, x, axis=axis: side.np.cumsum(x, axis), x)
      for axis in (0, 1) for x in (MATRIX, INTEGERS)],
    *[OfArray(f"{name} along 1", lambda side, x, name=name: getattr(side.lax, name)(x, 1), MATRIX, differentiate)
      for name in ("cumprod", "cummax", "cumlogsumexp") for differentiate in (False, True)],
    OfArray("sort along 1", lambda side, x: side.np.sort(x, 1), MATRIX, True),
    OfArray("cumsum along 1", lambda side, x: side.np.cumsum(x, 1), MATRIX, True),
]
ROWS = [Row(f"compiled {case}", 1.05, run_time(case.jitted, agree, 5)) for case in CASES]
