"""Random well-typed programs with effects among their operations, for Hypothesis.

    @given(programs())                       any operations, sub-programs, constants of every dtype
    @given(programs(effects=True))           with effects among them
    @given(programs(dtypes=[f64], kinds=[Sin, Mul]))
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from handlax.effects.core.operation import effect
from handlax.effects.programs.program import Program
from handlax.testing import equations
from handlax.testing.strategies import field_values


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
    """Values of fields of operations that can be printed and parsed back, effects among them."""
    return field_values(Chime, Chime(4))
