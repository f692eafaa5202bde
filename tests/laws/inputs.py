"""Inputs for the laws: a case is an operation with the domains its operands come from.

    Case(Log(), (Domain(0.1, 3.0),))
    Case(SelectN(), (Domain(dtype=bool), REAL, REAL), shapes=(((), (3,), (3,)), ((3,), (3,), (3,))))

``case.operands(dtype, shapes, rng)`` makes NumPy operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from handlax.effects.core.operation import Operation
from handlax.effects.types import dtypes
from handlax.testing.strategies import Domain

Shape = tuple[int, ...]


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


# the domains that most operations share
FINITE = (0.0, -0.0, 1.0, -1.0)
SPECIAL = (*FINITE, float("inf"), float("-inf"), float("nan"))
REAL = Domain(extremes=SPECIAL)
POSITIVE = Domain(0.1, 3.0, extremes=SPECIAL)
UNIT = Domain(-0.9, 0.9, extremes=SPECIAL)
SMOOTH = Domain(apart=(0.0,), extremes=SPECIAL)
INTEGERS = Domain(-(2.0**62), 2.0**62, extremes=(0, 1, -1, 127, -128, 2**31 - 1, -(2**31), -(2**63)))
