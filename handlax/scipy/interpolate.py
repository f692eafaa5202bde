"""``handlax.scipy.interpolate``: interpolation on a regular grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as hnp
from ..effects.base.errors import BadArgument, ShapeMismatch
from ..effects.core.arrays import Array
from ..numpy.arrays.index_arrays import known

__all__ = ["RegularGridInterpolator"]


def _ascending(axis: Any, values: Any, d: int) -> tuple[Any, Any]:
    """The coordinates of axis ``d`` in ascending order, and the values permuted alike. Raises: BadArgument: they are
    not monotone.
    """
    steps = np.diff(np.asarray(axis))
    if (steps < 0).all():
        return axis[::-1], hnp.flip(values, d)
    if not (steps > 0).all():
        raise BadArgument(
            f"RegularGridInterpolator: the points of axis {d} must be strictly increasing or decreasing."
        )
    return axis, values


def _traced_ascending(axis: Any, values: Any, d: int) -> tuple[Any, Any]:
    """``_ascending`` for traced coordinates: values are NaN if the coordinates are not monotone."""
    steps = hnp.diff(axis)
    down = hnp.all(steps < 0)
    values = hnp.where(down, hnp.flip(values, d), hnp.where(hnp.all(steps > 0), values, hnp.nan))
    return hnp.where(down, axis[::-1], axis), values


class RegularGridInterpolator:
    """An interpolator on a regular grid: a function of points ``f[*s, d]`` with values ``f[*s, *v]``.

    Args:
        points: the coordinates along each of the d axes of the grid, in strictly increasing or decreasing order;
            where traced ones are in no order, the results are NaN.
        values: ``f[n_1, ..., n_d, *v]``.
        method: "linear", or "nearest".
        bounds_error: not supported, as errors cannot depend on values.
        fill_value: the value outside of the grid; None extrapolates.

    Raises: BadArgument, ShapeMismatch: another method, ``bounds_error``, or a grid that is not that of the values.
    Source: SciPy, ``RegularGridInterpolator``.

    >>> f = RegularGridInterpolator([[0.0, 1.0, 3.0]], hnp.array([0.0, 1.0, 5.0]))
    >>> f([[0.5], [2.0], [4.0]]).tolist()
    [0.5, 3.0, nan]
    """

    def __init__(
        self, points: Sequence[Any], values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = hnp.nan,
    ) -> None:
        name = "RegularGridInterpolator"
        if method not in ("linear", "nearest"):
            raise BadArgument(f'{name}: method must be "linear" or "nearest", got {method!r}.')
        if bounds_error:
            raise BadArgument(
                f"{name}: bounds_error must be False, got {bounds_error!r}.",
                hint="fill_value=nan marks points outside.",
            )
        values = hnp.asarray(values)
        axes = [hnp.asarray(axis) for axis in points]
        sizes = tuple([axis.shape[0] if axis.ndim == 1 else -1 for axis in axes])
        if values.shape[: len(axes)] != sizes:
            raise ShapeMismatch(f"{name}: the axes of the grid have the sizes {sizes}, got values {values.type}.")
        dtype = hnp.result_type(values, *axes, float)
        self.method, self.fill_value = method, fill_value
        self.values, self.grid = values.astype(dtype), []
        for d, axis in enumerate(axes):
            axis, self.values = (_ascending if known(axis) else _traced_ascending)(axis, self.values, d)
            self.grid.append(axis.astype(dtype))

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The values at the points ``xi: f[*s, d]``, or a tuple of d arrays that are broadcast.

        A vector ``f[n]`` is n points of a grid with one axis, else one point, for which the result has a first axis.
        """
        method = method or self.method
        if method not in ("linear", "nearest"):
            raise BadArgument(f'RegularGridInterpolator: method must be "linear" or "nearest", got {method!r}.')
        count = len(self.grid)
        if isinstance(xi, tuple):
            xi = hnp.stack(hnp.broadcast_arrays(*[hnp.asarray(x) for x in xi]), -1)
        elif hnp.ndim(xi) == 1:
            xi = hnp.asarray(xi)
            xi = xi[:, None] if count == 1 else xi[None]
        xi = hnp.asarray(xi)
        if xi.shape[-1:] != (count,):
            raise ShapeMismatch(f"RegularGridInterpolator: points must have {count} coordinates, got {xi.type}.")
        located = [self._locate(axis, xi[..., d]) for d, axis in enumerate(self.grid)]
        y = self._linear(located) if method == "linear" else self._nearest(located)
        if self.fill_value is None:
            return y
        outside = hnp.any(hnp.stack([outside for *_, outside in located]), 0)
        return hnp.where(outside.reshape(outside.shape + (1,) * (y.ndim - outside.ndim)), self.fill_value, y)

    def _locate(self, axis: Any, x: Any) -> tuple[Any, Any, Any]:
        """The index of the grid coordinate before ``x``, the relative distance from it, and whether ``x`` is outside.
        """
        before = hnp.clip(hnp.searchsorted(axis, x, side="right") - 1, 0, max(axis.shape[0] - 2, 0))
        if axis.shape[0] == 1:
            return before, hnp.zeros_like(x), x != axis[0]
        distance = (x - axis[before]) / (axis[before + 1] - axis[before])
        return before, distance, (x < axis[0]) | (x > axis[-1]) | hnp.isnan(x)

    def _linear(self, located: Any) -> Any:
        """The sum over the corners of the grid cell of their values, weighted by the distances from the others."""
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(located)):
            weight: Any = 1
            index = []
            for (before, distance, _), end, axis in zip(located, corner, self.grid):
                weight = weight * (distance if end else 1 - distance)
                index.append(hnp.minimum(before + end, axis.shape[0] - 1))
            corner = self.values[tuple(index)]
            total = total + corner * weight.reshape(weight.shape + (1,) * (corner.ndim - weight.ndim))
        return total

    def _nearest(self, located: Any) -> Any:
        """The values at the nearest corners of the grid cell."""
        index = [hnp.minimum(hnp.where(distance > 0.5, before + 1, before), axis.shape[0] - 1)
                 for (before, distance, _), axis in zip(located, self.grid)]
        return self.values[tuple(index)]
