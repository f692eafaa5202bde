"""jet: Taylor series. A box is a truncated power series x_0 + x_1 t + ... + x_k t^k, of which ``terms`` has these.

    jet(f)(x(t)) = f(x(t)) + O(t^(k+1))

The series of a result is had from the forward derivative alone: y'(t) = f'(x(t)) x'(t), computed one order lower by the
jvp rule, whose operations are answered by the same handler. Where that derivative is ``linear`` the operation itself is
applied to each term, where it is ``multilinear`` terms are multiplied (Cauchy's product), and an operation may have a
cell in the column ``jet``. Operations with bodies are crossed by ``body_transform``, so that series pass through loops.

Sources: Griewank & Walther, Evaluating Derivatives, chapter 13; Bettencourt, Johnson & Duvenaud 2019.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import STACK, Run, perform
from ...effects.core.columns import JET, JVP, add_tangents, is_linear, multilinear, zero, zeros_like
from ...effects.core.operation import Operation
from ...effects.operations.elementwise.arithmetic import div, like, mul
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.body_transform import BodyTransformer, cross
from ..core.rule_results import result_and_tangent
from ..core.sited_box import SitedBox
from .jvp import effect_rule

Series = tuple[Any, ...]


class JetBox(SitedBox):
    """A truncated power series, whose first term is the value. ``lower`` and ``rate`` are made once: see ``Jet``."""

    __slots__ = ("lower", "rate", "terms")
    terms: Series
    lower: Any
    rate: Any


class Jet(BodyTransformer):
    """A run of Taylor mode: it answers operations that have a box of it as operand. A mark is a number of terms."""

    __slots__ = ("known",)
    # the series computed for the operation that is answered, else None. Rules ask for the same ones again: each for its
    # own result, of a lower order, and those that name one another, as sin and cos do, 2^order times in all
    known: dict[Any, Any] | None

    def __init__(self, outer: Run, label: str, site: Any = None):
        super().__init__(outer, label, site)
        self.known = None

    def key(self) -> str:
        return "jet"

    def takes_bodies(self, op: Any) -> bool:
        return bool(op.diff == "bodies")

    def split(self, x: Any) -> tuple[int | None, Sequence[Any]]:
        return (len(x.terms), x.terms) if x.run is self else (None, (x,))

    def part_types(self, mark: int | None, type: ArrayType) -> Sequence[ArrayType]:
        return (type,) * (mark or 1)

    def join(self, marks: Sequence[int | None]) -> int | None:
        return min([mark for mark in marks if mark is not None], default=None)

    def force(self, x: Any, mark: int | None) -> Sequence[Any]:
        terms = self.split(x)[1]
        if mark is None or len(terms) == mark:
            return terms
        return terms[:mark] if len(terms) > mark else (x, *[zeros_like(x)] * (mark - 1))

    def box(self, mark: int | None, parts: Sequence[Any]) -> Any:
        return parts[0] if mark is None else self.series(tuple(parts))

    def series(self, terms: Series) -> JetBox:
        """The box of a power series with these terms."""
        new = JetBox()
        new.type, new.run, new.terms, new.site = terms[0].type, self, terms, self.cell.site
        new.lower = new.rate = None
        return new

    def lower(self, x: Any) -> Any:
        """The series without its last term."""
        if x.run is not self:
            return x
        if x.lower is None:
            x.lower = self.series(x.terms[:-1])
        return x.lower

    def rate(self, x: Any) -> Any:
        """The derivative of the series with respect to t, of one order less; None for values that are no series."""
        if x.run is not self:
            return None
        if x.rate is None:
            x.rate = self.series(tuple([_times(term, k) for k, term in enumerate(x.terms[1:], 1)]))
        return x.rate

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if not any([x.run is self for x in operands]):
            return self.outer.answer(op, operands)
        cell = self.cell
        site = cell.site
        cell.site = site or self.labelled_site()
        outermost = self.known is None
        if self.known is None:
            self.known = {}
        known = self.known
        try:
            entry = (op, tuple([id(x) for x in operands]))
            if entry not in known:  # with the operands, so that their identities stay theirs
                results = self.by_rule(op, operands)
                if op.effectful:
                    return results
                known[entry] = results, operands
            return known[entry][0]
        finally:
            cell.site = site
            if outermost:
                self.known = None

    def by_rule(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        """The answer by the rule for the kind of the operation's derivative."""
        kind = type(op)
        around = STACK.get()
        try:
            STACK.set(self.outer)
            if self.crosses(op) and not JVP.has(kind):
                return cross(self, op, operands)  # type: ignore[arg-type]
            count = min([len(x.terms) for x in operands if x.run is self])
            derivative = JVP.cell(kind)
            if JET.has(kind):
                rule = JET.find(kind)
            elif count == 1 or derivative is zero:
                rule = _value
            elif derivative is multilinear:
                rule = _products
            elif is_linear(derivative):
                rule = _term_by_term
            else:
                return self.by_derivative(op, operands, count)
            series = rule(op, [x.terms[:count] if x.run is self else (x,) for x in operands], count)
            return tuple([self.boxed(y) for y in series]) if op.multiple_results else self.boxed(series)
        finally:
            STACK.set(around)

    def boxed(self, terms: Series) -> Any:
        """The result as a box; the value alone if it is an integer or another value without derivative."""
        return self.series(terms) if is_inexact(terms[0].type.dtype) else terms[0]

    def by_derivative(self, op: Operation, operands: tuple[Any, ...], count: int) -> Any:
        """The series of the results by the jvp rule, applied to the series of the operands and of their derivatives."""
        cut = tuple([self.series(x.terms[:count]) if x.run is self and len(x.terms) > count else x for x in operands])
        around = STACK.get()
        try:
            STACK.set(self)
            rule = JVP.find(type(op)) if not op.effectful or JVP.has(type(op)) else effect_rule
            primals = tuple(map(self.lower, cut))
            y, dy = result_and_tangent(op, rule, primals, rule(op, primals, tuple(map(self.rate, cut))))
        finally:
            STACK.set(around)
        if not op.multiple_results:
            return self.integral(y, dy, count)
        return tuple([self.integral(a, da, count) for a, da in zip(y, dy)])

    def integral(self, y: Any, dy: Any, count: int) -> Any:
        """The series with constant term ``y`` and derivative ``dy``; None stands for derivative zero."""
        value = self.split(y)[1][0]
        if dy is None:
            return self.boxed((value, *[zeros_like(value)] * (count - 1)))
        rates = self.force(dy, count - 1)
        return self.series((value, *[_over(rate, k) for k, rate in enumerate(rates, 1)]))


def _times(x: Any, k: int) -> Any:
    return x if k == 1 else mul(x, like(x, k))


def _over(x: Any, k: int) -> Any:
    return x if k == 1 else div(x, like(x, k))


def _value(op: Operation, series: Sequence[Series], count: int) -> Any:
    """The series rule of operations whose derivative is zero: the value alone."""
    y = perform(op, *[x[0] for x in series])
    rest = lambda y: [zeros_like(y)] * (count - 1) if is_inexact(y.type.dtype) else []
    return tuple([(a, *rest(a)) for a in y]) if op.multiple_results else (y, *rest(y))


def _term_by_term(op: Operation, series: Sequence[Series], count: int) -> Any:
    """The series rule of linear operations: applied to each term; other operands have their values alone."""
    primals = tuple([x[0] for x in series])
    rule = JVP.find(type(op))
    pairs = [rule(op, primals, tuple([x[k] if len(x) > 1 else None for x in series])) for k in range(1, count)]
    y, terms = pairs[0][0], [dy for _, dy in pairs]
    if op.multiple_results:
        return tuple([_filled(a, column) for a, column in zip(y, zip(*terms))])
    return _filled(y, terms)


def _filled(y: Any, terms: Sequence[Any]) -> Series:
    return (y, *[zeros_like(y) if term is None else term for term in terms])


def _products(op: Operation, series: Sequence[Series], count: int) -> Series:
    """The series rule of multilinear operations, Cauchy's product: sum the products of terms whose orders sum to k."""
    totals: list[Any] = [None] * count
    for orders in itertools.product(*[range(len(x)) for x in series]):
        k = sum(orders)
        if k < count:
            term = perform(op, *[x[i] for x, i in zip(series, orders)])
            totals[k] = term if totals[k] is None else add_tangents(totals[k], term)
    return tuple(totals)
