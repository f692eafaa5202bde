"""Inputs for the laws: a case is an operation with the domains its operands come from.

    Case(Log(), (Domain(0.1, 3.0),))
    Case(SelectN(), (Domain(dtype=bool), REAL, REAL), shapes=(((), (3,), (3,)), ((3,), (3,), (3,))))

``case.operands(dtype, shapes, rng)`` makes NumPy operands; ``arguments(case)`` is the Hypothesis strategy of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from handlax.effects.core.operation import Operation
from handlax.effects.types import dtypes

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Domain:
    """The domain of one operand: reals and the parts of complex numbers between ``low`` and ``high``, integers too.

    ``dtype`` fixes the dtype, where it is not the case's. Values closer than ``margin`` to one in ``apart`` are moved
    away: points where the operation has a kink or jump. ``extremes`` are further values, for the law of values alone.
    """

    low: float = -3.0
    high: float = 3.0
    dtype: Any = None
    apart: tuple[float, ...] = ()
    margin: float = 0.1
    imaginary: tuple[float, float] | None = None
    extremes: tuple[float, ...] = ()

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """An array of this domain."""
        dtype = np.dtype(self.dtype if self.dtype is not None else dtype)
        if dtypes.is_bool(dtype):
            return rng.integers(0, 2, shape).astype(bool)
        if dtypes.is_integer(dtype):
            info = dtypes.iinfo(dtype)
            low, high = max(int(info.min), int(np.ceil(self.low))), min(int(info.max), int(self.high))
            return np.asarray(rng.integers(low, max(low, high), shape, endpoint=True)).astype(dtype)
        if dtypes.is_complex(dtype):
            imaginary = rng.uniform(*(self.imaginary or (self.low, self.high)), shape)
            return np.asarray(self._reals(shape, rng) + 1j * imaginary).astype(dtype)
        return np.asarray(self._reals(shape, rng)).astype(dtype)

    def _reals(self, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        x = np.asarray(rng.uniform(self.low, self.high, shape))
        for point in self.apart:
            near = np.abs(x - point) < self.margin
            x = np.where(near, point + np.copysign(self.margin, x - point), x)
        return x

    def with_extremes(self, x: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """``x`` with some elements replaced by extremes that its dtype can hold."""
        held = [value for value in self.extremes if _holds(x.dtype, value)]
        if not held or not x.size:
            return x
        with np.errstate(over="ignore"):  # 1e30 is an extreme of float16 too: infinity
            chosen = np.asarray(rng.choice(np.asarray(held, dtype=object), x.shape)).astype(x.dtype)
        return np.asarray(np.where(rng.random(x.shape) < 0.5, chosen, x).astype(x.dtype))


def _holds(dtype: Any, value: float) -> bool:
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return bool(np.isfinite(value)) and value == int(value) and info.min <= value <= info.max
    return not dtypes.is_bool(dtype)


@dataclass(frozen=True)
class Case:
    """An operation and the domains of its operands; ``shapes`` are the alternatives, one shape for each operand.

    Operands of an elementwise operation have equal shapes, or rank 0: that is the default.
    """

    op: Operation
    domains: tuple[Domain, ...]
    shapes: tuple[tuple[Shape, ...], ...] = ()
    dtypes: frozenset[Any] | None = None

    def __post_init__(self) -> None:
        if not self.shapes:
            object.__setattr__(self, "shapes", elementwise_shapes(len(self.domains)))
        if self.dtypes is None:
            object.__setattr__(self, "dtypes", self.op.dtypes if self.op.dtypes is not None else dtypes.ANY)

    def restrict(self, family: Iterable[Any]) -> Case:
        """The case for those of its dtypes that are in ``family``."""
        return replace(self, dtypes=frozenset(family) & (self.dtypes or frozenset()))

    def operands(
        self, dtype: Any, shapes: tuple[Shape, ...], rng: np.random.Generator, *, extremes: bool = False
    ) -> list[np.ndarray[Any, Any]]:
        """One array per operand; with ``extremes``, special values among them."""
        arrays = [domain.draw(dtype, shape, rng) for domain, shape in zip(self.domains, shapes)]
        return [d.with_extremes(x, rng) for d, x in zip(self.domains, arrays)] if extremes else arrays

    def __str__(self) -> str:
        fields = ", ".join(f"{value!r}" for value in self.op.fields)
        return f"{self.op.name}({fields})"


def elementwise_shapes(arity: int) -> tuple[tuple[Shape, ...], ...]:
    """Equal shapes, one of them empty, and one operand of rank 0 with arrays."""
    equal = tuple(((shape,) * arity) for shape in ((), (3,), (2, 3), (0, 2)))
    spread = tuple(tuple(() if i == j else (2, 3) for j in range(arity)) for i in range(arity)) if arity > 1 else ()
    return equal + spread


@st.composite
def arguments(draw: Any, case: Case, extremes: bool = False, family: Iterable[Any] | None = None) -> Any:
    """Operands of a case, of one of its dtypes (in ``family``) and shapes.

    Hypothesis chooses dtype, shapes and a seed: the values come from the case's domains.
    """
    names = sorted(dtype.name for dtype in (case if family is None else case.restrict(family)).dtypes or ())
    dtype = dtypes.canonical(draw(st.sampled_from(names)))
    shapes = draw(st.sampled_from(case.shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return case.operands(dtype, shapes, rng, extremes=extremes)


# the domains that most operations share
FINITE = (0.0, -0.0, 1.0, -1.0)
SPECIAL = (*FINITE, float("inf"), float("-inf"), float("nan"))
REAL = Domain(extremes=SPECIAL)
POSITIVE = Domain(0.1, 3.0, extremes=SPECIAL)
UNIT = Domain(-0.9, 0.9, extremes=SPECIAL)
SMOOTH = Domain(apart=(0.0,), extremes=SPECIAL)
INTEGERS = Domain(-(2.0**62), 2.0**62, extremes=(0, 1, -1, 127, -128, 2**31 - 1, -(2**31), -(2**63)))
