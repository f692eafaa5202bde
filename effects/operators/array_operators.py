"""Infix operators of arrays: promote and broadcast the operands, then perform an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.stack import current, perform
from ..core.arrays import Array
from ..core.operation import Operation
from ..operations.elementwise.arithmetic import Add, Div, Mul, Neg, Sub
from ..operations.elementwise.bitwise import And, Not, Or, Xor
from ..operations.elementwise.comparison import Eq, Ge, Gt, Le, Lt, Ne
from ..operations.elementwise.conversion import convert
from ..operations.manipulation.operand_promotion import together
from ..operations.random_bits import RandomUnwrap
from ..operations.reductions.reductions import reduce_and, reduce_or
from ..types.dtype_families import KeyDType
from ..types.dtypes import ANY_INEXACT, default_int, is_complex
from . import numpy_arithmetic

# classes that operators accept as operands; for others they return NotImplemented
_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)
Method = Callable[..., Any]


def binary(name: str, kind: type[Operation]) -> tuple[Method, Method]:
    """The methods for ``x op y`` and ``y op x`` that promote the operands and perform an operation."""
    op = kind()

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.type is other.type:
                return current().answer(op, (self, other))
        elif not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, self, other)))

    def reflected(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, other, self)))

    return forward, reflected


def equality(name: str, kind: type[Operation]) -> Method:
    """The method of ``==`` or ``!=``: as ``binary``, and keys are compared by their data."""
    op, (general, _) = kind(), binary(name, kind)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Array) and self.type is other.type and self.type.dtype.__class__ is not KeyDType:
            return current().answer(op, (self, other))
        if self.type.dtype.__class__ is KeyDType and isinstance(other, Array) and other.type.dtype == self.type.dtype:
            words = general(*[perform(RandomUnwrap(), keys) for keys in (self, other)])
            return (reduce_and if kind is Eq else reduce_or)(words, (len(words.type.shape) - 1,))
        return general(self, other)

    return method


def composed(f: Method) -> tuple[Method, Method]:
    """The methods for ``x op y`` and ``y op x`` that call a function of two operands, which promotes them."""

    def forward(self: Any, other: Any) -> Any:
        return f(self, other) if _is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return f(other, self) if _is_operand(other) else NotImplemented

    return forward, reflected


def _is_operand(x: Any) -> bool:
    return isinstance(x, _OPERANDS) or hasattr(type(x), "__handlax_array__") or hasattr(type(x), "__jax_array__")


def _true_divide() -> tuple[Method, Method]:
    """The methods of true division: as ``binary``, but integers are promoted to floats."""
    op = Div()

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.type is other.type and self.type.dtype in ANY_INEXACT:
                return current().answer(op, (self, other))
        elif not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(numpy_arithmetic.inexact("truediv", self, other)))

    def reflected(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return current().answer(op, tuple(numpy_arithmetic.inexact("truediv", other, self)))

    return forward, reflected


def attach(name: str, method: Method) -> None:
    """Set the method ``__name__`` of arrays."""
    method.__name__ = f"__{name}__"
    method.__qualname__ = f"Array.__{name}__"
    setattr(Array, f"__{name}__", method)


def install(symbol: str, methods: tuple[Method, Method]) -> None:
    """Set the operator ``__symbol__`` of arrays and its reflection."""
    attach(symbol, methods[0])
    attach(f"r{symbol}", methods[1])


def _round(self: Any, ndigits: int | None = None) -> Any:
    """``round(x)`` gives integers, ``round(x, n)`` keeps the dtype."""
    y = numpy_arithmetic.around(self, ndigits or 0)
    return convert(y, default_int()) if ndigits is None and not is_complex(y.type.dtype) else y


_neg, _not = Neg(), Not()
_BINARY = {"add": Add, "sub": Sub, "mul": Mul, "and": And, "or": Or, "xor": Xor}
_COMPARISON = {"lt": Lt, "le": Le, "gt": Gt, "ge": Ge}
_COMPOSED = {
    "floordiv": numpy_arithmetic.floor_divide, "mod": numpy_arithmetic.remainder,
    "divmod": numpy_arithmetic.divmod, "pow": numpy_arithmetic.power,
    "lshift": numpy_arithmetic.left_shift, "rshift": numpy_arithmetic.right_shift,
}  # fmt: skip

for _symbol, _kind in _BINARY.items():
    install(_symbol, binary(_symbol, _kind))
for _symbol, _kind in _COMPARISON.items():  # Python reflects comparisons by itself
    attach(_symbol, binary(_symbol, _kind)[0])
attach("eq", equality("eq", Eq))
attach("ne", equality("ne", Ne))
for _symbol, _function in _COMPOSED.items():
    install(_symbol, composed(_function))
install("truediv", _true_divide())
attach("neg", lambda self: perform(_neg, self))
attach("invert", lambda self: perform(_not, self))
attach("pos", lambda self: self)
attach("abs", numpy_arithmetic.absolute)
attach("round", _round)
