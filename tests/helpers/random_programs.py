"""Random well-typed programs with effects among their operations, for Hypothesis.

    @given(programs())                       any operations, sub-programs, constants of every dtype
    @given(programs(effects=True))           with effects among them
    @given(programs(dtypes=[f64], kinds=[Sin, Mul]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from handlax.effects.base import stack
from handlax.effects.core.operation import effect
from handlax.effects.operations.elementwise.arithmetic import Add
from handlax.effects.programs.program import Program
from handlax.effects.types import dtypes as names
from handlax.effects.types.array_type import array_type
from handlax.interpreters.core import evaluate
from handlax.testing import equations
from handlax.testing.generator.equations import DTYPES, KEY, SHAPES

stack.BASE.answer = evaluate.answer


@effect(vmap="per_lane")
class Chime:
    """An effect without operands and result."""

    by: int = 1

    def result_type(op):
        return None


@effect(vmap="per_lane", diff="stop")
class Announce:
    """An effect that returns its operand."""

    tag: Any = "log"

    def result_type(op, x):
        return x


def programs(effects: bool = False, **options: Any) -> st.SearchStrategy[Program]:
    """Programs with the options of ``equations``."""
    chosen = st.one_of(st.builds(Chime, st.integers(-1, 3)), st.builds(Announce, fields()))
    return equations(st.lists(chosen, min_size=1, max_size=4) if effects else None, **options)


def fields() -> st.SearchStrategy[Any]:
    """Values of fields of operations that can be printed and parsed back."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(width=64), st.complex_numbers(), st.text(), st.binary(),
        st.sampled_from([*DTYPES, KEY, names.float0, ..., np.sin, int, Chime, Add, Add(), len, range(1, 9, 2)]),
        st.builds(array_type, st.sampled_from(SHAPES), st.sampled_from(DTYPES), st.booleans()), st.just(Chime(4)),
        st.sampled_from([np.float32(0.1), np.int8(-3), np.float64("nan"), np.complex64(1 - 0j), np.bool_(True)]),
    )
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)
