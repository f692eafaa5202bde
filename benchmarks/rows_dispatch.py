"""Calls of functions that are compiled already: the cost of dispatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import handlax

from .sides import OURS, Side, assert_agree, on, seeded
from .timing import Check, Measure, Part, Prepare, Row, timed


def dispatch(
    make: Callable[[Side], Callable[..., Any]],
    *args: Any,
    freeze: bool = False,
    numpy_arguments: bool = False,
    check: Check = assert_agree,
) -> Measure:
    """A call of ``jit(make(side))``; only the last of many calls is awaited, as in a loop of calls.

    The note is the share of XLA's runtime: executing the program and creating the buffers of its results.
    """

    def operands(side: Side) -> tuple[Any, ...]:
        if numpy_arguments:
            return args
        arrays = on(side, args)
        return tuple([handlax.tree.freeze(x) for x in arrays]) if freeze and side is OURS else arrays

    def call(side: Side) -> Prepare:
        g, xs = side.lib.jit(make(side)), operands(side)
        return lambda: lambda: g(*xs)

    def runtime_alone() -> Prepare:
        g, leaves = handlax.jit(make(OURS)), handlax.tree.leaves(operands(OURS))
        g(*operands(OURS))
        ((_, compiled, plan),) = g._jit_info.compiled.values()
        buffers = [OURS.array(x).buffer for x in leaves]
        if compiled.prepare is not None:
            buffers = compiled.prepare(buffers)
        return lambda: lambda: plan.execute(buffers)

    part = Part("of which XLA's runtime", runtime_alone, lambda results: results[-1].block_until_ready())
    return timed(call, check=check, part=part)


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


def of(f: Callable[..., Any]) -> Callable[[Side], Callable[..., Any]]:
    """The same function on both sides."""
    return lambda side: f


def mapped(side: Side) -> Callable[[Any], Any]:
    """``tree.map``: the result for a frozen tree is frozen."""
    return lambda tree: side.lib.tree.map(lambda leaf: leaf + 1.0, tree)


X = seeded(8)
TEN = tuple([seeded(8, seed=i) for i in range(10)])
HUNDRED = {f"leaf{i:02}": seeded(8, seed=i) for i in range(100)}


def frozen_agree(ours: Any, theirs: Any) -> None:
    """The results have equal names and values; one side may be a frozen tree."""
    assert sorted(ours) == sorted(theirs)
    for name in theirs:
        np.testing.assert_allclose(np.asarray(ours[name]), np.asarray(theirs[name]), rtol=1e-6)


ROWS = [
    Row("jit dispatch, 1 argument", 1.00, dispatch(of(one), X)),
    Row("jit dispatch, 10 arguments to 1 result", 1.00, dispatch(of(ten_to_one), *TEN)),
    Row("jit dispatch, 10 arguments to 10 results", 1.00, dispatch(of(ten_to_ten), *TEN)),
    Row("jit dispatch, dict of 100 leaves to 1", 1.10, dispatch(of(total), HUNDRED), 0.80),
    Row("jit dispatch, dict of 100 leaves to 100", 1.15, dispatch(of(each), HUNDRED), 0.80),
    Row("jit dispatch, frozen tree of 100 leaves to 1", 0.50, dispatch(of(total), HUNDRED, freeze=True), 0.30),
    Row("jit dispatch, frozen tree of 100 leaves to a frozen tree of 100", 0.85,
        dispatch(mapped, HUNDRED, freeze=True, check=frozen_agree), 0.30),
    Row("jit dispatch, frozen tree of 100 leaves to a dict of 100", None,
        dispatch(of(each), HUNDRED, freeze=True, check=frozen_agree)),
    Row("jit dispatch, 1 NumPy argument", 1.60, dispatch(of(one), X, numpy_arguments=True), 1.00),
    Row("jit dispatch, 10 NumPy arguments", 1.60, dispatch(of(ten_to_one), *TEN, numpy_arguments=True), 1.00),
]
