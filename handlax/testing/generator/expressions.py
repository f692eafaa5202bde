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


# Variants of statements: texts, in which x and y are floats of one shape, or y a number; v is an array with axes, of n
# rows like r; i and j are counts, b is a truth. None grows without bound where a loop repeats it.

SMOOTH = (
    "hnp.tanh({x} + {y})", "hnp.sin({x}) * {y}", "0.5 * {x} * hnp.cos({y})", "hnp.tanh({x} - 0.5 * {y})",
    "hnp.where({b}, {x}, {y})", "hnp.tanh({x}) * (1 + {i})", "hnp.exp(-{x} * {x})", "0.5 * {x}",
    "0.5 * ({x} + {y})", "0.5 * ({x} - {y})", "0.1 * {x} * {y}", "{x} / (1.0 + {y} * {y})", "hnp.maximum({x}, {y})",
)
STACKED = "hnp.stack([{x}, {y}])"
SHAPED: Mapping[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {  # to the shape of the result
    "0.5 * hnp.sum({v}, axis=0)": lambda shape: shape[1:],
    "{v}.T": lambda shape: shape[::-1],
    "{v}[::-1]": lambda shape: shape,
    "{v}[:0]": lambda shape: (0, *shape[1:]),
    "0.4 * hnp.cumsum({v}, axis=0)": lambda shape: shape,
}
INDEXED: Mapping[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {  # of arrays with rows
    "{v}[{i} % {n}]": lambda shape: shape[1:],
    "{v}.at[{i} % {n}].set({r})": lambda shape: shape,
}
COUNTED = ("({i} * 2 + {j}) % 5", "({i} + 1) % 4", "hnp.where({b}, {i}, {j})")
TESTED = ("{x} > 0.1234", "{i} % 2 == 0", "{i} > {j}", "~{b}")
TOLD = "hx.tell({x})"
VARIANTS: Mapping[str, str] = {  # with the text of each for the inputs of a nest
    text: text.format(x="x", y="x", v="v", n=3, r="x", i="k", j="k", b="p")
    for text in (*SMOOTH, STACKED, *SHAPED, *INDEXED, *COUNTED, *TESTED, TOLD)
}


def smooth(a: Writer, scope: Body) -> None:
    example = scope[a.variable(scope, of_kind("f"))]
    x, y, i = value(a, scope, example), value(a, scope, a.choice((example, NUMBER))), value(a, scope, COUNT)
    a.let(scope, a.variant(SMOOTH).format(x=x, y=y, i=i, b=value(a, scope, TRUTH)), example)


def shaped(a: Writer, scope: Body) -> None:
    example = scope[a.variable(scope, of_kind("f"))]
    v, shape = value(a, scope, example), example.shape
    if not shape:
        a.let(scope, a.variant([STACKED]).format(x=v, y=value(a, scope, example)), np.zeros(2))
        return
    forms = {**SHAPED, **INDEXED} if shape[0] else SHAPED
    text = a.variant(forms)
    i, row = value(a, scope, COUNT), value(a, scope, np.zeros(shape[1:]))
    a.let(scope, text.format(v=v, n=shape[0], i=i, r=row), np.zeros(forms[text](shape)))


def counted(a: Writer, scope: Body) -> None:
    i, j, b = value(a, scope, COUNT), value(a, scope, COUNT), value(a, scope, TRUTH)
    a.let(scope, a.variant(COUNTED).format(i=i, j=j, b=b), COUNT)


def tested(a: Writer, scope: Body) -> None:
    x, i, j = value(a, scope, NUMBER), value(a, scope, COUNT), value(a, scope, COUNT)
    a.let(scope, a.variant(TESTED).format(x=x, i=i, j=j, b=value(a, scope, TRUTH)), TRUTH)


def told(a: Writer, scope: Body) -> None:
    """An effect for the handler around."""
    if "handler" not in scope.around:
        raise Unfit
    a.let(scope, a.variant([TOLD]).format(x=value(a, scope, NUMBER)), NUMBER)


EXPRESSIONS: Mapping[Statement, float] = {smooth: 3, shaped: 1, counted: 1, tested: 1, told: 2.5}
