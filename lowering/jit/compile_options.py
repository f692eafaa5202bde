"""Options of ``jit``: enumerations, and those of the compiler."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...effects.base.errors import BadArgument
from ...effects.base.lazy_module import LazyModule

if TYPE_CHECKING:
    import difflib
else:
    difflib = LazyModule("difflib")


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


def checked_options(where: str, options: Mapping[str, Any] | None) -> dict[str, bool | int | float | str] | None:
    """The options of the compiler as a dictionary, NumPy's numbers as Python's; None if there are none.

    Raises: BadArgument: they are no mapping of names to numbers and strings, or ``split_repeats`` is no bool or
    misspelt.
    """
    if options is None:
        return None
    if not isinstance(options, Mapping) or not all([isinstance(name, str) for name in options]):
        raise BadArgument(f"{where}: compiler_options must be a mapping from names to values, got {options!r}.")
    chosen = {name: x.item() if isinstance(x, np.generic) else x for name, x in options.items()}
    split_repeats = chosen.get("split_repeats", True)
    if not isinstance(split_repeats, bool):
        raise BadArgument(f"{where}: split_repeats must be True or False, got {split_repeats!r}.")
    for name, value in chosen.items():
        if name != "split_repeats" and difflib.get_close_matches(name, ["split_repeats"], cutoff=0.8):
            raise BadArgument(
                f"{where}: a compiler option is one of XLA's or split_repeats, got {name!r}.", hint="use split_repeats."
            )
        if not isinstance(value, bool | int | float | str):
            raise BadArgument(f"{where}: a compiler option is a number or a string, got {name}={value!r}.")
    return chosen
