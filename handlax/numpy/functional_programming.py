"""Functional programming: vectorize, frompyfunc, apply_along_axis, apply_over_axes, piecewise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, BadCall, ShapeMismatch
from ..effects.base.tracebacks import boundary, unnamed_boundary
from ..effects.base.wrapping import name_of, wraps
from ..effects.core.arrays import Array, as_array
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.foundations.shapes import canonical_axis
from ..effects.operations.manipulation.operand_promotion import broadcast_shape
from ..interpreters.transformations.vmap import vmap
from .arrays.argument_conversion import array_of
from .arrays.creation import asarray
from .arrays.index_arrays import truth, where
from .arrays.index_reading import getitem
from .arrays.shape_manipulation import broadcast_to
from .mathematics.universal_functions import ufunc

__all__ = ["apply_along_axis", "apply_over_axes", "frompyfunc", "piecewise", "vectorize"]


Dims = tuple[str, ...]
_WORD = re.compile(r"\s*\(([^()]*)\)\s*")


def _parsed(signature: str) -> tuple[list[Dims], list[Dims]]:
    """The core dimensions of operands and of results that a signature such as "(n,m),(m)->(n)" names."""
    left, arrow, right = signature.partition("->")

    def words(text: str) -> list[Dims]:
        words = [_WORD.fullmatch(part) for part in re.split(r",(?![^(]*\))", text)]
        if not arrow or any(word is None for word in words):
            raise BadArgument(f"vectorize: a signature is like '(n,m),(m)->(n)', got {signature!r}.")
        return [tuple([d.strip() for d in word[1].split(",") if d.strip()]) for word in words]  # type: ignore[index]

    return words(left), words(right)


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """``pyfunc``, a function of scalars or of the core dimensions in ``signature``, mapped over all leading dimensions.

    Leading dimensions broadcast. Arguments in ``excluded``, by position or name, are passed as they are, and so is None
    where the signature has no core dimensions.

    Raises: ShapeMismatch: core dimensions disagree. BadCall: operands or results are not as many as in the signature.

    Source: NumPy, ``vectorize``.

    >>> from handlax.numpy import dot, ones
    >>> vectorize(dot, signature="(n),(n)->()")(ones((4, 3)), ones(3)).shape
    (4,)
    """
    takes, gives = _parsed(signature) if signature is not None else (None, None)
    left_out = _excluded(excluded)

    @wraps(pyfunc)
    @unnamed_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {k: kwargs[k] for k in kwargs if k in left_out}
        named = [k for k in kwargs if k not in left_out]
        mapped = [i for i in range(len(args)) if i not in left_out]
        core = [()] * (len(mapped) + len(named)) if takes is None else takes
        if len(core) != len(mapped) + len(named):
            raise BadCall(f"vectorize: {signature} takes {len(core)} operands, got {len(mapped) + len(named)}.")
        given = [i for i, dims in zip(mapped, core) if args[i] is not None or dims]
        core = [dims for i, dims in zip(mapped, core) if i in given] + [*core[len(mapped) :]]
        operands = [array_of(args[i]) for i in given] + [array_of(kwargs[k]) for k in named]

        def single(*xs: Any) -> Any:
            filled = list(args)
            for i, x in zip(given, xs):
                filled[i] = x
            return pyfunc(*filled, **fixed, **dict(zip(named, xs[len(given) :])))

        return _mapped(single, operands, core, gives)

    return wrapped


def _excluded(excluded: Any) -> frozenset[int | str]:
    """The arguments that are not mapped. Raises BadCall, BadArgument: one is no position and no name."""
    arguments = frozenset(excluded)
    if not all(isinstance(item, (int, str)) for item in arguments):
        raise BadCall(f"vectorize: excluded must have positions and names of arguments, got {set(arguments)}.")
    if any(isinstance(item, int) and item < 0 for item in arguments):
        raise BadArgument(f"vectorize: positions in excluded must not be negative, got {set(arguments)}.")
    return arguments


def _mapped(f: Callable[..., Any], operands: Sequence[Any], core: Sequence[Dims], gives: list[Dims] | None) -> Any:
    """``f`` vmapped over the leading dimensions of ``operands``, which broadcast; the others are named by ``core``.

    The results are checked against the core dimensions ``gives``, unless it is None.
    """
    sizes: dict[str, int] = {}
    loops = []
    for x, dims in zip(operands, core):
        shape = x.type.shape
        if len(shape) < len(dims):
            raise ShapeMismatch(f"vectorize: an operand has the core dimensions {dims}, got {x.type}.")
        cut = len(shape) - len(dims)
        for name, n in zip(dims, shape[cut:]):
            wanted = int(name) if name.isdigit() else sizes.setdefault(name, n)
            if wanted != n:
                raise ShapeMismatch(f"vectorize: core dimension {name!r} must have one size, got {wanted} and {n}.")
        loops.append(shape[:cut])
    lead = broadcast_shape("vectorize", *loops)
    if gives is not None:
        f = _checked(f, gives, sizes)
    squeezed = []
    axes: list[tuple[int | None, ...]] = [() for _ in lead]
    for x, loop in zip(operands, loops):
        missing = len(lead) - len(loop)
        mapped = [missing + d for d, n in enumerate(loop) if n != 1 or lead[missing + d] == 1]
        squeezed.append(shapes.reshape(x, (*[lead[d] for d in mapped], *x.type.shape[len(loop) :])))
        for d in range(len(lead)):
            axes[d] += (0 if d in mapped else None,)
    for d in reversed(range(len(lead))):
        f = vmap(f, in_axes=axes[d])
    return f(*squeezed)


def _checked(f: Callable[..., Any], gives: list[Dims], sizes: dict[str, int]) -> Callable[..., Any]:
    """``f`` with a check that its results have the core dimensions of the signature."""

    def function(*xs: Any) -> Any:
        out = f(*xs)
        several = isinstance(out, (tuple, list))
        results = [array_of(y) for y in (out if several else [out])]
        if len(results) != len(gives):
            raise BadCall(f"vectorize: the signature names {len(gives)} results, the function gives {len(results)}.")
        known = dict(sizes)
        for y, dims in zip(results, gives):
            shape = y.type.shape
            if len(shape) != len(dims) or any(known.setdefault(name, n) != n for name, n in zip(dims, shape)):
                raise ShapeMismatch(f"vectorize: a result must have the core dimensions {dims}, got {y.type}.")
        return tuple(results) if several else results[0]

    return function


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """The universal function that applies ``func`` to single elements.

    >>> from handlax.numpy import array
    >>> frompyfunc(lambda x, y: x + 2 * y, 2, 1)(array([1, 2]), 10)
    Array([21, 22], dtype=int32)
    """
    return ufunc(vectorize(func), nin, nout, name=name_of(func), identity=identity)


@boundary
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """``func1d`` of every vector along an axis; the dimensions of its result stand in place of the axis.

    >>> from handlax.numpy import ones, sum
    >>> apply_along_axis(sum, 0, ones((2, 3)))
    Array([2., 2., 2.], dtype=float32)
    """
    x = array_of(arr)
    axis = canonical_axis(axis, x.ndim, "apply_along_axis")

    def f(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    for d in range(1, x.ndim - axis):
        f = vmap(f, in_axes=d, out_axes=-1)
    for _ in range(axis):
        f = vmap(f, in_axes=0, out_axes=0)
    return f(x)


@boundary
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    """``func(a, axis)`` for one axis after another; dimensions that it drops come back with size 1.

    >>> from handlax.numpy import ones, sum
    >>> apply_over_axes(sum, ones((2, 3)), [0, 1]).shape
    (1, 1)
    """
    x = array_of(a)
    rank = x.ndim
    for axis in shapes.axes_listed(axes):
        y = array_of(func(x, axis))
        if y.ndim == rank - 1:
            d = canonical_axis(axis, rank, "apply_over_axes")
            y = shapes.reshape(y, (*y.type.shape[:d], 1, *y.type.shape[d:]))
        if y.ndim != rank:
            raise ShapeMismatch(
                f"apply_over_axes: the function must keep the rank, or drop the axis, got {y.type} of {x.type}."
            )
        x = y
    return x


@boundary
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """``f[k](x)[i]`` where condition ``k`` is the last that holds at ``i``; one function more is for where none does.

    A number stands for a constant function; functions must work elementwise. The result has the dtype of ``x``.

    >>> piecewise(np.array([-2.0, 3.0], "float32"), [np.array([True, False])], [lambda v: -v, 0])
    Array([2., 0.], dtype=float32)
    """
    x = as_array(x)
    if isinstance(condlist, (list, tuple)):
        conditions = [condlist] if condlist and np.ndim(condlist[0]) == 0 and x.ndim else list(condlist)
        conditions = [truth(asarray(condition)) for condition in conditions]
    else:
        c = truth(as_array(condlist))
        conditions = [c] if c.ndim == x.ndim else [getitem(c, k) for k in range(c.shape[0])]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise ShapeMismatch(
            f"piecewise: a function for each condition, or one more, got {len(funclist)} and {len(conditions)}."
        )

    def value(f: Callable[..., Any] | Any) -> Any:
        return broadcast_to(convert(f(x, *args, **kw) if callable(f) else f, x.dtype, x.weak_type), x.shape)

    result = value(functions[-1])
    for condition, f in zip(conditions, functions):
        result = where(condition, value(f), result)
    return result
