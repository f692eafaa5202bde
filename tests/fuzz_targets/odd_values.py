"""Arguments of all kinds, those that no function expects included, read from choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from handlax import numpy as hnp
from handlax.effects.core.arrays import Array
from handlax.testing.fuzzing import ByteChoices

SIZES = (2, 3, 1, 0, 4)
_ODD: tuple[Any, ...] = (
    None, True, False, -1, 7, 2**31, 2**63, 2**70, -(2**70), 1.0, 0.5, float("nan"), float("inf"), 1j, "", "a", "0",
    b"i", ..., slice(None), (), [], {}, set(), frozenset({0}), object, object(), len, np.int8(1), np.float32(1.5),
    np.bool_(True), np.str_("i"), np.zeros((0,), np.int32), np.arange(2), np.array(None), np.array("a"),
    range(2), NotImplemented, -0.0,
)


def small(choices: ByteChoices) -> int:
    """An integer about 0, as axes, sizes and strides are."""
    return choices.integer(0, 7) - 3


def odd(choices: ByteChoices, depth: int = 2) -> Any:
    """Any value: numbers, texts, arrays, functions, and containers of them."""
    return choices.made_by(
        lambda: small(choices),
        lambda: choices.one_of(*_ODD),
        lambda: array(choices),
        lambda: _container(choices, depth - 1) if depth else None,
    )


def _container(choices: ByteChoices, depth: int) -> Any:
    items = choices.several(lambda: odd(choices, depth), 3)
    return choices.made_by(
        lambda: tuple(items), lambda: items, lambda: {str(i): item for i, item in enumerate(items)},
        lambda: slice(*(items + [None])[:3]),
    )


def mostly(choices: ByteChoices, value: Any) -> Any:
    """The value, which is meaningful, in seven of eight cases; else any."""
    return odd(choices) if choices.integer(0, 7) == 7 else value


def several_of(choices: ByteChoices, item: Any, most: int) -> Any:
    """What is one value or several: ``item()``, or a tuple of some, or any value."""
    return mostly(choices, choices.made_by(item, lambda: tuple(choices.several(item, most))))


def shape(choices: ByteChoices, most: int = 3) -> tuple[int, ...]:
    return tuple(choices.several(lambda: choices.one_of(*SIZES), most))


def array(choices: ByteChoices, most: int = 3) -> Array:
    """A small array of any rank up to ``most``, and of some dtypes."""
    sizes, dtype = shape(choices, most), choices.one_of("float32", "int32", "bool", "complex64", "uint8", "bfloat16")
    return hnp.ones(sizes, dtype)
