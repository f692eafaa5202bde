"""Extents: sizes of a shape that are symbols, ``f32[n0,64]``: the length of a lane, which differs from lane to lane.

    n0 + 1, 2*n0, n0 + n1, n0*n1, (4*n0) // n0 == 4

An extent is a polynomial in the lengths ``n0``, ``n1``, ... of the ragged axes that are mapped, interned: equal extents
are one object, so that types, operations and programs that name them compare and hash by structure, never by a value.
It is not an int: arithmetic that has no extent as result computes with the length itself, an array that ``length_of``
makes; and what needs a Python integer raises.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..base.errors import TracerBoolConversionError, TracerIntegerConversionError
from ..base.immutables import ImmutableObject, setter
from ..base.source_locations import is_internal

Monomial = tuple[int, ...]  # the numbers of its lengths, in order: (0, 0, 1) is n0*n0*n1
_INTERNED: dict[Any, Extent] = {}
TYPICAL = 256  # a length where only an estimate is needed
TERM = r"(?:\d+\*)?n\d+(?:\*n\d+)*|\d+"
EXTENT = rf"(?:\d+\*)?n\d+(?:\*n\d+)*(?:[+-](?:{TERM}))*"


class Extent(ImmutableObject):
    """A size that is a polynomial in lengths, with integer coefficients. Made by ``length`` and by arithmetic.

    >>> n = length(0)
    >>> n + 1, 2 * n, (4 * n) // n, n - n, (n + 1) is (1 + n)
    (n0+1, 2*n0, 4, 0, True)
    """

    __slots__ = ("terms", "__weakref__")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class
    _guard = ("extents", "arithmetic makes another one.")
    terms: tuple[tuple[Monomial, int], ...]

    def at(self, sizes: Mapping[int, Any]) -> Any:
        """The polynomial at these values of the lengths."""
        total: Any = 0
        for monomial, factor in self.terms:
            term: Any = factor
            for number in monomial:
                term = term * sizes[number]
            total = total + term
        return total

    @property
    def lengths(self) -> frozenset[int]:
        """The numbers of the lengths that occur in it."""
        return frozenset([number for monomial, _ in self.terms for number in monomial])

    def __handlax_array__(self) -> Any:
        return InstalledLength.value(self)

    def __index__(self) -> int:
        raise TracerIntegerConversionError(
            f"index: Python needs an integer here, got {self}, the length of a lane, which differs from lane to lane.",
            hint="x.shape[0] in place of len(x); hx.numpy or lax.scan in place of a Python loop.",
        )

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        if self.least > 0:
            return True
        return bool(self != 0) if _in_package() else bool(self.value != 0)

    @property
    def value(self) -> Any:
        """The length of the lane as an array."""
        return self.__handlax_array__()

    @property
    def least(self) -> float:
        """A lower bound: lengths are not negative."""
        return sum([f for m, f in self.terms if not m]) if all([f > 0 for m, f in self.terms if m]) else -float("inf")

    def __add__(self, other: Any) -> Any:
        terms = _terms(other)
        return _computed(operator.add, self, other) if terms is None else extent([*self.terms, *terms])

    def __mul__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return _computed(operator.mul, self, other)
        return extent([(tuple(sorted(m + k)), f * g) for m, f in self.terms for k, g in terms])

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __divmod__(self, other: Any) -> Any:
        """Division by an integer or product of lengths that divides it; any other is one of the values."""
        quotient = _quotient(self, other)
        return (self.value // other, self.value % other) if quotient is None else (quotient, 0)

    def __floordiv__(self, other: Any) -> Any:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __eq__(self, other: object) -> Any:
        """Within the package by structure, as in ``shape == shape``; for the user by value, which lanes may differ in.

        Equal extents are one object, which Python compares first.
        """
        if self is other or _in_package():
            return self is other
        return NotImplemented if other is None else self.value == other

    def __ne__(self, other: object) -> Any:
        if self is other or _in_package():
            return self is not other
        return NotImplemented if other is None else self.value != other

    __hash__ = object.__hash__

    def __le__(self, other: Any) -> Any:
        return _decided(operator.le, self, other, _in_package())

    def __lt__(self, other: Any) -> Any:
        return _decided(operator.lt, self, other, _in_package())

    def __ge__(self, other: Any) -> Any:
        return _decided(operator.ge, self, other, _in_package())

    def __gt__(self, other: Any) -> Any:
        return _decided(operator.gt, self, other, _in_package())

    def __repr__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            names = [f"n{number}" for number in monomial]
            size = [str(abs(factor))] if abs(factor) != 1 or not names else []
            text += ("-" if factor < 0 else "+" if text else "") + "*".join([*size, *names])
        return text

    def __reduce__(self) -> Any:
        return extent, (self.terms,)


_set_terms = setter(Extent, "terms")


def _value_operator(f: Callable[[Any, Any], Any], reflected: bool) -> Any:
    """A method that computes with the length itself."""
    return (lambda self, other: f(other, self.value)) if reflected else lambda self, other: f(self.value, other)


for _f in (operator.truediv, operator.pow):
    setattr(Extent, f"__{_f.__name__}__", _value_operator(_f, False))
    setattr(Extent, f"__r{_f.__name__}__", _value_operator(_f, True))
for _f in (operator.floordiv, operator.mod):
    setattr(Extent, f"__r{_f.__name__}__", _value_operator(_f, True))


class InstalledLength:
    """``value(extent)`` is the length as an array; the operation that it performs is installed when it is defined."""

    value: Callable[[Extent], Any]


def extent(terms: Any) -> Any:
    """The interned extent with these terms, of which equal monomials are added; an int where it is constant."""
    sums: dict[Monomial, int] = {}
    for monomial, factor in terms:
        sums[monomial] = sums.get(monomial, 0) + int(factor)
    key = tuple(sorted([(m, f) for m, f in sums.items() if f], key=lambda term: (-len(term[0]), term[0])))
    if not key or key[0][0] == ():
        return key[0][1] if key else 0
    found = _INTERNED.get(key)
    if found is None:
        new = object.__new__(Extent)
        _set_terms(new, key)
        found = _INTERNED.setdefault(key, new)  # two threads that make the same one get one object
    return found


def length(number: int) -> Extent:
    """The extent that is the length with this number."""
    return extent([((number,), 1)])


def _in_package() -> bool:
    """Whether the method that asks was called in the package, rather than by the user."""
    return is_internal(sys._getframe(2).f_code.co_filename)


def _terms(size: Any) -> Any:
    """The terms of an extent or integer; None: it is neither."""
    if type(size) is Extent:
        return size.terms
    if isinstance(size, bool) or not hasattr(size, "__index__") or (hasattr(size, "dtype") and size.shape):
        return None
    return None if _is_box(size) else [((), size.__index__())]


def _is_box(x: Any) -> bool:
    return getattr(x, "run", None) is not None


def _computed(f: Callable[[Any, Any], Any], n: Extent, other: Any) -> Any:
    return f(n.value, other)


def _quotient(n: Extent, divisor: Any) -> Any:
    """``n / divisor`` where every term of ``n`` has the divisor, of one term, as factor; else None."""
    terms = _terms(divisor)
    if terms is None or len(terms) != 1:
        return None
    ((own, size),) = terms
    if not size:
        return None
    found = []
    for monomial, factor in n.terms:
        rest = list(monomial)
        for number in own:
            if number not in rest:
                return None
            rest.remove(number)
        if factor % size:
            return None
        found.append((tuple(rest), factor // size))
    return extent(found)


def _decided(f: Callable[[Any, Any], Any], n: Extent, other: Any, internal: bool) -> Any:
    """A comparison: a bool where it is the same for all lengths, else, for the user, of the values."""
    if _terms(other) is not None:
        difference = n - other
        low = difference if type(difference) is int else difference.least
        high = difference if type(difference) is int else -(-difference).least
        answers = {f(low, 0), f(high, 0)}
        if len(answers) == 1:
            return answers.pop()
    if internal:
        raise TracerBoolConversionError(
            f"shape: the size {n} differs from lane to lane, and so does how it compares with {other}.",
            hint="hx.numpy.where or hx.lax.cond on x.shape[0], or a size that all lanes share.",
        )
    return f(n.value, other)


def fits(size: Any, room: Any) -> bool:
    """``size <= room`` where that is known; what may not fit into a lane is clamped to it when it is read."""
    return not isinstance(size, int) or not isinstance(room, int) or size <= room


def estimate(size: Any) -> int:
    """An integer in place of a size, where nothing but the time that something takes depends on it."""
    return size if isinstance(size, int) else size.at(dict.fromkeys(size.lengths, TYPICAL))


def single(size: Any) -> int:
    """The size of a window of one element: 0 on an empty axis."""
    return min(1, size) if isinstance(size, int) else 1


def as_size(size: Any) -> Any:
    """A size of a shape: an extent as it is, anything else as a Python integer."""
    return size if type(size) is Extent else size.__index__()


def is_size(x: Any) -> bool:
    """Whether ``x`` is one size: a Python integer or an extent."""
    return isinstance(x, (int, Extent))


def extents_in(value: Any) -> list[Extent]:
    """The extents in the fields of an operation, or in a shape, nested tuples included."""
    if type(value) is Extent:
        return [value]
    return [found for item in value for found in extents_in(item)] if isinstance(value, tuple) else []


def with_sizes(value: Any, size: Callable[[Extent], int]) -> Any:
    """The field or shape with every extent replaced by its size."""
    if type(value) is Extent:
        return size(value)
    if not isinstance(value, tuple) or not extents_in(value):
        return value
    items = [with_sizes(item, size) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def parse_extent(text: str) -> Any:
    """The extent or integer of this text.

    >>> parse_extent("2*n0+1"), parse_extent("3")
    (2*n0+1, 3)
    """
    total: Any = 0
    for sign, term in re.findall(rf"([+-]?)({TERM})", text):
        value: Any = -1 if sign == "-" else 1
        for factor in term.split("*"):
            value = value * (length(int(factor[1:])) if factor[0] == "n" else int(factor))
        total = total + value
    return total

