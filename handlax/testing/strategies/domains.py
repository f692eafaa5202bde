"""Domains: where the operands of an operation lie, away from its kinks and poles; and all operands of an operation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ...effects.base.errors import BadArgument, HandlaxError
from ...effects.base.wrapping import errors_ignored
from ...effects.core.operation import Operation
from ...effects.types.array_type import ArrayType, Shape, array_type
from ...effects.types.dtypes import ANY, holds, integer_range, is_bool, is_complex, is_inexact, is_integer, named


@dataclass(frozen=True)
class Domain:
    """The domain of one operand: reals and the parts of complex numbers between ``low`` and ``high``, integers too.

        arrays("float32", (3,), domain=Domain(0.1, 3.0))

    Args:
        dtype: the dtype of the operand, where it is not the one that is asked for.
        apart: points that no value is closer to than ``margin``: the kinks and jumps of an operation.
        imaginary: where the imaginary parts lie, if elsewhere.
        extremes: further values, outside of ``low`` and ``high``, for what has to hold at the ends of a dtype.

    >>> from hypothesis import find
    >>> find(Domain(0.1, 3.0).elements("float32"), lambda x: x > 1.5), find(Domain(-2, 2).elements("int8"), bool)
    (np.float32(2.0), np.int8(1))
    """

    low: float = -3.0
    high: float = 3.0
    dtype: Any = None
    apart: tuple[float, ...] = ()
    margin: float = 0.1
    imaginary: tuple[float, float] | None = None
    extremes: tuple[float, ...] = ()

    @classmethod
    def around(cls, x: np.ndarray[Any, Any]) -> Domain:
        """The domain between the least and the greatest finite element of an array, of its parts if it is complex."""
        wide = x if is_integer(x.dtype) else x.astype(np.complex128)
        real, imaginary = [part[np.isfinite(part)].tolist() or [1] for part in (wide.real, wide.imag)]
        return cls(min(real), max(real), imaginary=(min(imaginary), max(imaginary)))

    def elements(self, dtype: Any) -> st.SearchStrategy[Any]:
        """The values of this domain, as scalars of the dtype, without the extremes."""
        dtype = named(self.dtype if self.dtype is not None else dtype)
        if is_bool(dtype):
            return st.booleans().map(np.bool_)
        intervals = self._intervals(dtype)
        if is_integer(dtype):
            return st.one_of([st.integers(*ends) for ends in intervals]).map(dtype.type)
        real = st.one_of([st.floats(*ends) for ends in intervals])
        if is_complex(dtype):
            imaginary = st.floats(*(self.imaginary or (self.low, self.high)))
            return st.builds(complex, real, imaginary).map(dtype.type)
        return real.map(dtype.type)

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """An array of this domain by a random generator, uniform in each interval of it.

        Raises: BadArgument: the dtype has no value in the domain.
        """
        dtype = named(self.dtype if self.dtype is not None else dtype)
        if is_bool(dtype):
            return rng.integers(0, 2, shape).astype(bool)
        intervals = self._intervals(dtype)
        if is_integer(dtype):
            drawn = [np.asarray(rng.integers(*ends, shape, endpoint=True)) for ends in intervals]
        else:
            drawn = [np.asarray(rng.uniform(*ends, shape)) for ends in intervals]
        reals = drawn[0] if len(drawn) == 1 else np.choose(rng.integers(len(drawn), size=shape), drawn)
        if is_complex(dtype):
            imaginary = rng.uniform(*(self.imaginary or (self.low, self.high)), shape)
            return np.asarray(reals + 1j * imaginary).astype(dtype)
        return np.asarray(reals).astype(dtype)

    def with_extremes(self, x: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """``x`` with some elements replaced by extremes that its dtype can hold."""
        held = [value for value in self.extremes if _can_hold(x.dtype, value)]
        if not held or not x.size:
            return x
        drawn = np.asarray(rng.choice(np.asarray(held, dtype=object), x.shape))
        chosen = errors_ignored(drawn.astype, x.dtype)  # 1e30 is an extreme of float16 too: infinity
        return np.asarray(np.where(rng.random(x.shape) < 0.5, chosen, x).astype(x.dtype))

    def simpler(self, x: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
        """Arrays like ``x`` with one plain value of the domain, 1 if it has it, for all elements, for those that are
        finite, or for one of them; or with whole numbers.
        """
        reals, imaginaries = self._intervals(x.dtype), [self.imaginary or (self.low, self.high)]
        is_within = lambda part, intervals: np.any([(low <= part) & (part <= high) for low, high in intervals], axis=0)
        plain = _plain(1, reals) + (1j * _plain(0, imaginaries) if is_complex(x.dtype) else 0)
        alike = np.full(x.shape, plain).astype(x.dtype)
        yield alike
        if is_inexact(x.dtype):
            yield np.where(np.isfinite(x), alike, x)
            whole = np.rint(x)
            wide = whole.astype(np.complex128)
            held = is_within(wide.real, reals) & (not is_complex(x.dtype) or is_within(wide.imag, imaginaries))
            yield np.asarray(np.where(held, whole, x), x.dtype)
        for at in map(tuple, np.argwhere(x != alike)):
            y = x.copy()
            y[at] = alike[at]
            yield y

    def holds(self, dtype: Any) -> bool:
        """Whether the dtype has values in the domain."""
        dtype = named(self.dtype if self.dtype is not None else dtype)
        return is_bool(dtype) or bool(self._intervals_of(dtype))

    def _intervals(self, dtype: np.dtype[Any]) -> list[tuple[Any, Any]]:
        """The ends of the intervals of values of the dtype. Raises: BadArgument: there are none."""
        intervals = self._intervals_of(dtype)
        if not intervals:
            raise BadArgument(
                f"Domain: there must be a value of {dtype} between {self.low} and {self.high}, apart from {self.apart} "
                f"by {self.margin}, got none.", hint="another domain, or dtypes=, of those that have values in it.",
            )
        return intervals

    def _intervals_of(self, dtype: np.dtype[Any]) -> list[tuple[Any, Any]]:
        ends: list[float] = [self.low]
        for point in sorted(self.apart):
            ends += [point - self.margin, point + self.margin]
        ends.append(self.high)
        intervals: list[tuple[Any, Any]] = [
            (max(low, self.low), min(high, self.high)) for low, high in zip(ends[::2], ends[1::2])
        ]
        if is_integer(dtype):
            least, most = integer_range(dtype)
            intervals = [(max(least, math.ceil(low)), min(most, math.floor(high))) for low, high in intervals]
        return [(low, high) for low, high in intervals if low <= high]


def _plain(number: int, intervals: Sequence[tuple[Any, Any]]) -> Any:
    """The whole number in an interval that is nearest to ``number``, the greater of two; without any a middle."""
    ends = [(math.ceil(low), math.floor(high)) for low, high in intervals]
    wholes = [min(max(number, first), last) for first, last in ends if first <= last]
    low, high = intervals[0]
    return min(wholes, key=lambda whole: (abs(whole - number), -whole), default=low + (high - low) / 2)


def _can_hold(dtype: Any, value: float) -> bool:
    if is_integer(dtype):
        return bool(np.isfinite(value)) and value == int(value) and holds(dtype, value)
    return not is_bool(dtype)


@dataclass(frozen=True)
class Operands:
    """An operation and its operands: the domain of each, their shapes and their dtypes.

        check_operation(Operands(Log(), (Domain(0.1, 3.0),)))
        check_operation(Operands(Dot(), (Domain(), Domain()), shapes=(((2, 3), (3,)), ((3,), (3, 2)))))

    Args:
        domains: of each operand.
        shapes: the alternatives, each with a shape for each operand; by default those of elementwise operations, which
            are equal or of rank 0.
        dtypes: the dtypes of the operands whose domain has none of its own; by default all that have values in every
            domain and that ``result_type`` accepts, in one of the shapes.
    """

    op: Operation
    domains: tuple[Domain, ...]
    shapes: tuple[tuple[Shape, ...], ...] = ()
    dtypes: frozenset[Any] | None = None

    def __post_init__(self) -> None:
        if not self.shapes:
            object.__setattr__(self, "shapes", elementwise_shapes(len(self.domains)))
        if self.dtypes is None:
            declared = self.op.dtypes if self.op.dtypes is not None else ANY
            held = [dtype for dtype in declared if all([domain.holds(dtype) for domain in self.domains])]
            accepted = [dtype for dtype in held if any(
                [self.refusal(self.op, self.types(dtype, shapes)) is None for shapes in self.shapes])]
            object.__setattr__(self, "dtypes", frozenset(accepted))

    @staticmethod
    def refusal(op: Operation, types: Sequence[ArrayType]) -> Exception | None:
        """What ``result_type`` raises for operands of these types; None: it gives a type."""
        try:
            op.result_type(*types)
        except (HandlaxError, TypeError, ValueError, LookupError, AttributeError, AssertionError) as error:
            return error
        return None

    def types(self, dtype: Any, shapes: Sequence[Shape]) -> list[ArrayType]:
        """The types of the operands of a dtype and of these shapes."""
        return [array_type(shape, d.dtype if d.dtype is not None else dtype) for d, shape in zip(self.domains, shapes)]

    def draw(
        self, dtype: Any, shapes: tuple[Shape, ...], rng: np.random.Generator, *, extremes: bool = False
    ) -> list[np.ndarray[Any, Any]]:
        """One array per operand by a random generator; with ``extremes``, those of the domains among them."""
        arrays = [domain.draw(dtype, shape, rng) for domain, shape in zip(self.domains, shapes)]
        return [d.with_extremes(x, rng) for d, x in zip(self.domains, arrays)] if extremes else arrays

    @property
    def family(self) -> list[np.dtype[Any]]:
        """The dtypes, ordered by their names."""
        return sorted(self.dtypes or (), key=lambda dtype: dtype.name)

    def __str__(self) -> str:
        return f"{self.op.name}({', '.join([repr(value) for value in self.op.fields])})"


def elementwise_shapes(arity: int) -> tuple[tuple[Shape, ...], ...]:
    """Equal shapes, one of them empty, and one operand of rank 0 with arrays."""
    equal = tuple(((shape,) * arity) for shape in ((), (3,), (2, 3), (0, 2)))
    spread = tuple(tuple(() if i == j else (2, 3) for j in range(arity)) for i in range(arity)) if arity > 1 else ()
    return equal + spread
