"""Infix operators of arrays: they promote, broadcast and perform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arithmetic import Add, Div, Mul, Neg, Sub
from .arrays import Array
from .bitwise import And, Or, Xor
from .comparison import Eq, Ge, Gt, Le, Lt, Ne
from .operations import Operation
from .broadcasting import together
from .stack import current, perform

# what an operator takes beside arrays; anything else is left to the other operand
_OPERANDS = (Array, bool, int, float, complex, np.ndarray, np.generic)


def binary(name: str, kind: type[Operation]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods ``x op y`` and ``y op x``."""
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


def _takes(x: Any) -> bool:
    return isinstance(x, _OPERANDS) or hasattr(type(x), "__handlax_array__") or hasattr(type(x), "__jax_array__")


def install(symbol: str, kind: type[Operation]) -> None:
    """Give arrays the operator ``__symbol__`` and its reflection."""
    forward, reflected = binary(symbol, kind)
    for name, method in ((f"__{symbol}__", forward), (f"__r{symbol}__", reflected)):
        method.__name__ = name
        method.__qualname__ = f"Array.{name}"
        setattr(Array, name, method)


_neg = Neg()
install("add", Add)
install("mul", Mul)
Array.__neg__ = lambda self: perform(_neg, self)  # type: ignore[attr-defined]
install("sub", Sub)
install("truediv", Div)
for _symbol, _kind in (("eq", Eq), ("ne", Ne), ("lt", Lt), ("le", Le), ("gt", Gt), ("ge", Ge), ("and", And), ("or", Or), ("xor", Xor)):
    install(_symbol, _kind)
