"""Symbolic dimensions: sizes in a shape such as ``n0`` in ``f32[n0,64]``, the length of a ragged axis, which differs
from lane to lane.

    n0 + 1, 2*n0, n0 + n1, n0*n1, (4*n0) // n0 == 4         polynomials
    max(n0-1,0), floordiv(n0+1,2)                           the sizes of x[1:] and x[::2]

An ``Extent`` is a polynomial with integer coefficients in the lengths ``n0``, ``n1``, ... of the mapped ragged axes and
in the atoms ``max(e,0)`` and ``floordiv(e,k)`` of other extents ``e``. Extents are interned, so that types, operations
and programs that contain them compare and hash by structure, never by a value. Atoms have a normal form: ``x[1:]`` and
``x[:-1]`` have the same size, and may be added. Extents of one length without quotients that are equal for all values
of the length are the same object. It is not an int: arithmetic whose result is no such polynomial computes with the
length of each lane, an int32 array that the operation ``length_of`` returns, and whatever needs a Python integer
raises.

A ``Symbol`` is a variable of a program for arrays of many shapes, ``b`` in ``f32[b,64]``: it stands where a length
does, but has one value in each call of the program, which is at least 1, so that comparisons are decided while the
program is traced or are refused.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import gcd, inf, prod
from typing import Any

from ..base.errors import (
    ConcretizationError,
    ShapeMismatch,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    whole_number,
)
from ..base.immutables import ImmutableObject, setter
from ..base.later_layers import LaterLayers
from ..base.source_locations import knows_extents
from .extent_factors import VARIABLES, Monomial, PositivePart, Quotient, Remainder, Symbol, degree

_INTERNED: dict[Any, Extent] = {}
LONGEST = 2**31 - 2  # indices along a lane, and the lane's length, are int32
TYPICAL = 256  # the length that cost estimates assume
DEGREE = 64  # of a power that is a polynomial: of a size above 1 it is no int64 beyond


class Extent(ImmutableObject):
    """A symbolic dimension: a polynomial in lengths with integer coefficients. Made by ``length`` and by arithmetic.

    >>> n = length(0)
    >>> n + 1, 2 * n, (4 * n) // n, n - n, (n + 1) is (1 + n)
    (n0+1, 2*n0, 4, 0, True)
    """

    __slots__ = ("terms", "scope")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class
    _guard = ("extents", "arithmetic makes another one.")
    terms: tuple[tuple[Monomial, int], ...]
    scope: Any  # that of the symbols that occur in it; None: there are none

    def at(self, sizes: Mapping[int, Any]) -> Any:
        """The value of the polynomial for these values of its lengths, by index."""
        terms = []
        for monomial, factor in self.terms:
            factors = [sizes[x] if type(x) in VARIABLES else x.at(sizes) for x in monomial]
            terms.append(reduce(operator.mul, factors if monomial and factor == 1 else [factor, *factors]))
        return reduce(operator.add, terms)

    @property
    def lengths(self) -> frozenset[Any]:
        """The lengths that occur in it, by index, and symbols: those of ``n0*n1`` are {0, 1}."""
        factors = [x for monomial, _ in self.terms for x in monomial]
        return frozenset([n for x in factors for n in ((x,) if type(x) in VARIABLES else _lengths(*x))])

    def __handlax_array__(self) -> Any:
        return LaterLayers.lane_length(self)

    def __index__(self) -> int:
        raise TracerIntegerConversionError(
            f"index: Python needs an integer here, got {described(self)}.",
            hint="x.shape[0] in place of len(x); hx.numpy or lax.scan in place of a Python loop.",
        )

    __int__ = __index__

    def __float__(self) -> float:
        raise ConcretizationError(
            f"float: Python needs a known value, got {described(self)}.",
            hint="hx.numpy.float32(x.shape[0]) is the length as an array.",
        )

    def __bool__(self) -> bool:
        if self.least > 0:
            return True
        return bool(self != 0) if in_package() else bool(self.value != 0)

    @property
    def value(self) -> Any:
        """The size in the current lane, as an int32 array."""
        return self.__handlax_array__()

    @property
    def least(self) -> float:
        """A lower bound over all lengths >= 0; it is the minimum where only one length occurs."""
        return least_given(self, _facts(self))

    def __add__(self, other: Any) -> Any:
        terms = _terms(other)
        return self.value + other if terms is None else extent([*self.terms, *terms])

    def __mul__(self, other: Any) -> Any:
        terms = _terms(other)
        if terms is None:
            return self.value * other
        return extent([(tuple(sorted(m + k, key=_order)), f * g) for m, f in self.terms for k, g in terms])

    def __pow__(self, exponent: Any) -> Any:
        """Of symbols and a positive integer a polynomial, up to ``DEGREE``; otherwise computed on the values."""
        if self.scope is not None and type(exponent) is int and 0 < exponent * degree(self) <= DEGREE:
            return prod([self] * exponent)
        return self.value**exponent

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Extent:
        return self

    def __invert__(self) -> Any:
        return -self - 1

    def __abs__(self) -> Any:
        return self if self.least >= 0 else abs(self.value)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __divmod__(self, other: Any) -> Any:
        """Exact by a positive integer, and by a divisor of the polynomial; of symbols by any positive size; otherwise
        computed on the values.
        """
        quotient = _quotient(self, other)
        if quotient is not None:
            return quotient, 0
        terms = _terms(other)
        if terms is not None and self.scope is not None and least(divisor := unbound(other)) > 0:
            return floor_divided(self, divisor), remaining(self, divisor)
        if terms is None or len(terms) != 1 or terms[0][0] or terms[0][1] <= 0:
            return self.value // other, self.value % other
        quotient = floor_divided(self, terms[0][1])
        return quotient, self - quotient * terms[0][1]

    def __rdivmod__(self, other: Any) -> Any:
        return other // self.value, other % self.value

    def __floordiv__(self, other: Any) -> Any:
        return divmod(self, other)[0]

    def __mod__(self, other: Any) -> Any:
        return divmod(self, other)[1]

    def __eq__(self, other: object) -> Any:
        """Within the package, equality of the polynomials, as in ``shape == shape``; in a user's code, of the values in
        each lane.

        Equal extents are one object, which Python compares first.
        """
        return equal(self, other, in_package())

    def __ne__(self, other: object) -> Any:
        return differs(self, other, in_package())

    __hash__ = object.__hash__

    def __le__(self, other: Any) -> Any:
        return decided(operator.le, self, other, in_package())

    def __lt__(self, other: Any) -> Any:
        return decided(operator.lt, self, other, in_package())

    def __ge__(self, other: Any) -> Any:
        return decided(operator.ge, self, other, in_package())

    def __gt__(self, other: Any) -> Any:
        return decided(operator.gt, self, other, in_package())

    def __repr__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            names = [f"n{x}" if type(x) is int else repr(x) for x in monomial]
            size = [str(abs(factor))] if abs(factor) != 1 or not names else []
            text += ("-" if factor < 0 else "+" if text else "") + "*".join([*size, *names])
        return text

    def __reduce__(self) -> Any:
        return extent, (self.terms,)


_set_terms, _set_scope = setter(Extent, "terms"), setter(Extent, "scope")


class BoundSize:
    """Base class of symbolic dimensions that belong to particular installations of ``vmap``; see ``Length``."""

    __slots__ = ()
    extent: Any  # the symbolic dimension. Raises: EscapedBox: its vmap has ended


SYMBOLIC = (Extent, BoundSize)


def _value_operator(f: Callable[[Any, Any], Any], reflected: bool) -> Any:
    """A method that applies ``f`` to the int32 value of the extent, since the result is no polynomial."""
    return (lambda self, other: f(other, self.value)) if reflected else lambda self, other: f(self.value, other)


_VALUE_OPERATORS = (operator.truediv, operator.and_, operator.or_, operator.xor, operator.lshift,
                    operator.rshift)
for _f in _VALUE_OPERATORS:
    _name = _f.__name__.strip("_")
    setattr(Extent, f"__{_name}__", _value_operator(_f, False))
    setattr(Extent, f"__r{_name}__", _value_operator(_f, True))
for _f in (operator.floordiv, operator.mod, operator.pow):
    setattr(Extent, f"__r{_f.__name__}__", _value_operator(_f, True))


def extent(terms: Any) -> Any:
    """The interned sum of these (monomial, coefficient) terms; like monomials are added, and a constant becomes an int.
    """
    sums: dict[Monomial, int] = {}
    for monomial, factor in terms:
        sums[monomial] = sums.get(monomial, 0) + int(factor)
    terms = [(m, f) for m, f in sums.items() if f]
    key = tuple(sorted(terms, key=lambda term: (-len(term[0]), *map(_order, term[0]))))
    if not key or key[0][0] == ():
        return key[0][1] if key else 0
    interned = _INTERNED.get(key)
    if interned is None:
        new = object.__new__(Extent)
        _set_terms(new, key)
        _set_scope(new, common_scope(new.lengths))
        interned = _INTERNED.setdefault(key, new)  # two threads that make the same one get one object
    return interned if interned.scope is None else interned.scope.reduced(interned)


def common_scope(lengths: Iterable[Any]) -> Any:
    """The scope of the symbols among these lengths; None: there are none. Raises: ShapeMismatch: there are several."""
    symbols = {x.scope: x for x in lengths if type(x) is Symbol}
    if len(symbols) > 1:
        first, second, *_ = symbols.values()
        raise ShapeMismatch(
            f"symbolic_shape: sizes must be of one scope, got {first} of {first.scope} and {second} of {second.scope}.",
            hint="symbolic_shape(..., scope=scope), with one SymbolicScope for all.",
        )
    return next(iter(symbols), None)


def length(number: int | Symbol) -> Extent:
    """The symbolic dimension ``n<number>``, the length of one ragged axis, or that of a symbol."""
    return extent([((number,), 1)])


def described(size: Extent) -> str:
    """The size with what it is, for messages."""
    if size.scope is None:
        return f"{size}, the length of a lane, which differs from lane to lane"
    return f"{size}, a symbolic size, which differs from call to call"


def part_extent(part: PositivePart | Quotient | Remainder) -> Extent:
    """The atom, which must have its normal form, as an extent."""
    return extent([((part,), 1)])


def _order(factor: Any) -> tuple[int, str]:
    return (factor, "") if type(factor) is int else (sys.maxsize - (type(factor) is Symbol), repr(factor))


def _parts(size: Extent) -> list[tuple[Any, int, Any]]:
    """For each term that is a single atom times a coefficient: the atom, the coefficient, and the sum of all other
    terms. Quotients and remainders by extents are left out.
    """
    alone = [(monomial[0], factor) for monomial, factor in size.terms if len(monomial) == 1]
    parts = [(x, k) for x, k in alone if type(x) is PositivePart or (type(x) is Quotient and type(x.divisor) is int)]
    return [(x, factor, size - factor * part_extent(x)) for x, factor in parts]


def positive(size: Any) -> Any:
    """``max(size, 0)``, in its normal form.

    >>> n = length(0)
    >>> positive(n - 1), positive(n), positive(positive(n - 1) - 2), positive(-3)
    (max(n0-1,0), n0, max(n0-3,0), 0)
    """
    if type(size) is not Extent:
        return max(size, 0)
    if size.least >= 0:
        return size
    if least(-size) >= 0:
        return 0
    linear = _lines(size, _facts(size))
    if linear is not None:
        return _positive_lines(*linear)
    common = gcd(*[factor for _, factor in size.terms])
    if common > 1:
        return common * positive(extent([(m, factor // common) for m, factor in size.terms]))
    for part, factor, _ in _parts(size):
        if type(part) is PositivePart:
            one = part_extent(part)
            if factor > 0 and least(one - size) >= 0:
                return positive(size - one + part.of)  # max(max(q, 0) + r, 0) == max(q + r, 0) for r <= 0
            if factor < 0 and least(size + one - part.of) >= 0:
                return positive(size + one) - one  # max(q - max(r, 0), 0) == max(q, 0) - max(r, 0) for r <= q
    return part_extent(PositivePart(size)) if size.terms[0][1] > 0 else positive(-size) + size


def _facts(size: Extent) -> tuple[Extent, ...]:
    """The sizes that are at least 0 by the constraints on the symbols of this one."""
    return () if size.scope is None else size.scope.facts


def _lines(size: Extent, facts: Sequence[Extent]) -> Any:
    """``size`` as a piecewise linear function ``c + sum of k max(x - a, 0)`` of one length or quotient x, which is at
    least 0: (x, c, {a: k}); None if it has no such form.
    """
    x: Any = None
    constant, bends = 0, {}
    for monomial, factor in size.terms:
        bend, of = 0, monomial
        if monomial and type(monomial[0]) is PositivePart:
            terms = monomial[0].of.terms
            of, bend = terms[0][0], -terms[-1][1]
            if len(terms) != 2 or terms[0][1] != 1 or terms[1][0]:
                return None
        if not of:
            constant = factor
            continue
        x = of if x is None else x
        if len(monomial) > 1 or of != x or type(of[0]) is PositivePart:
            return None
        bends[bend] = factor
    return None if type(x[0]) is Quotient and least_given(x[0].of, facts) < 0 else (x, constant, bends)


def _least(size: Extent, facts: Sequence[Extent]) -> float:
    """The lower bound of an extent, where the ``facts`` bound what its quotients divide."""
    linear = _lines(size, facts)
    if linear is None or sum(linear[2].values()) < 0:
        return -most(-size, _unknown, facts=facts)
    (x, *_), constant, bends = linear
    first: Any = int(type(x) is Symbol)
    if type(x) is Quotient and type(x.divisor) is int:
        first = least_given(x.of, facts) // x.divisor
    edges = [first, *[at for at in bends if at > first]]
    return min([constant + sum([k * max(at - a, 0) for a, k in bends.items()]) for at in edges])


def least_given(size: Any, facts: Sequence[Extent]) -> float:
    """A lower bound of a size where each of the ``facts`` is at least 0: of what a multiple of a fact leaves of it.

    It ends, since each step has fewer facts, or a size within this one.
    """
    if type(size) is not Extent:
        return size
    bound = _least(size, facts)
    for i, fact in enumerate(facts):
        known = dict(fact.terms)
        for monomial, factor in size.terms:
            other = known.get(monomial, 0)
            if monomial and factor * other > 0:
                rest = abs(other) * size - abs(factor) * fact
                left = least_given(rest, [*facts[:i], *facts[i + 1 :]])
                bound = max(bound, left if left in (inf, -inf) else -(-left // abs(other)))
    return bound


def _positive_lines(x: Monomial, constant: int, bends: dict[int, int]) -> Any:
    """The extent ``max(c + sum of k max(x - a, 0), 0)`` in that piecewise linear form, which is unique for each
    function of x = 0, 1, 2, ...
    """

    def value(at: int) -> int:
        return max(constant + sum([k * max(at - a, 0) for a, k in bends.items()]), 0)

    edges = sorted({0, *bends})
    candidates = {*bends, 0}
    slope = 0
    for k, a in enumerate(edges):
        slope += bends.get(a, 0)
        height = constant + sum([f * (a - b) for b, f in bends.items() if b < a])
        if slope * height < 0 and (k + 1 == len(edges) or a - height // slope <= edges[k + 1]):
            root = a - height // slope
            candidates |= {root - 1, root, root + 1}
    size: Any = value(0)
    size = size + extent([(x, value(1) - value(0))])
    for a in sorted(candidates):
        k = value(a + 1) - 2 * value(a) + value(a - 1)
        if a > 0 and k:
            size = size + extent([((PositivePart(extent([(x, 1), ((), -a)])),), k)])
    return size


def floor_divided(size: Any, divisor: Any) -> Any:
    """``size // divisor``, in its normal form, for a positive divisor, an integer or an extent.

    >>> n = length(0)
    >>> floor_divided(2 * n + 3, 2), floor_divided(floor_divided(n, 2) + 1, 3)
    (n0+1, floordiv(n0+2,6))
    """
    if type(divisor) is Extent:
        exact = _quotient(size, divisor)
        return part_extent(Quotient(size, divisor)) if exact is None else exact
    if type(size) is not Extent:
        return size // divisor
    whole = extent([(m, factor // divisor) for m, factor in size.terms])
    rest = size - whole * divisor
    if type(rest) is not Extent:
        return whole
    common = gcd(divisor, *[factor for m, factor in rest.terms if m])
    rest, divisor = extent([(m, factor // common) for m, factor in rest.terms]), divisor // common
    for part, factor, constant in _parts(rest):
        if type(part) is Quotient and factor == 1 and type(constant) is int:
            return whole + floor_divided(part.of + constant * part.divisor, divisor * part.divisor)
    return whole + part_extent(Quotient(rest, divisor))


def remaining(size: Any, divisor: Any) -> Any:
    """``size % divisor``, in its normal form, for a positive divisor, an integer or an extent."""
    if type(divisor) is not Extent:
        return size - divisor * floor_divided(size, divisor)
    return part_extent(Remainder(size, divisor)) if _quotient(size, divisor) is None else 0


def least(size: Any) -> float:
    return size.least if type(size) is Extent else size


def _unknown(monomial: Monomial) -> float:
    """An upper bound of a product of lengths, knowing only that each is an int32."""
    return inf if len(monomial) > 1 else LONGEST


def _divided(bound: float, divisor: int) -> float:
    return bound if bound in (inf, -inf) else bound // divisor


def most(size: Any, bound: Callable[[Monomial], float], lanes: int = 0, facts: Sequence[Extent] = ()) -> float:
    """An upper bound of ``size`` in one lane, or of its sum over ``lanes`` lanes, from upper bounds of its monomials,
    where the ``facts`` are at least 0.
    """
    if type(size) is not Extent:
        return size * max(lanes, 1)
    limit = lambda size: most(size, bound, lanes, facts)
    for part, factor, rest in _parts(size):
        if type(part) is Quotient:
            low = -factor * (part.divisor - 1) if factor < 0 else 0
            joint = _divided(limit(part.divisor * rest + factor * part.of + low), part.divisor)
            if factor > 0:
                separate = limit(rest) + factor * _divided(limit(part.of), part.divisor)
            else:
                separate = limit(rest) if least_given(part.of, facts) >= 0 else inf
            return min(joint, separate)
        if lanes and factor > 0:
            return limit(rest + factor * extent([(m, f) for m, f in part.of.terms if f > 0]))
        both = limit(rest + factor * part.of), limit(rest)
        return max(both) if factor > 0 else min(both)
    return sum([f * (bound(m) if f > 0 else _smallest(m)) if m else f * max(lanes, 1) for m, f in size.terms])


def _smallest(monomial: Monomial) -> int:
    """A lower bound of a product: symbols are at least 1, all other factors at least 0."""
    return int(all([type(x) is Symbol for x in monomial]))


def in_package() -> bool:
    """Whether the function that called the caller of this one belongs to the package, and not to a user's code."""
    return knows_extents(sys._getframe(2).f_code.co_filename)


def _terms(size: Any) -> Any:
    """The (monomial, coefficient) terms of an extent or integer, else None."""
    size = unbound(size)
    if type(size) is Extent:
        return size.terms
    if isinstance(size, bool) or not hasattr(size, "__index__") or (hasattr(size, "dtype") and size.shape):
        return None
    return [((), size.__index__())] if getattr(size, "run", None) is None else None


def _lengths(*parts: Any) -> frozenset[Any]:
    """The lengths and symbols in the fields of an atom."""
    return frozenset([n for part in parts if type(part) is Extent for n in part.lengths])


def _quotient(n: Any, divisor: Any) -> Any:
    """``n / divisor`` as a polynomial, or None if there is none: division by leading terms."""
    terms = _terms(divisor)
    if not terms or not divisor:
        return None
    (leading, size), *_ = terms
    whole: Any = 0
    while n:
        (monomial, factor), *_ = _terms(n)
        rest = list(monomial)
        for x in leading:
            if x not in rest:
                return None
            rest.remove(x)
        if factor % size:
            return None
        part = extent([(tuple(rest), factor // size)])
        whole, n = whole + part, n - part * divisor
    return whole


def equal(n: Extent, other: Any, internal: bool) -> Any:
    """``n == other``: within the package, equality of polynomials; in a user's code, True for equal polynomials, else a
    comparison of the values in each lane.
    """
    other = unbound(other)
    if n is other or internal or (n.scope is not None and _terms(other) is not None):
        return n is other
    return NotImplemented if other is None else n.value == other


def differs(n: Extent, other: Any, internal: bool) -> Any:
    same = equal(n, other, internal)
    return not same if isinstance(same, bool) else same if same is NotImplemented else n.value != unbound(other)


def decided(f: Callable[[Any, Any], Any], n: Extent, other: Any, internal: bool) -> Any:
    """The comparison ``f(n, other)``: a bool where it is the same for all lengths; else, in a user's code, of the
    values in each lane.
    """
    if _terms(other) is not None:
        difference = n - other
        low = least(difference)
        high = difference if type(difference) is int else min(most(difference, _unknown), -least(-difference))
        answers = {f(low, 0), f(high, 0)}
        if len(answers) == 1:
            return answers.pop()
        if n.scope is not None:
            raise TracerBoolConversionError(
                f"shape: how {n} compares with {other} must follow from the scope of the sizes, got {n.scope}.",
                hint="a constraint, such as symbolic_shape(..., constraints=['a >= b']).",
            )
    if internal:
        raise TracerBoolConversionError(
            f"shape: the size {n} differs from lane to lane, and so does how it compares with {other}.",
            hint="hx.numpy.where or hx.lax.cond on x.shape[0], or a size that all lanes share.",
        )
    return f(n.value, other)


def fits(size: Any, limit: Any) -> bool:
    """Whether ``size <= limit`` for at least one assignment of the lengths. Indices that exceed a lane's size at run
    time are clamped.
    """
    return least(size - limit) <= 0 if type(size) is Extent or type(limit) is Extent else size <= limit


def estimate(size: Any) -> int:
    """An integer in place of a size, for cost estimates: every length is taken to be ``TYPICAL``."""
    return size if isinstance(size, int) else size.at(dict.fromkeys(size.lengths, TYPICAL))


def single(size: Any) -> int:
    """The size of a window of one element along an axis of this size: 1, or 0 if the axis is empty."""
    return min(1, size) if isinstance(size, int) else 1


def unbound(x: Any) -> Any:
    """``x``, a size or a nested tuple of sizes, with every ``BoundSize`` replaced by its ``Extent``."""
    if isinstance(x, BoundSize):
        return x.extent
    if type(x) is tuple and any([isinstance(item, (tuple, BoundSize)) for item in x]):
        return tuple([unbound(item) for item in x])
    return x


def as_size(size: Any, where: str = "a size") -> Any:
    """A size of a shape: an extent as it is, anything else as a Python integer. ``where`` is named in errors.

    Raises: NotAnInteger, ConcretizationError: as ``whole_number``.
    """
    if type(size) is int or type(size) is Extent:
        return size
    return size.extent if isinstance(size, BoundSize) else whole_number(where, size)


def is_size(x: Any) -> bool:
    """Whether ``x`` is one size: a Python integer or an extent."""
    return isinstance(x, (int, Extent, BoundSize))
