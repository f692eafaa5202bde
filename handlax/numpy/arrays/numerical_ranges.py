"""Numerical ranges and grids of them: arange, linspace, logspace, geomspace, meshgrid, mgrid, ogrid."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from ...effects.base.errors import BadArgument, ConcretizationError, ShapeMismatch, need_one_of
from ...effects.core.arrays import Array, Box, as_array, from_numpy
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.arithmetic import floor, like, sign
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.elementwise.complex_parts import complex as complex_of
from ...effects.operations.elementwise.complex_parts import imag, real
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.elementwise.transcendental import log
from ...effects.operations.foundations import shapes
from ...effects.operations.manipulation.creation import broadcasted_iota, iota
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ...effects.types import dtypes
from ...effects.types.dtype_promotion import promote_all
from ...effects.types.extent import SYMBOLIC, Extent, as_size, fits, positive, unbound
from ...effects.types.parts_of_axes import ceiling_divided
from ...interpreters.core.eager_programs import programs
from .creation import array, asarray, placed
from .joining_splitting import concatenate, stack
from .shape_manipulation import broadcast_to, moveaxis

__all__ = ["arange", "geomspace", "linspace", "logspace", "meshgrid", "mgrid", "ogrid"]


def _known(x: Any) -> Any:
    """A scalar argument as a number, or a symbolic dimension. Raises: ConcretizationError: it is traced."""
    x = unbound(x)
    if x.__class__ is int or x.__class__ is float or x.__class__ is Extent:
        return x
    if isinstance(x, Box):
        raise ConcretizationError(
            f"arange: start, stop and step must be known, got {x.type} under {x.run.label}.",
            hint="make the argument static (static_argnums); lax.iota and x.shape have known sizes.",
        )
    value = np.asarray(x)
    if value.shape:
        raise ShapeMismatch(f"arange: start, stop and step must be scalars, got shape {value.shape}.")
    return value.item() if value.dtype.kind in "iub" else value[()]


def _whole(x: Any) -> Any:
    """A bound or step of ``arange`` beside a symbolic dimension: as an int, or a symbolic dimension as it is.

    Raises: BadArgument: it is not a whole number.
    """
    if x.__class__ is Extent or x == int(x):
        return x if x.__class__ is Extent else int(x)
    raise BadArgument(
        f"arange: from one length to another there are whole steps, got {x}.", hint="hnp.arange(n) * step + start."
    )


@cuts_result
def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """``start, start + step, ...``, excluding ``stop``; ``arange(n)`` is ``0, ..., n - 1``.

    The arguments must be concrete; the dtype is the one to which they promote, unless given.
    Raises: BadArgument: ``step`` is 0. ConcretizationError: an argument is traced.

    >>> arange(1, 7, 2)
    Array([1, 3, 5], dtype=int32)
    """
    numbers = [0 if isinstance(x, SYMBOLIC) else x for x in (start, stop, step) if x is not None]
    kind = dtypes.canonical(dtype) if dtype is not None else dtypes.result_type(*numbers)
    low, high, by = _known(start), None if stop is None else _known(stop), 1 if step is None else _known(step)
    if high is None:
        low, high = 0, low
    if not by:
        raise BadArgument("arange: the step must not be 0.")
    if Extent in (low.__class__, high.__class__, by.__class__):
        low, high, by = map(_whole, (low, high, by))
        steps = ceiling_divided(high - low if by > 0 else low - high, abs(by))
        y = broadcasted_iota(kind, (positive(steps),), 0)
        y = y if by == 1 else y * convert(by, kind)
        return placed(y if low.__class__ is int and low == 0 else y + convert(low, kind), device)
    if not (low.__class__ is int and high.__class__ is int and by.__class__ is int) or dtypes.is_bool(kind):
        return placed(from_numpy(np.arange(low, high, by, dtype=kind), copy=False), device)
    y = iota(kind, max(0, -((low - high) // by)))
    if by != 1:
        y = y * convert(by, kind)
    return placed(y + array(low, kind) if low else y, device)


def _dtypes_of(start: Any, stop: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype of a range, by default the inexact one to which its bounds promote, and the dtype of its computation.

    The latter is the promotion of both, whether or not ``numpy_dtype_promotion`` is strict.
    """
    inferred = dtypes.to_inexact(*dtypes.result_type(start, stop, return_weak_type_flag=True))
    kind = inferred if dtype is None else dtypes.canonical(dtype)
    return kind, promote_all(((inferred, False), (dtypes.to_inexact(kind), False)), strict=False)[0]


def _between(first: Any, last: Any, num: Any, parts: Any) -> Any:
    """``y[i] == first + i * (last - first) / parts`` for ``i < num``.

    Computed in float64 as ``(first * (parts - i) + last * i) / parts``, where the products and the sum of whole numbers
    are exact, fused or not. The divisor is an array: XLA multiplies by the reciprocal of a constant.
    """
    if dtypes.is_complex(first.dtype):
        return complex_of(*[_between(part(first), part(last), num, parts) for part in (real, imag)])
    size, wide = (num, *first.shape), dtypes.float64
    i = convert(broadcasted_iota(dtypes.int32, size, 0), wide)
    if isinstance(num, Extent):
        scale, count = 1.0, shapes.broadcast(convert(parts + positive(1 - parts), wide), size)
    else:  # by a power of two, so that the products do not overflow
        scale, count = 2.0 ** -parts.bit_length(), shapes.full(i.type, parts)
    low, high = (shapes.broadcast(convert(bound, wide), size) for bound in (first, last))
    unit, inside = like(i, scale), i > 0
    total = low * ((count - i) * unit) + high * (i * unit)
    inner = total / select(inside, count * unit, like(i, 1))
    return convert(select(inside, select(i == count, high, inner), low), first.dtype)


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Array: ...
@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, retstep: Literal[True], dtype: Any = None,
    axis: int = 0, device: Any = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:
    """``num`` numbers from ``start`` to ``stop`` evenly spaced, excluding ``stop`` if ``endpoint=False``.

    Arrays as bounds broadcast; ``axis`` is the axis of the numbers in the result. Both ends are exact, and so are whole
    numbers between whole ends.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = as_size(num, "linspace: num")
    if not fits(0, num):
        raise BadArgument(f"linspace: num must not be negative, got {num}.")
    kind, work = _dtypes_of(start, stop, dtype)
    first, last = convert(start, work), convert(stop, work)
    bounds = broadcast_shape("linspace", first.shape, last.shape)
    first, last = broadcast_to(first, bounds), broadcast_to(last, bounds)
    parts = num - 1 if endpoint else num
    if isinstance(num, Extent) or num > 1:
        delta = (last - first) / convert(parts, work)
        y = _between(first, last, num, parts)
    else:
        delta = shapes.full(first.type, np.nan) if endpoint or not num else last - first
        y = shapes.broadcast(first, (num, *bounds))
    if dtypes.is_integer(kind):
        y = floor(y)
    y = convert(moveaxis(y, 0, axis), kind)
    return (placed(y, device), convert(delta, work)) if retstep else placed(y, device)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """``base ** linspace(start, stop, num)``.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    kind, work = _dtypes_of(start, stop, dtype)
    return convert(asarray(base, work) ** linspace(start, stop, num, endpoint, dtype=work, axis=axis), kind)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """``num`` numbers from ``start`` to ``stop``, with a constant ratio; ``start`` and ``stop`` must have one sign.

    The first is ``start``, and with ``endpoint`` the last ``stop``, exactly.

    >>> geomspace(1, 8, 4).shape
    (4,)
    """
    kind, work = _dtypes_of(start, stop, dtype)
    first, last = convert(start, work), convert(stop, work)
    negative = (1 - sign(_real(first))) * (1 - sign(_real(last)))
    flip = convert(1 - floor(negative / 2), work)  # -1 where both are negative, else 1
    ten = float(np.log(10.0))
    low, high = (log(flip * bound) / ten for bound in (first, last))
    y = flip * logspace(low, high, num, endpoint, dtype=work)
    bounds = [broadcast_to(v, (1, *y.type.shape[1:])) for v in (first, last)]
    if num > 1 and endpoint:
        y = concatenate([bounds[0], y[1 : num - 1], bounds[1]], 0)
    elif num > 0:
        y = concatenate([bounds[0], y[1:]], 0)
    return convert(moveaxis(y, 0, axis), kind)


def _real(x: Any) -> Any:
    return real(x) if dtypes.is_complex(x.type.dtype) else x


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Grids from vectors: ``meshgrid(x, y, indexing="ij")[0][i, j] == x[i]``; ``xy`` exchanges the first two axes.

    With ``sparse``, axes along which a grid is constant have size 1.

    >>> [grid.shape for grid in meshgrid(np.zeros(2), np.zeros(3))]
    [(3, 2), (3, 2)]
    """
    need_one_of("meshgrid: indexing", indexing, ("xy", "ij"))
    xs = [as_array(x) for x in xi]
    if any(x.ndim > 1 for x in xs):
        raise ShapeMismatch(f"meshgrid: vectors are needed, got {', '.join(str(x.type) for x in xs)}.")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = 1, 0
    sizes = tuple([xs[d].size for d in order])
    open_grids = [
        shapes.reshape(x, tuple([n if i == d else 1 for i, n in enumerate(sizes)])) for x, d in zip(xs, order)
    ]
    return tuple(open_grids if sparse else [broadcast_to(grid, sizes) for grid in open_grids])


def interval_of_slice(part: slice, where: str) -> Any:
    """The numbers of a slice: ``arange(start, stop, step)``, or for ``step=nj`` ``linspace(start, stop, n)``."""
    start = 0 if part.start is None else part.start
    if part.stop is None:
        raise BadArgument(f"{where}: a slice needs its end, got {part}.")
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


class GridMaker:
    """The class of ``mgrid`` and ``ogrid``: ``mgrid[a:b, c:d]`` gives the grids of ranges, ``ogrid`` the open ones."""

    __slots__ = ("name", "sparse")

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return interval_of_slice(key, self.name)
        if not key:
            return [] if self.sparse else from_numpy(np.zeros(0, dtypes.default_int()))
        rows = promote(*[interval_of_slice(part, self.name) for part in key])
        grids = meshgrid(*rows, indexing="ij", sparse=self.sparse)
        return list(grids) if self.sparse else stack(grids)

    def __repr__(self) -> str:
        return f"handlax.numpy.{self.name}"


mgrid = GridMaker("mgrid", sparse=False)
"""The coordinates of the points of a grid, stacked: ``mgrid[0:2, 0:3]`` has the shape ``(2, 2, 3)``."""
ogrid = GridMaker("ogrid", sparse=True)
"""The coordinates along each axis of a grid, which broadcast: ``ogrid[0:2, 0:3]`` has the shapes ``(2, 1)``, ``(1,
3)``.
"""


programs(globals(), direct=("arange",))  # mostly of numbers that change from call to call
