"""Chebyshev series that interpolate a function on [-1, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.caches import cached
from ...types.dtypes import finfo
from ..elementwise.arithmetic import like, mul, sub

SPARE = 16  # coefficients below epsilon / SPARE, relative to the largest, are left out


@cached("Chebyshev coefficients", 64)
def chebyshev_coefficients(f: Callable[[Any], Any], count: int) -> tuple[float, ...]:
    """The Chebyshev coefficients of the polynomial that interpolates ``f`` at the ``count`` Chebyshev nodes.

    Cosines of reduced angles and exact sums leave an error of 1e-17 in them; NumPy's ``chebinterpolate`` leaves 1e-15.
    """
    n = np.arange(count)
    values = f(np.cos(np.pi * (n + 0.5) / count))
    cosines = np.cos(np.pi / (2 * count) * np.arange(4 * count))
    angles = np.outer(n, 2 * n + 1) % (4 * count)
    sums = [math.fsum(values * row) * 2 / count for row in cosines[angles]]
    return (sums[0] / 2, *sums[1:])


def chebyshev(t: Any, f: Callable[[Any], Any], count: int) -> Any:
    """``f(t)`` for ``-1 <= t <= 1`` in the precision of ``t``, by Clenshaw's recurrence.

    Args:
        f: a function of NumPy arrays, always the same object, since its coefficients are cached.
        count: the number of coefficients that float64 needs.
    """
    coefficients = np.array(chebyshev_coefficients(f, count))
    size = np.abs(coefficients)
    least = float(finfo(t.type.dtype).eps) / SPARE * size.max()
    kept = coefficients[: 1 + int(np.max(np.nonzero(size > least)[0]))]
    twice = t + t
    b, before = like(t, 0.0), like(t, 0.0)
    for coefficient in reversed(kept[1:].tolist()):
        b, before = sub(mul(twice, b), before) + like(t, coefficient), b
    return sub(mul(t, b), before) + like(t, float(kept[0]))
