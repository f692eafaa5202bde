"""Numbers in a row and grids of them: arange, linspace, logspace, geomspace, meshgrid, indices, vander, r_, c_."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..effects import dtypes, shapes
from ..effects.arithmetic import floor, sign
from ..effects.arrays import Box, from_numpy, lift
from ..effects.broadcasting import broadcast_shape, promote
from ..effects.complexes import real
from ..effects.conversion import convert
from ..effects.creation import broadcasted_iota, iota
from ..effects.errors import BadArgument, ConcretizationError, ShapeMismatch
from ..effects.refusals import no_sharding
from ..effects.special import log
from .creation import array, asarray, placed, shape_of
from .joining import atleast_1d, concatenate, stack
from .shaping import broadcast_to, moveaxis


def _known(x: Any) -> Any:
    """The number that a scalar argument is; raises where it is not known."""
    if x.__class__ is int or x.__class__ is float:
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


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """``start, start + step, ...`` up to before ``stop``; ``arange(n)`` is ``0, ..., n - 1``.

    The arguments are known numbers. Its dtype is that to which they promote. Raises: BadArgument: ``step`` is 0.

    >>> arange(1, 7, 2)
    Array([1, 3, 5], dtype=int32)
    """
    no_sharding("arange", out_sharding)
    given = [x for x in (start, stop, step) if x is not None]
    kind = dtypes.result_type(*given) if dtype is None else dtypes.canonical(dtype)
    low, high, by = _known(start), None if stop is None else _known(stop), 1 if step is None else _known(step)
    if high is None:
        low, high = 0, low
    if not by:
        raise BadArgument("arange: the step must not be 0.")
    if not (low.__class__ is int and high.__class__ is int and by.__class__ is int) or dtypes.is_bool(kind):
        return placed(from_numpy(np.arange(low, high, by, dtype=kind), copy=False), device)
    y = iota(kind, max(0, -((low - high) // by)))
    if by != 1:
        y = y * convert(lift(by), kind)
    return placed(y + array(low, kind) if low else y, device)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` numbers from ``start`` to ``stop`` at equal distances, without ``stop`` where ``endpoint=False``.

    Arrays as bounds broadcast; the numbers lie along ``axis`` of the result. Both ends are met exactly.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = num.__index__()
    if num < 0:
        raise BadArgument(f"linspace: num must not be negative, got {num}.")
    found = dtypes.to_inexact(dtypes.result_type(start, stop))
    kind = found if dtype is None else dtypes.canonical(dtype)
    work = dtypes.to_inexact(dtypes.promote_types(found, kind))
    first, last = convert(lift(start), work), convert(lift(stop), work)
    bounds = broadcast_shape("linspace", first.shape, last.shape)
    first, last = broadcast_to(first, bounds), broadcast_to(last, bounds)
    parts = num - 1 if endpoint else num
    if num > 1:
        delta = (last - first) / parts
        fraction = convert(iota(dtypes.to_real(work), parts) / parts, work)
        fraction = shapes.reshape(fraction, (parts, *(1,) * len(bounds)))
        row = (1, *bounds)
        y = shapes.reshape(first, row) * (1 - fraction) + shapes.reshape(last, row) * fraction
        y = concatenate([y, shapes.reshape(last, row)]) if endpoint else y
    else:
        delta = shapes.full(first.type, np.nan) if endpoint or not num else last - first
        y = shapes.broadcast(first, (num, *bounds))
    if dtypes.is_integer(kind):
        y = floor(y)
    y = convert(moveaxis(y, 0, axis), kind)
    return (placed(y, device), convert(delta, work)) if retstep else placed(y, device)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base ** linspace(start, stop, num)``.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    found = dtypes.to_inexact(dtypes.result_type(start, stop, base))
    kind = found if dtype is None else dtypes.canonical(dtype)
    work = dtypes.to_inexact(dtypes.promote_types(found, kind))
    steps = linspace(start, stop, num, endpoint, dtype=work, axis=axis)
    return convert(asarray(base, work) ** steps, kind)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """``num`` numbers from ``start`` to ``stop``, each the same multiple of the one before it; of one sign.

    >>> geomspace(1, 8, 4).shape
    (4,)
    """
    found = dtypes.to_inexact(dtypes.result_type(start, stop))
    kind = found if dtype is None else dtypes.canonical(dtype)
    work = dtypes.to_inexact(dtypes.promote_types(found, kind))
    first, last = convert(lift(start), work), convert(lift(stop), work)
    negative = (1 - sign(_real(first))) * (1 - sign(_real(last)))
    flip = convert(1 - floor(negative / 2), work)  # -1 where both are negative, else 1
    ten = float(np.log(10.0))
    low, high = (log(flip * bound) / ten for bound in (first, last))
    y = flip * logspace(low, high, num, endpoint, dtype=work)
    return convert(moveaxis(y, 0, axis), kind)


def _real(x: Any) -> Any:
    return real(x) if dtypes.is_complex(x.type.dtype) else x


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Grids from vectors: ``meshgrid(x, y, indexing="ij")[0][i, j] == x[i]``; ``xy`` exchanges the first two axes.

    With ``sparse``, axes along which nothing changes have size 1.

    >>> [grid.shape for grid in meshgrid(np.zeros(2), np.zeros(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise BadArgument(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    xs = [lift(x) for x in xi]
    if any(x.ndim > 1 for x in xs):
        raise ShapeMismatch(f"meshgrid: vectors are needed, got {', '.join(str(x.type) for x in xs)}.")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = 1, 0
    sizes = [0] * len(xs)
    for x, d in zip(xs, order):
        sizes[d] = x.size
    grids = []
    for x, d in zip(xs, order):
        row = tuple([n if i == d else 1 for i, n in enumerate(sizes)])
        grids.append(shapes.reshape(x, row) if sparse else broadcast_to(shapes.reshape(x, row), tuple(sizes)))
    return tuple(grids)


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """``indices(s)[d][i] == i[d]``, for every index ``i`` of the shape; with ``sparse`` a tuple of open grids.

    >>> indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    sizes = shape_of(dimensions, "indices")
    kind = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    if sparse:
        return tuple([
            shapes.reshape(iota(kind, n), tuple([n if i == d else 1 for i in range(len(sizes))]))
            for d, n in enumerate(sizes)
        ])  # fmt: skip
    if not sizes:
        return shapes.full(lift(0).type.update(shape=(0,), dtype=kind, weak=False), 0)
    return stack([broadcasted_iota(kind, sizes, d) for d in range(len(sizes))])


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """``vander(x, n)[i, j] == x[i] ** (n - 1 - j)``, ``x[i] ** j`` where ``increasing``.

    >>> vander(np.array([2, 3], "int32"), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = lift(x)
    if x.ndim != 1:
        raise ShapeMismatch(f"vander: a vector is needed, got {x.type}.")
    n = x.size if N is None else N.__index__()
    if n < 0:
        raise BadArgument(f"vander: the number of columns must not be negative, got {n}.")
    exponents = arange(n, dtype=x.dtype) if increasing else arange(n - 1, -1, -1, dtype=x.dtype)
    return shapes.reshape(x, (x.size, 1)) ** shapes.reshape(exponents, (1, n))


def _interval(part: slice, where: str) -> Any:
    """What a slice ``start:stop:step`` stands for: a range, or ``step.imag`` numbers with both ends."""
    start = 0 if part.start is None else part.start
    if part.stop is None:
        raise BadArgument(f"{where}: a slice needs its end, got {part}.")
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


class _Grid:
    """``mgrid[a:b, c:d]`` and ``ogrid``: the grids of ranges, whole or open."""

    __slots__ = ("name", "sparse")

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _interval(key, self.name)
        rows = promote(*[_interval(part, self.name) for part in key])
        grids = meshgrid(*rows, indexing="ij", sparse=self.sparse)
        return list(grids) if self.sparse else stack(grids)

    def __repr__(self) -> str:
        return f"handlax.numpy.{self.name}"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Joined:
    """``r_[a:b, c, x]`` and ``c_``: ranges, numbers and arrays joined along an axis."""

    __slots__ = ("name", "axis", "rank", "at")

    def __init__(self, name: str, axis: int, rank: int, at: int):
        self.name, self.axis, self.rank, self.at = name, axis, rank, at

    def __getitem__(self, key: Any) -> Any:
        axis, rank, at, as_matrix = self.axis, self.rank, self.at, None
        parts = list(key) if isinstance(key, tuple) else [key]
        if isinstance(parts[0], str):
            word = parts.pop(0)
            if word in ("r", "c"):
                as_matrix, axis, rank = word, -1, 2
            else:
                numbers = [int(number) for number in word.split(",")]
                axis, rank, at = (*numbers, *(axis, rank, at)[len(numbers) :])
        xs = [_interval(part, self.name) if isinstance(part, slice) else atleast_1d(asarray(part)) for part in parts]
        scalars = [not isinstance(part, slice) and not asarray(part).ndim for part in parts]
        if as_matrix is not None:
            y = concatenate(xs)
            return shapes.reshape(y, (1, y.size) if as_matrix == "r" else (y.size, 1))
        return concatenate([x if single and rank < 2 else _raised(x, rank, at) for x, single in zip(xs, scalars)], axis)

    def __repr__(self) -> str:
        return f"handlax.numpy.{self.name}"


def _raised(x: Any, rank: int, at: int) -> Any:
    """``x`` with axes of size 1 up to this rank, its own axes beginning at ``at``."""
    new = rank - x.ndim
    if new <= 0:
        return x
    at = at % (new + 1) if at >= 0 else (new + 1 + at) % (new + 1)
    return shapes.reshape(x, (*(1,) * at, *x.shape, *(1,) * (new - at)))


r_ = _Joined("r_", axis=0, rank=1, at=-1)
c_ = _Joined("c_", axis=-1, rank=2, at=0)
