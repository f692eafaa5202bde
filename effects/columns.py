"""The built-in columns, and the words that stand in place of code where mathematics has one.

    evaluate(op, *arrays) -> array                      NumPy in, NumPy out: the specification
    batch(op, dims, *xs) -> (y, dim)                    dims[i]: the mapped dimension of operand i, or None
    jvp(op, primals, tangents) -> (y, dy)               None is the symbolic zero
    transpose(op, ct, *operands, wrt) -> cotangent      linear operands come as their types
    lower(op, emit, *values) -> value
    collective(op, axis, size, dims, *xs) -> (y, dim)   an operation that names a mapped axis, at that axis
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .operations import COLUMNS, Column, Operation
from .stack import perform
from .types import ArrayType


def _wants(cell: Any, parameter: str) -> bool:
    code = getattr(cell, "__code__", None)
    if code is not None:
        return parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return parameter in inspect.signature(cell).parameters


def _adapt_transpose(op: type[Operation], cell: Any) -> Callable[..., Any]:
    if _wants(cell, "wrt"):
        return cell
    return lambda op, ct, *operands, wrt: cell(op, ct, *operands)


class Word:
    """The cell of ``lower`` that is a word: the name of StableHLO's or CHLO's operation on elements."""

    __slots__ = ("word", "plain")

    def __init__(self, word: str):
        self.word = word
        self.plain = not word.startswith("chlo.")

    def __call__(self, op: Operation, emit: Any, *values: Any) -> Any:
        return emit.elementwise(self.word, *values)


def _adapt_lower(op: type[Operation], cell: Any) -> Callable[..., Any]:
    return Word(cell) if isinstance(cell, str) else cell


EVALUATE = Column("evaluate", doc="NumPy's meaning; the specification of the operation")
BATCH = Column("batch", doc="one more axis (vmap)")
JVP = Column("jvp", doc="forward derivative")
TRANSPOSE = Column("transpose", _adapt_transpose, doc="the adjoint of a linear operation")
LOWER = Column("lower", _adapt_lower, doc="StableHLO")
COLLECTIVE = Column("collective", doc="an operation that names an axis, at the handler that has it")


def __getattr__(name: str) -> Column:
    """``columns.batch``: every column by its name, third-party ones too."""
    if name in COLUMNS:
        return COLUMNS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def linear(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Linear in all operands together: the derivative is the operation itself."""
    y = perform(op, *primals)
    if None in tangents:
        tangents = tuple([zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents)])
    return y, perform(op, *tangents)


def multilinear(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Linear in each operand apart: the derivative is a sum of one term per operand."""
    y = perform(op, *primals)
    if len(primals) == 2:
        a, b = primals
        da, db = tangents
        if da is None:
            return y, perform(op, a, db)
        dy = perform(op, da, b)
        return y, dy if db is None else _Needs.add(dy, perform(op, a, db))
    dy = None
    for i, dx in enumerate(tangents):
        if dx is not None:
            term = perform(op, *primals[:i], dx, *primals[i + 1 :])
            dy = term if dy is None else add_tangents(dy, term)
    return y, dy


def linear_in(*positions: int) -> Callable[..., Any]:
    """Linear in the operands at these positions together; the others are indices, masks and the like."""

    def rule(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        y = perform(op, *primals)
        if all(tangents[i] is None for i in positions if i < len(tangents)):
            return y, None
        operands = list(primals)
        for i in positions:
            if i < len(operands):
                operands[i] = zeros_like(primals[i]) if tangents[i] is None else tangents[i]
        return y, perform(op, *operands)

    rule.__qualname__ = f"linear_in{positions}"
    return rule


def zero(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Constant almost everywhere: the derivative is zero."""
    y = perform(op, *primals)
    return y, (None,) * len(y) if op.multiple else None


# The two things that every derivative needs of the operations; the modules that define these fill them in, once.
class _Needs:
    add: Callable[[Any, Any], Any]
    zeros: Callable[[Any], Any]


def add_tangents(a: Any, b: Any) -> Any:
    """a + b, where None is zero."""
    if a is None:
        return b
    if b is None:
        return a
    return _Needs.add(a, b)


def zeros_like(x: Any) -> Any:
    """Zeros of the type of ``x``: an array, or a type itself."""
    return _Needs.zeros(x if isinstance(x, ArrayType) else x.type)


def provide_add(add: Callable[[Any, Any], Any]) -> None:
    _Needs.add = staticmethod(add)


def provide_zeros(zeros: Callable[[ArrayType], Any]) -> None:
    _Needs.zeros = staticmethod(zeros)
