"""Infix operators of arrays: they promote, broadcast and perform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numeric
from .arithmetic import Add, Div, Mul, Neg, Sub
from .arrays import Array
from .bitwise import And, Not, Or, Xor
from .broadcasting import together
from .comparison import Eq, Ge, Gt, Le, Lt, Ne
from .conversion import convert
from .dtypes import ANY_INEXACT, default_int, is_complex
from .operations import Operation
from .stack import current, perform

# what an operator takes beside arrays; anything else is left to the other operand
_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)
Method = Callable[..., Any]


def binary(name: str, kind: type[Operation]) -> tuple[Method, Method]:
    """The methods ``x op y`` and ``y op x`` of an operation that needs promotion alone."""
    op = kind()

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.type is other.type:
                return current().answer(op, (self, other))
        elif not _takes(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, self, other)))

    def reflected(self: Any, other: Any) -> Any:
        if not _takes(other):
            return NotImplemented
        return current().answer(op, tuple(together(name, other, self)))

    return forward, reflected


def composed(f: Method) -> tuple[Method, Method]:
    """The methods of a function of two operands that promotes by itself."""

    def forward(self: Any, other: Any) -> Any:
        return f(self, other) if _takes(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return f(other, self) if _takes(other) else NotImplemented

    return forward, reflected


def _takes(x: Any) -> bool:
    return isinstance(x, _OPERANDS) or hasattr(type(x), "__handlax_array__") or hasattr(type(x), "__jax_array__")


def _true_divide() -> tuple[Method, Method]:
    """Division, whose fast path is for floats."""
    op = Div()

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, Array):
            if self.type is other.type and self.type.dtype in ANY_INEXACT:
                return current().answer(op, (self, other))
        elif not _takes(other):
            return NotImplemented
        return current().answer(op, tuple(numeric.inexact("truediv", self, other)))

    def reflected(self: Any, other: Any) -> Any:
        if not _takes(other):
            return NotImplemented
        return current().answer(op, tuple(numeric.inexact("truediv", other, self)))

    return forward, reflected


def attach(name: str, method: Method) -> None:
    """Give arrays the method ``__name__``."""
    method.__name__ = f"__{name}__"
    method.__qualname__ = f"Array.__{name}__"
    setattr(Array, f"__{name}__", method)


def install(symbol: str, methods: tuple[Method, Method]) -> None:
    """Give arrays the operator ``__symbol__`` and its reflection."""
    attach(symbol, methods[0])
    attach(f"r{symbol}", methods[1])


def _round(self: Any, ndigits: int | None = None) -> Any:
    """``round(x)`` gives integers, ``round(x, n)`` keeps the dtype."""
    whole = numeric.around(self, ndigits or 0)
    return convert(whole, default_int()) if ndigits is None and not is_complex(whole.type.dtype) else whole


_neg, _not = Neg(), Not()
_BINARY = {"add": Add, "sub": Sub, "mul": Mul, "and": And, "or": Or, "xor": Xor}
_COMPARISON = {"eq": Eq, "ne": Ne, "lt": Lt, "le": Le, "gt": Gt, "ge": Ge}
_COMPOSED = {
    "floordiv": numeric.floor_divide, "mod": numeric.remainder, "divmod": numeric.divmod, "pow": numeric.power,
    "lshift": numeric.left_shift, "rshift": numeric.right_shift,
}  # fmt: skip

for _symbol, _kind in _BINARY.items():
    install(_symbol, binary(_symbol, _kind))
for _symbol, _kind in _COMPARISON.items():
    attach(_symbol, binary(_symbol, _kind)[0])  # Python reflects comparisons by itself
for _symbol, _function in _COMPOSED.items():
    install(_symbol, composed(_function))
install("truediv", _true_divide())
attach("neg", lambda self: perform(_neg, self))
attach("invert", lambda self: perform(_not, self))
attach("pos", lambda self: self)
attach("abs", numeric.absolute)
attach("round", _round)
