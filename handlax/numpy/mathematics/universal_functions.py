"""The class ``ufunc``, and makers of functions that promote their arguments and perform one elementwise operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, BadIndex, NotProvided
from ...effects.base.stack import current
from ...effects.base.wrapping import renamed
from ...effects.control.loops import scan
from ...effects.core.array_interface import ArrayLike
from ...effects.core.arrays import Array, ConcreteArray
from ...effects.core.operation import Operation
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation.creation import iota
from ...effects.operations.manipulation.operand_promotion import together
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ...effects.operations.reductions.cumulative import prefixes
from ...effects.operations.reductions.reductions import fold
from ...effects.types.dtypes import ANY_INEXACT, KeyDType, bool_, canonical, is_integer
from ..arrays.argument_conversion import (
    array_of,
    axes_of,
    choose,
    inexact,
    inexact_together,
    kept_shape,
    like,
    no_out,
    to_bool,
)

__all__ = ["ufunc"]


ArrayFunction = Callable[..., Any]
_FEW = 8  # a fold of at most so many elements is performed step by step, a longer one by a loop


class ufunc:
    """An elementwise function ``f`` of one or two arrays, called as ``f(x, y)``.

    ``reduce``, ``reduceat``, ``accumulate``, ``outer`` (of functions of two arrays) and ``at`` are NumPy's, of
    immutable arrays.
    Source: NumPy, ``ufunc``.
    """

    def __init__(
        self, func: ArrayFunction, /, nin: int, nout: int, *, name: str | None = None, nargs: int | None = None,
        identity: Any = None, reduce: ArrayFunction | None = None, accumulate: ArrayFunction | None = None,
        associative: bool = False, scatter: str | None = None,
    ):
        """``reduce`` and ``accumulate`` replace the general ones; ``scatter``: a method of ``x.at[i]``, for ``at``."""
        self.function = func
        self.nin, self.nout, self.identity = nin, nout, identity
        self.folds = (reduce, accumulate)
        self.associative, self.scatter = associative, scatter
        self.__name__ = self.__qualname__ = name or func.__name__
        self.__doc__, self.__module__ = func.__doc__, func.__module__

    @property
    def nargs(self) -> int:
        """Operands and results together."""
        return self.nin + self.nout

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            raise NotProvided(
                f"{self.__name__}: arrays are immutable, so there are no out= and where=.",
                hint="use the result." if where is None else "hx.numpy.where(condition, result, x) keeps those of x.",
            )
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__

    def _binary(self, method: str) -> None:
        """Raise BadArgument unless the function takes two operands and gives one result."""
        if self.nin != 2 or self.nout != 1:
            raise BadArgument(f"{self.__name__}.{method}: the function must take two operands and give one result.")

    def outer(self, A: Any, B: Any, /) -> Any:
        """``f.outer(a, b)[i, j] == f(a[i], b[j])``, for indices ``i`` of ``a`` and ``j`` of ``b``.

        >>> from handlax.numpy import add, arange
        >>> add.outer(arange(2), arange(3)).shape
        (2, 3)
        """
        self._binary("outer")
        a, b = array_of(A), array_of(B)
        return self(shapes.reshape(a, (*a.type.shape, *(1,) * b.ndim)) if a.type.shape else a, b)

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``f.reduce(a) == f(f(a[0], a[1]), ...)``, over one axis or several, from the left.

        An associative function is reduced as a tree.
        Raises: BadArgument: there is no element, ``f`` has no identity, and ``initial`` is not given.

        >>> from handlax.numpy import array, subtract
        >>> int(subtract.reduce(array([10, 1, 2])))
        7
        """
        self._binary("reduce")
        no_out(out, f"{self.__name__}.reduce")
        if self.folds[0] is not None:
            options = {} if dtype is None else {"dtype": dtype}
            return self.folds[0](a, axis=axis, keepdims=keepdims, initial=initial, where=where, **options)
        x = self._taken(a, dtype)
        axes = axes_of(axis, x.ndim, f"{self.__name__}.reduce")
        start = self.identity if initial is None else initial
        if where is not None:
            if start is None:
                raise BadArgument(f"{self.__name__}.reduce: with where=, initial= must be given.")
            x = choose(where, x, start)
        shape = x.type.shape
        for axis in reversed(axes):
            x = self._fold(x, axis, start)
        if initial is not None:
            x = self(initial, x)
        return shapes.reshape(x, kept_shape(shape, axes)) if keepdims else x

    def _fold(self, x: Any, axis: int, start: Any) -> Any:
        """``x`` reduced over one axis; of no elements ``start``. Raises BadArgument: then ``start`` is None."""
        shape = x.type.shape
        size = shape[axis]
        if not size:
            if start is None:
                raise BadArgument(
                    f"{self.__name__}.reduce: {x.type} has nothing to fold along axis {axis}, and no identity."
                )
            return shapes.full(x.type.update(shape=shape[:axis] + shape[axis + 1 :]), start)
        if self.associative and self.identity is not None:
            return fold(self._combine, [x], [like(x, self.identity)], axis)[0]
        return self._from_left(x, axis, False)[1]

    def _from_left(self, x: Any, axis: int, every: bool) -> tuple[list[Any], Any]:
        """The reductions of all prefixes along ``axis``, to be concatenated (if ``every``), and the last one.

        The first few are performed step by step, the rest by a loop, as soon as the type of the result stays.
        """
        size = x.type.shape[axis]
        rows = [index_in_dim(x, 0, axis, keepdims=False)]
        while len(rows) < size and (size <= _FEW or len(rows) < 2 or rows[-1].type != rows[-2].type):
            rows.append(self(rows[-1], index_in_dim(x, len(rows), axis, keepdims=False)))
        last = rows[-1]
        one = (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :])
        parts: list[Any] = [shapes.reshape(y, one) for y in rows] if every else []
        if len(rows) < size:

            def step(y: Any, row: Any) -> Any:
                y = self(y, row)
                return y, y if every else None

            last, rest = scan(step, last, shapes.move_axis(slice_in_dim(x, len(rows), size, axis=axis), axis, 0))
            parts.append(shapes.move_axis(rest, 0, axis) if every else None)
        return parts, last

    def _taken(self, a: Any, dtype: Any) -> Any:
        """The operand of a reduction, of ``dtype`` if given; as booleans if the identity of the function is one."""
        x = to_bool(a) if isinstance(self.identity, bool) else array_of(a)
        return x if dtype is None else convert(x, canonical(dtype))

    def _combine(self, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        return [self(left[0], right[0])]

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """``f.accumulate(a)[i] == f.reduce(a[: i + 1])``.

        >>> from handlax.numpy import array, maximum
        >>> maximum.accumulate(array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
        """
        self._binary("accumulate")
        no_out(out, f"{self.__name__}.accumulate")
        if self.folds[1] is not None:
            return self.folds[1](a, axis=axis, dtype=dtype)
        x = self._taken(a, dtype)
        axis = canonical_axis(axis, x.ndim, f"{self.__name__}.accumulate")
        if not x.type.shape[axis]:
            return x
        if self.associative:
            return prefixes(self._combine, [x], axis)[0]
        return concatenate(self._from_left(x, axis, True)[0], axis)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """``f.reduceat(a, i)[k] == f.reduce(a[i[k] : i[k + 1]])``, the last to the end; ``a[i[k]]`` if that is empty.

        Raises: BadArgument: the indices are no vector of integers. BadIndex: known ones lie outside. Source: NumPy.

        >>> from handlax.numpy import add, arange, array
        >>> add.reduceat(arange(8), array([0, 4, 1, 5]))
        Array([ 6,  4, 10, 18], dtype=int32)
        """
        name = f"{self.__name__}.reduceat"
        self._binary("reduceat")
        no_out(out, name)
        x, starts = self._taken(a, dtype), array_of(indices)
        axis = canonical_axis(axis, x.ndim, name)
        rows = shapes.move_axis(x, axis, 0)
        size = rows.type.shape[0]
        if starts.ndim != 1 or not is_integer(starts.type.dtype):
            raise BadArgument(f"{name}: indices must be a vector of integers, got {starts.type}.")
        if isinstance(starts, ConcreteArray) and not all([0 <= i < size for i in starts.value]):
            raise BadIndex(f"{name}: indices must lie between 0 and {size - 1}, got {starts.value.tolist()}.")
        ends = concatenate([slice_in_dim(starts, 1, None), shapes.full(starts.type.update(shape=(1,)), size)], 0)

        def visit(totals: Any, item: tuple[Any, Any]) -> tuple[Any, None]:
            i, row = item
            inside = shapes.reshape((starts < i) & (i < ends), (*starts.type.shape, *(1,) * (rows.ndim - 1)))
            return choose(inside, convert(self(totals, row), totals.type.dtype), totals), None

        totals, _ = scan(visit, rows.at[starts].get(mode="clip"), (iota(starts.type.dtype, size), rows))
        return shapes.move_axis(totals, 0, axis)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """``a`` with ``f`` applied at the indices, once for each time that an index occurs; ``inplace`` must be False.

        >>> from handlax.numpy import add, array
        >>> add.at(array([0, 0]), array([1, 1]), 5, inplace=False)
        Array([ 0, 10], dtype=int32)
        """
        name = self.__name__
        if inplace:
            raise BadArgument(f"{name}.at: arrays are immutable.", hint="give inplace=False, and use the result.")
        elements = array_of(a).at[indices]
        if self.nin == 1:
            return elements.apply(self)
        if b is None:
            raise BadArgument(f"{name}.at: a function of two operands needs the second one.")
        if self.scatter is None:
            raise BadArgument(
                f"{name}.at: indices that occur twice have no order.", hint="x.at[i].set(f(x[i], y)) for distinct ones."
            )
        return getattr(elements, self.scatter)(b)


def are_keys(x: Any, y: Any) -> bool:
    """Whether both are arrays of PRNG keys."""
    return all([isinstance(a, Array) and a.type.dtype.__class__ is KeyDType for a in (x, y)])


def binary(
    name: str, kind: type[Operation], doc: str, floats: bool = False, keys: Callable[..., Any] | None = None
) -> Callable[[ArrayLike, ArrayLike], Array]:
    """The function that promotes and broadcasts two operands and performs one elementwise operation.

    With ``floats``, integers and booleans become floats first. ``keys`` is the function of two arrays of PRNG keys.
    """
    op = kind()

    def strict(x1: Any, x2: Any, /) -> Array:
        if isinstance(x1, Array) and isinstance(x2, Array) and x1.type is x2.type and x1.type.dtype in ANY_INEXACT:
            return current().answer(op, (x1, x2))
        return current().answer(op, tuple(inexact_together(name, x1, x2)))

    def any_numbers(x: Any, y: Any, /) -> Array:
        if isinstance(x, Array) and isinstance(y, Array):
            if keys is not None and x.type.dtype.__class__ is KeyDType is y.type.dtype.__class__:
                return keys(x, y)
            if x.type is y.type:
                return current().answer(op, (x, y))
        return current().answer(op, tuple(together(name, x, y)))

    return named(strict if floats else any_numbers, name, doc)


def either(
    name: str, numbers: type[Operation], booleans: type[Operation], doc: str
) -> Callable[[ArrayLike, ArrayLike], Array]:
    """As ``binary``, with another operation for booleans."""
    op, other = numbers(), booleans()

    def function(x: Any, y: Any, /) -> Array:
        if not (isinstance(x, Array) and isinstance(y, Array) and x.type is y.type):
            x, y = together(name, x, y)
        return current().answer(other if x.type.dtype is bool_ else op, (x, y))

    return named(function, name, doc)


def unary(name: str, kind: type[Operation], doc: str) -> Callable[[ArrayLike], Array]:
    """The function that performs one elementwise operation; integers and booleans become floats first."""
    op = kind()

    def function(x: Any, /) -> Array:
        if isinstance(x, Array) and x.type.dtype in ANY_INEXACT:
            return current().answer(op, (x,))
        return current().answer(op, (inexact(x),))

    return named(function, name, doc)


def named(function: ArrayFunction, name: str, doc: str) -> ArrayFunction:
    """``function`` under a public name, with its documentation."""
    renamed(function, name)
    function.__doc__ = doc
    function.__module__ = "handlax.numpy"
    return function
