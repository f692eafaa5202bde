"""Options of ``jit`` that are enumerations."""

from __future__ import annotations

import enum


class Inline(enum.Enum):
    """Where a jitted function that others call becomes part of them: under ``JAX_EARLY`` while they are traced.

    All others leave a call in the caller's program, which XLA inlines where it likes.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


class CompilerEffortLevel(enum.IntEnum):
    """How much time XLA spends: ``jit(f, compiler_options={"optimization_level": CompilerEffortLevel.O1})``.

    Source: https://openxla.org/xla/effort_levels.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39
