"""The statements of nests without bodies, which are smooth and bounded, and expressions of the kind of an example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from .author import Statement, Unfit
from .writer import Body, Writer, text_of

NUMBER, COUNT, TRUTH = np.zeros(()), np.zeros((), np.int32), np.zeros((), bool)  # examples of the kinds of scalars


def of_kind(letters: str) -> Callable[[Any], bool]:
    """Whether a value is of one of these kinds: floats ``f``, integers ``i``, bools ``b``."""
    return lambda x: x.dtype.kind in letters


def alike(example: Any) -> Callable[[Any], bool]:
    """Whether a value is of the kind and the shape of an example."""
    return lambda x: (x.dtype.kind, x.shape) == (example.dtype.kind, example.shape)


def value(a: Writer, scope: Body, example: Any) -> str:
    """An expression of the kind and the shape of an example: a variable in scope, or a constant."""
    if not a.chance(0.1):
        with suppress(Unfit):
            return a.variable(scope, alike(example))
    shape, letter = example.shape, example.dtype.kind
    if letter == "f" and a.chance():
        x = a.variable(scope, of_kind("f"))
        number = f"0.3 * hnp.sum({x})" if scope[x].ndim else x
        return f"hnp.broadcast_to({number}, {shape})" if shape else f"({number})"
    constant = {"f": "0.25, 'float64'", "i": "hnp.int32(2)", "b": "True"}[letter]
    return f"hnp.full({shape}, {constant})" if shape else f"hnp.asarray({constant})"


def values(a: Writer, scope: Body, examples: Iterable[Any]) -> str:
    """The text of a tuple of values like these."""
    return text_of([value(a, scope, x) for x in examples])


def start(a: Writer, scope: Body, examples: Iterable[Any]) -> str:
    """The text of an initial carry; some of its values are Python numbers."""
    literal = {"f": "0.5", "i": "0", "b": "False"}
    return text_of([
        literal[x.dtype.kind] if not x.shape and a.chance(0.2) else value(a, scope, x) for x in examples
    ])


def examples(a: Writer, scope: Body, low: int, high: int, letters: str = "fib") -> list[Any]:
    """The values of ``low`` to ``high`` variables of these kinds."""
    return [scope[a.variable(scope, of_kind(letters))] for _ in range(a.integer(low, high))]


def smooth(a: Writer, scope: Body) -> None:
    example = scope[a.variable(scope, of_kind("f"))]
    x, y, i = value(a, scope, example), value(a, scope, a.choice((example, NUMBER))), value(a, scope, COUNT)
    b = value(a, scope, TRUTH)
    forms = (
        f"hnp.tanh({x} + {y})", f"hnp.sin({x}) * {y}", f"0.5 * {x} * hnp.cos({y})", f"hnp.tanh({x} - 0.5 * {y})",
        f"hnp.where({b}, {x}, {y})", f"hnp.tanh({x}) * (1 + {i})", f"hnp.exp(-{x} * {x})", f"0.5 * {x}",
    )
    a.let(scope, a.choice(forms), example)


def shaped(a: Writer, scope: Body) -> None:
    example = scope[a.variable(scope, of_kind("f"))]
    x, shape = value(a, scope, example), example.shape
    if not shape:
        a.let(scope, f"hnp.stack([{x}, {value(a, scope, example)}])", np.zeros(2))
        return
    forms = [
        (f"0.5 * hnp.sum({x}, axis=0)", shape[1:]), (f"{x}.T", shape[::-1]), (f"{x}[::-1]", shape),
        (f"{x}[:0]", (0, *shape[1:])), (f"0.4 * hnp.cumsum({x}, axis=0)", shape),
    ]
    if shape[0]:
        i, row = f"{value(a, scope, COUNT)} % {shape[0]}", np.zeros(shape[1:])
        forms += [(f"{x}[{i}]", row.shape), (f"{x}.at[{i}].set({value(a, scope, row)})", shape)]
    text, of_shape = a.choice(forms)
    a.let(scope, text, np.zeros(of_shape))


def counted(a: Writer, scope: Body) -> None:
    i, j, b = value(a, scope, COUNT), value(a, scope, COUNT), value(a, scope, TRUTH)
    a.let(scope, a.choice((f"({i} * 2 + {j}) % 5", f"({i} + 1) % 4", f"hnp.where({b}, {i}, {j})")), COUNT)


def tested(a: Writer, scope: Body) -> None:
    x, i, j = value(a, scope, NUMBER), value(a, scope, COUNT), value(a, scope, COUNT)
    b = value(a, scope, TRUTH)
    a.let(scope, a.choice((f"{x} > 0.1234", f"{i} % 2 == 0", f"{i} > {j}", f"~{b}")), TRUTH)


def told(a: Writer, scope: Body) -> None:
    """An effect for the handler around."""
    if "handler" not in scope.around:
        raise Unfit
    a.let(scope, f"hx.tell({value(a, scope, NUMBER)})", NUMBER)


EXPRESSIONS: Mapping[Statement, float] = {smooth: 3, shaped: 1, counted: 1, tested: 1, told: 2.5}
