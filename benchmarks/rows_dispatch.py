"""Calls of jitted functions that are compiled already: what stands between the call and the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import handlax

from .sides import OURS, Side, on, seeded
from .timing import Prepare, Row, timed


def jitted(
    f: Callable[..., Any], *args: Any, freeze: bool = False, numpy_arguments: bool = False
) -> Callable[[Side], Prepare]:
    """A call of ``jit(f)``; the last of many is awaited, as calls follow each other in a program."""

    def make(side: Side) -> Prepare:
        g = side.lib.jit(f)
        given = args if numpy_arguments else on(side, args)
        if freeze and side is OURS:
            given = tuple([handlax.tree.freeze(x) for x in given])
        return lambda: lambda: g(*given)

    return make


def one(x):
    return x + 1.0


def ten_to_one(a, b, c, d, e, f, g, h, i, j):
    return a + b + c + d + e + f + g + h + i + j


def ten_to_ten(*xs):
    return tuple([x + 1.0 for x in xs])


def total(tree):
    result = 0.0
    for leaf in tree.values():
        result = result + leaf
    return result


def each(tree):
    return {name: leaf + 1.0 for name, leaf in tree.items()}


X = seeded(8)
TEN = tuple([seeded(8, seed=i) for i in range(10)])
HUNDRED = {f"leaf{i:02}": seeded(8, seed=i) for i in range(100)}


def frozen_agree(ours: Any, theirs: Any) -> None:
    """A frozen tree comes in; the results stand under the same names."""
    assert sorted(ours) == sorted(theirs)
    for name in theirs:
        np.testing.assert_allclose(np.asarray(ours[name]), np.asarray(theirs[name]), rtol=1e-6)


ROWS = [
    Row("jit dispatch, 1 argument", 1.00, timed(jitted(one, X))),
    Row("jit dispatch, 10 arguments to 1 result", 1.00, timed(jitted(ten_to_one, *TEN))),
    Row("jit dispatch, 10 arguments to 10 results", 1.00, timed(jitted(ten_to_ten, *TEN))),
    Row("jit dispatch, dict of 100 leaves to 1", 1.10, timed(jitted(total, HUNDRED)), 0.80),
    Row("jit dispatch, dict of 100 leaves to 100", 1.15, timed(jitted(each, HUNDRED)), 0.80),
    Row("jit dispatch, frozen tree of 100 leaves to 1", 0.50, timed(jitted(total, HUNDRED, freeze=True)), 0.30),
    Row("jit dispatch, frozen tree of 100 leaves to 100", 0.85,
        timed(jitted(each, HUNDRED, freeze=True), check=frozen_agree), 0.30),
    Row("jit dispatch, 1 NumPy argument", 1.60, timed(jitted(one, X, numpy_arguments=True)), 1.00),
    Row("jit dispatch, 10 NumPy arguments", 1.60, timed(jitted(ten_to_one, *TEN, numpy_arguments=True)), 1.00),
]  # fmt: skip
