"""What the laws of derivatives share: random tangents, their pairing, and difference quotients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects.base.wrapping import ignoring_errors
from ..effects.core.arrays import as_array
from ..effects.trees import pytrees
from ..effects.types import dtypes
from .closeness import assert_all, data
from .law import Inapplicable


def is_smooth(x: Any) -> bool:
    """Whether an array can have a derivative: its dtype is inexact."""
    return dtypes.is_inexact(x.dtype)


def smooth_part(tree: Any) -> list[Any]:
    """The arrays of a tree that can have derivatives."""
    return [y for y in map(as_array, pytrees.leaves(tree)) if is_smooth(y)]


def drawn_tangents(seed: int, *xs: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """Random tangents of arrays, of their dtypes, with parts between -1 and 1; float0 for those without derivative."""
    rng = np.random.default_rng([seed, 1])  # other numbers than those of inputs

    def tangent(x: Any) -> np.ndarray[Any, Any]:
        if not is_smooth(x):
            return np.zeros(x.shape, dtypes.float0)
        parts = [rng.uniform(-1, 1, x.shape) for _ in range(1 + dtypes.is_complex(x.dtype))]
        return np.asarray(sum([part * unit for part, unit in zip(parts, (1, 1j))])).astype(x.dtype)

    return tuple(map(tangent, xs))


def pairing(us: Sequence[Any], vs: Sequence[Any]) -> float:
    """The pairing <u, v>: the real part of the sum of products, in 64 bits; float0 counts nothing."""
    pairs = [(widened(data(u)), widened(data(v))) for u, v in zip(us, vs) if u.dtype != dtypes.float0]
    return sum([float(np.real(np.sum(u * v))) for u, v in pairs])


def widened(x: Any) -> Any:
    """``x`` in 64 bits, if it is real or complex in fewer."""
    return x.astype("complex128" if dtypes.is_complex(x.dtype) else "float64") if is_smooth(x) else x


@ignoring_errors
def assert_quotients(
    tangents: Sequence[Any], moved: Callable[[float], Sequence[Any]], what: str = "the tangent", narrow: bool = False
) -> None:
    """Assert that tangents are central difference quotients of ``moved(d)``, the results a distance ``d`` along.

    They may differ by what rounding the results does to a quotient, and by a part of the tangent itself. Elements that
    are not finite have no quotient, nor have those that jump or bend in between, where half the distance gives another
    one. ``narrow``: of 32 bits.

    Raises: Inapplicable: no element has a quotient.
    """
    step, tolerance, bend = (1e-2, 2e-2, 0.1) if narrow else (1e-6, 2e-4, 0.01)
    halved, compared = None, 0
    for k, (tangent, (quotient, size)) in enumerate(zip(map(data, tangents), _quotients(moved, step), strict=True)):
        noise, defined = 100 * float(dtypes.finfo(quotient.dtype).eps) / step * size, np.isfinite(quotient)
        largest = float(np.abs(tangent[defined & np.isfinite(tangent)]).max(initial=0.0))
        close = np.isclose(tangent, quotient, rtol=tolerance, atol=tolerance / 10 * largest + noise)
        if not np.all(close | ~defined):
            halved = halved or _quotients(moved, step / 2)
            defined &= np.abs(halved[k][0] - quotient) <= noise + bend * np.abs(quotient)
        assert_all(close | ~defined, tangent, quotient, f"{what} of result {k}" if len(tangents) > 1 else what)
        compared += int(np.count_nonzero(defined))
    if not compared:
        raise Inapplicable("no result has a difference quotient: there is none, or it jumps or is not finite")


def _quotients(moved: Callable[[float], Sequence[Any]], step: float) -> list[tuple[np.ndarray[Any, Any], float]]:
    """The central difference quotients, and the size of the results of which they are."""
    pairs = [(data(up), data(down)) for up, down in zip(moved(step), moved(-step), strict=True)]
    size = lambda x: float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    return [((up - down) / (2 * step), size(up)) for up, down in pairs]
