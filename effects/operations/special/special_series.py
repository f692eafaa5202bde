"""Iterated expansions of special functions.

An expansion is three functions of a state: ``start``, ``more`` (whether to continue) and ``step``. They use infix
operators and functions of ``m``, as in ``complex_functions``, so that NumPy evaluates the code that programs record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.caches import per_process
from ...types import dtypes
from ..foundations.half_precision import scipy_special

LIMIT = 2000.0  # the maximal number of iterations
SeriesState = Sequence[Any]


class SeriesExpansion(NamedTuple):
    """The iteration ``state = start(m, *operands)``, then ``state = step(m, *state)`` while ``more(m, *state)``.

    ``m`` has the functions of the array API that the expansion uses: ``IN_NUMPY`` or ``PERFORMED``.
    """

    start: Callable[..., SeriesState]
    more: Callable[..., Any]
    step: Callable[..., SeriesState]

    def last_state(self, m: Any, *operands: Any) -> SeriesState:
        """The final state, computed by NumPy."""
        state = self.start(m, *operands)
        while bool(self.more(m, *state)):
            state = self.step(m, *state)
        return state


@per_process
def lgamma_coefficients() -> list[float]:
    """The Taylor coefficients of log Gamma(2 + z) / z for abs(z) <= 1/2: 1 - gamma, then (-1)^k (zeta(k) - 1) / k."""
    k = np.arange(2.0, 28.0)
    return [1 - float(np.euler_gamma), *map(float, (-1) ** k * scipy_special("zetac")(k) / k)]


def precision(x: Any) -> float:
    """The machine epsilon of the dtype of ``x``."""
    return float(dtypes.finfo(x.dtype).eps)


def terms_remain(m: Any, n: Any, term: Any, total: Any, *rest: Any) -> Any:
    """The test ``more`` of a sum whose state begins with the term's index, the term, and the sum."""
    return m.any((abs(term) > abs(total) * precision(n)) & (n < LIMIT))
