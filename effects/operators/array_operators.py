"""Infix operators of arrays: promote and broadcast the operands, then perform an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.stack import current, perform
from ..core.arrays import PYTHON_NUMBERS, Array, ConcreteArray
from ..core.operation import Operation
from ..operations.elementwise.arithmetic import Add, Div, Mul, Neg, Sub
from ..operations.elementwise.bitwise import And, Not, Or, Xor
from ..operations.elementwise.comparison import Eq, Ge, Gt, Le, Lt, Ne
from ..operations.elementwise.conversion import convert
from ..operations.manipulation.operand_promotion import broadcast_together, together
from ..operations.random_bits import RandomUnwrap
from ..operations.reductions.reductions import reduce_and, reduce_or
from ..types.dtype_families import KeyDType
from ..types.dtypes import ANY_INEXACT, default_int, is_complex
from . import numpy_arithmetic

# classes that operators accept as operands; for others they return NotImplemented
_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)
_USUAL = frozenset({ConcreteArray, *PYTHON_NUMBERS})  # most of them, found by one look-up
Method = Callable[..., Any]


def binary(
    name: str, kind: type[Operation], floats: bool = False, keys: Callable[..., Any] | None = None
) -> tuple[Method, Method]:
    """The methods for ``x op y`` and ``y op x`` that promote the operands and perform an operation.

    With ``floats``, integers and booleans become floats first. ``keys`` is the function of two arrays of random keys.
    """
    op = kind()

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if keys is not None and self.type.dtype.__class__ is KeyDType and other.type.dtype == self.type.dtype:
                return keys(self, other)
            if self.type is other.type and not (floats and self.type.dtype not in ANY_INEXACT):
                return current().answer(op, (self, other))
        elif other.__class__ not in _USUAL and not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, self, other, floats=floats)))

    def reflected(self: Any, other: Any) -> Any:
        if other.__class__ not in _USUAL and not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, other, self, floats=floats)))

    return forward, reflected


def composed(f: Method) -> tuple[Method, Method]:
    """The methods for ``x op y`` and ``y op x`` that call a function of two operands, which promotes them."""

    def forward(self: Any, other: Any) -> Any:
        return f(self, other) if other.__class__ in _USUAL or _is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return f(other, self) if other.__class__ in _USUAL or _is_operand(other) else NotImplemented

    return forward, reflected


def _is_operand(x: Any) -> bool:
    return isinstance(x, _OPERANDS) or hasattr(type(x), "__handlax_array__") or hasattr(type(x), "__jax_array__")


def attach(name: str, method: Method) -> None:
    """Set ``method`` as the method ``__name__`` of arrays."""
    method.__name__ = f"__{name}__"
    method.__qualname__ = f"Array.__{name}__"
    setattr(Array, f"__{name}__", method)


def install(symbol: str, methods: tuple[Method, Method]) -> None:
    """Set the operator ``__symbol__`` of arrays and its reflection."""
    attach(symbol, methods[0])
    attach(f"r{symbol}", methods[1])


def _of_words(kind: type[Operation], fold: Callable[..., Any]) -> Callable[..., Any]:
    """The comparison of two arrays of keys: ``kind`` compares their words, ``fold`` reduces the words of each key."""

    def compared(x: Any, y: Any) -> Any:
        words = [perform(RandomUnwrap(), keys) for keys in (x, y)]
        of_words = perform(kind(), *broadcast_together("keys", words))
        return fold(of_words, (of_words.ndim - 1,))

    return compared


def _round(self: Any, ndigits: int | None = None) -> Any:
    """``round(x)`` gives integers, ``round(x, n)`` keeps the dtype."""
    y = numpy_arithmetic.around(self, ndigits or 0)
    return convert(y, default_int()) if ndigits is None and not is_complex(y.type.dtype) else y


_neg, _not = Neg(), Not()
_BINARY = {"add": Add, "sub": Sub, "mul": Mul, "and": And, "or": Or, "xor": Xor}
_COMPARISON = {"lt": Lt, "le": Le, "gt": Gt, "ge": Ge}

for _symbol, _kind in _BINARY.items():
    install(_symbol, binary(_symbol, _kind))
for _symbol, _kind in _COMPARISON.items():  # Python reflects comparisons by itself
    attach(_symbol, binary(_symbol, _kind)[0])
attach("eq", binary("eq", Eq, keys=_of_words(Eq, reduce_and))[0])
attach("ne", binary("ne", Ne, keys=_of_words(Ne, reduce_or))[0])
install("truediv", binary("truediv", Div, floats=True))
attach("neg", lambda self: perform(_neg, self))
attach("invert", lambda self: perform(_not, self))
attach("pos", lambda self: self)
attach("abs", numpy_arithmetic.absolute)
attach("round", _round)
