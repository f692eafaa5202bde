"""Choosing elements by conditions: where, nonzero, compress, choose, select, piecewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects import dtypes, shapes, slicing
from ..effects.arithmetic import add, div, rem
from ..effects.arrays import Array, ConcreteArray, from_numpy, lift, scalar
from ..effects.broadcasting import broadcast_shape, promote, together
from ..effects.comparison import eq, ge, select_n
from ..effects.conversion import convert
from ..effects.creation import iota
from ..effects.cumulative import cumsum
from ..effects.errors import BadArgument, ConcretizationError, DTypeMismatch, ShapeMismatch
from ..effects.indexing import Scatter
from ..effects.shapes import canonical_axis
from ..effects.stack import perform
from ..effects.windows import ScatterDimensionNumbers
from .creation import asarray
from .indexing import limited, positions, take
from .joining import stack
from .operands import no_out
from .shaping import broadcast_to, ravel
from .subscripts import FILL, INT32, getitem, on_host


def known(x: Any) -> bool:
    """Whether Python can look at the values of ``x``."""
    return not isinstance(x, Array) or isinstance(x, ConcreteArray)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """``where(c, x, y)[i] == x[i] if c[i] else y[i]``, all broadcast, ``x`` and ``y`` promoted to one dtype.

    With ``condition`` alone it is ``nonzero(condition)``.

    >>> where(np.array([True, False]), 1.0, 2.0)
    Array([1., 2.], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None or size is not None or fill_value is not None:
        raise BadArgument("where: takes a condition and both x and y, or a condition with size and fill_value.")
    c = condition if isinstance(condition, Array) else lift(condition)
    if c.type.dtype.kind != "b":
        c = truth(c)
    x, y = together("where", x, y)
    mine, shape = c.type.shape, x.type.shape or y.type.shape
    if mine and mine != shape:
        made = broadcast_shape("where", mine, shape)
        c = broadcast_to(c, made)
        x = broadcast_to(x, made) if x.type.shape else x
        y = broadcast_to(y, made) if y.type.shape or not x.type.shape else y
    return select_n(c, y, x)


def truth(x: Any) -> Any:
    """``x != 0``, as booleans."""
    return convert(x, np.dtype(bool))


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of the elements that are not zero, an array for each axis, in row-major order.

    With ``size``, so many of them: the first ones, filled up with ``fill_value`` (0 by default, or one for each axis).
    Without it the values must be known: under a transformation, ``size`` is needed.

    >>> nonzero(np.array([0, 3, 0, 4]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    x = lift(a)
    if not x.ndim:
        raise ShapeMismatch("nonzero: rank 1 at least is needed, got a scalar.", hint="use atleast_1d.")
    kind = dtypes.default_int()
    if size is None:
        if not known(x):
            where = x.run.label if x.run is not None else "no handler"
            raise ConcretizationError(
                f"nonzero: how many elements are not zero must be known, got {x.type} under {where}.",
                hint="name a number: size=n.",
            )
        return tuple([from_numpy(part.astype(kind), copy=False) for part in np.nonzero(np.asarray(x))])
    size = size.__index__()
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ShapeMismatch(f"nonzero: one fill value for each of {x.ndim} axes is needed, got {len(fills)}.")
    fills = tuple([convert(lift(0 if fill is None else fill), kind) for fill in fills])
    if not size or not x.size:
        return tuple([broadcast_to(fill, (size,)) for fill in fills])
    flat = _first_true(shapes.reshape(truth(x), (x.size,)), size, kind)
    found = ge(flat, scalar(0, kind))
    results, stride = [], x.size
    for n, fill in zip(x.shape, fills):
        stride //= n
        part = div(flat, scalar(stride, kind)) if stride > 1 else flat
        part = rem(part, scalar(n, kind)) if stride * n < x.size else part
        results.append(select_n(found, fill, part))
    return tuple(results)


def _first_true(mask: Any, size: int, kind: Any) -> Any:
    """The positions where a mask holds, ``size`` of them, -1 where there are no more."""
    n = mask.type.shape[0]
    nth = add(cumsum(convert(mask, kind)), scalar(-1, kind))
    # every place that holds is written to its own position; the others, and those beyond size, are dropped
    target = select_n(mask, scalar(size, kind), nth)
    if target.type.shape != (n,):
        target = broadcast_to(target, (n,))
    empty = shapes.full(nth.type.update(shape=(size,)), -1)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    op = Scatter(numbers, False, True, FILL)
    return perform(op, empty, shapes.reshape(target, (n, 1)), iota(kind, n))


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices of the elements that are not zero, one in each row; see ``nonzero`` for ``size``.

    >>> argwhere(np.array([[0, 1], [1, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = lift(a)
    if not x.ndim:
        found = nonzero(shapes.reshape(x, (1,)), size=size, fill_value=fill_value)
        return slicing.slice_in_dim(shapes.reshape(found[0], (found[0].size, 1)), 0, 0, axis=1)
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions of the elements of the flattened array that are not zero; see ``nonzero`` for ``size``.

    >>> flatnonzero(np.array([[0, 1], [1, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """The slices of ``a`` along ``axis`` where ``condition`` holds; with ``size`` so many, filled with ``fill_value``.

    >>> compress(np.array([True, False, True]), np.array([1, 2, 3], "int32"))
    Array([1, 3], dtype=int32)
    """
    no_out(out, "compress")
    x, flags = lift(a), lift(condition)
    if axis is None:
        x, axis = shapes.reshape(x, (x.size,)), 0
    if flags.ndim != 1:
        raise ShapeMismatch(f"compress: the condition must be a vector, got {flags.type}.")
    axis = canonical_axis(axis, x.ndim, "compress")
    n = x.shape[axis]
    if flags.size > n:  # NumPy: what lies beyond must not hold
        flags = slicing.slice_in_dim(flags, 0, n)
    chosen = flatnonzero(flags, size=size, fill_value=None if size is None else n)
    if size is None:
        return take(x, chosen, axis, mode="clip", indices_are_sorted=True, unique_indices=True)
    made = take(x, chosen, axis, mode="clip", indices_are_sorted=True)
    row = tuple([size if d == axis else 1 for d in range(x.ndim)])
    filled = shapes.reshape(eq(chosen, scalar(n, chosen.dtype)), row)
    return where(filled, convert(lift(fill_value), x.dtype, x.weak_type), made)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of ``arr`` where ``condition`` holds, as a vector; see ``compress`` for ``size``.

    >>> extract(np.array([[True, False]]), np.array([[1, 2]], "int32"))
    Array([1], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """``choose(a, xs)[i] == xs[a[i]][i]``, all broadcast together.

    ``mode`` says what an index outside means: an error (``raise``; its values must be known), ``clip`` or ``wrap``.

    >>> choose(np.array([1, 0]), [np.array([1, 2], "int32"), np.array([3, 4], "int32")])
    Array([3, 2], dtype=int32)
    """
    no_out(out, "choose")
    i, cases = lift(positions(a, "choose")), promote(*choices)
    n = len(cases)
    if mode == "raise":
        values = np.asarray(i)
        if values.size and not ((values >= 0) & (values < n)).all():
            raise BadArgument(f"choose: indices must lie in [0, {n}).", hint="mode='clip' or 'wrap' allows others.")
    elif mode not in ("clip", "wrap"):
        raise BadArgument(f"choose: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    else:
        i = lift(limited(on_host(i), n, mode, "choose")[0])
    made = broadcast_shape("choose", i.shape, *[x.shape for x in cases])
    return select_n(convert(broadcast_to(i, made), INT32), *[broadcast_to(x, made) for x in cases])


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """``x[i]`` of the first condition that holds at ``i``, else ``default``; all broadcast and promoted together.

    >>> select([np.array([True, False])], [np.array([1, 2], "int32")], 9)
    Array([1, 9], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ShapeMismatch(f"select: as many choices as conditions, got {len(choicelist)} and {len(condlist)}.")
    *choices, result = promote(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1]):
        c = lift(condition)
        if c.dtype.kind != "b":
            raise DTypeMismatch(f"select: conditions must be boolean, got {c.type}.")
        result = where(c, choice, result)
    return result


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """``f[k](x)[i]`` where condition ``k`` is the last that holds at ``i``; one function more is for where none does.

    A number stands for a constant function; functions must work elementwise. The result has the dtype of ``x``.

    >>> piecewise(np.array([-2.0, 3.0], "float32"), [np.array([True, False])], [lambda v: -v, 0])
    Array([2., 0.], dtype=float32)
    """
    x = lift(x)
    if isinstance(condlist, (list, tuple)):
        conditions = [condlist] if condlist and np.ndim(condlist[0]) == 0 and x.ndim else list(condlist)
        conditions = [truth(asarray(condition)) for condition in conditions]
    else:
        c = truth(lift(condlist))
        conditions = [c] if c.ndim == x.ndim else [getitem(c, k) for k in range(c.shape[0])]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ShapeMismatch(
            f"piecewise: a function for each condition, or one more, got {len(funclist)} and {len(conditions)}."
        )

    def value(f: Callable[..., Any] | Any) -> Any:
        y = lift(f(x, *args, **kw) if callable(f) else f)
        return broadcast_to(convert(y, x.dtype, x.weak_type), x.shape)

    result = value(functions[-1])
    for condition, f in zip(conditions, functions):
        result = where(condition, value(f), result)
    return result


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors as an open grid: ``x[ix_(i, j)][a, b] == x[i[a], j[b]]``.

    A mask, whose values must be known, stands for its places.

    >>> [part.shape for part in ix_(np.arange(2), np.arange(3))]
    [(2, 1), (1, 3)]
    """
    grid = []
    for d, arg in enumerate(args):
        x = lift(arg)
        if x.ndim != 1:
            raise ShapeMismatch(f"ix_: vectors are needed, got {x.type}.")
        if x.dtype.kind == "b":
            x = nonzero(x)[0]
        grid.append(shapes.reshape(x, tuple([x.size if e == d else 1 for e in range(len(args))])))
    return tuple(grid)
