"""What the laws of derivatives share: random tangents, their pairing, and difference quotients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects.base.wrapping import ignoring_errors
from ..effects.core.arrays import as_array
from ..effects.trees import pytrees
from ..effects.types import dtypes
from .closeness import assert_all, data, widened
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
    return float(pairing_terms(us, vs).sum())


@ignoring_errors
def pairing_terms(us: Sequence[Any], vs: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The terms of the pairing <u, v>, those that are finite."""
    pairs = [(widened(data(u)), widened(data(v))) for u, v in zip(us, vs) if u.dtype != dtypes.float0]
    terms = np.concatenate([np.zeros(0), *[np.real(u * v).ravel() for u, v in pairs]])
    return np.asarray(terms[np.isfinite(terms)])


@ignoring_errors
def assert_quotients(
    tangents: Sequence[Any], moved: Callable[[float], Sequence[Any]], what: str = "the tangent", narrow: bool = False
) -> None:
    """Assert that tangents are central difference quotients of ``moved(d)``, the results a distance ``d`` along.

    They may differ by what rounding the results does to a quotient, and by a part of the tangent itself. An element has
    a quotient where this is finite, is not lost in rounding, and is that to either side, of half the distance, too: it
    neither jumps nor bends in between. Distances are tried in turn until an element has one. ``narrow``: of 32 bits.

    Raises: Inapplicable: no element has a quotient.
    """
    steps, *tolerances = NARROW_STEPS if narrow else STEPS
    for step in steps:
        if _compared(tangents, moved, what, step, *tolerances):
            return
    raise Inapplicable("no result has a difference quotient: it jumps, bends, is not finite, or is lost in rounding")


# Distances, the first of which suits numbers and slopes near 1, a larger one slopes that are small beside results, and
# the others operands near 0; the tolerance of a tangent, and how far the quotients to both sides may be apart.
STEPS = (1e-6, 1e-3, 1e-9, 1e-12, 1e-15), 2e-4, 0.01
NARROW_STEPS = (1e-2, 1e-5, 1e-8, 1e-11), 2e-2, 0.1


def _compared(
    tangents: Sequence[Any], moved: Callable[[float], Sequence[Any]], what: str, step: float, tolerance: float,
    bend: float,
) -> int:
    """How many elements of tangents have a quotient at a distance, which they are asserted to be."""
    ends, sides, compared = [list(map(data, moved(d))) for d in (step, -step)], None, 0
    for k, (tangent, up, down) in enumerate(zip(map(data, tangents), *ends, strict=True)):
        quotient = (up - down) / (2 * step)
        noise = 100 * float(dtypes.finfo(quotient.dtype).eps) / step * _largest(up)
        close = np.isclose(
            tangent, quotient, rtol=tolerance, atol=tolerance / 10 * _largest(tangent[np.isfinite(quotient)]) + noise)
        lost = noise > 0.1 * max(_largest(tangent), _largest(quotient))
        defined = np.isfinite(quotient) & ((tangent == quotient) | (not lost))
        if not np.all(close | ~defined):
            sides = sides or [list(map(data, moved(d))) for d in (step / 2, 0.0, -step / 2)]
            right, middle, left = (parts[k] for parts in sides)
            for side in (right - middle, middle - left):
                allowed = noise + bend * np.maximum(np.abs(quotient), np.abs(tangent))
                defined &= np.abs(2 * side / step - quotient) <= allowed
        assert_all(close | ~defined, tangent, quotient, f"{what} of result {k}" if len(tangents) > 1 else what)
        compared += int(np.count_nonzero(defined))
    return compared


def _largest(x: np.ndarray[Any, Any]) -> float:
    """The size of the largest finite element, 0 if there is none."""
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
