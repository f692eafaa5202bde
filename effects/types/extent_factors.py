"""The factors in the terms of symbolic dimensions, beside the indices of lengths: symbols, and functions of extents."""

from __future__ import annotations

from typing import Any, NamedTuple


class Symbol(NamedTuple):
    """A dimension variable of this name. Its scope, a ``SymbolicScope``, says what is known of it."""

    name: str
    scope: Any

    def __repr__(self) -> str:
        return self.name


VARIABLES = (int, Symbol)


class PositivePart(NamedTuple):
    """The atom ``max(of, 0)``."""

    of: Any

    def at(self, sizes: Any) -> Any:
        value = self.of.at(sizes)
        return value.clip(0) if hasattr(value, "clip") else max(value, 0)

    def __repr__(self) -> str:
        return f"max({self.of!r},0)"


class Quotient(NamedTuple):
    """The atom ``of // divisor``, for a positive divisor, an integer or an extent."""

    of: Any
    divisor: Any

    def at(self, sizes: Any) -> Any:
        return self.of.at(sizes) // (self.divisor if type(self.divisor) is int else self.divisor.at(sizes))

    def __repr__(self) -> str:
        return f"floordiv({self.of!r},{self.divisor})"


class Remainder(NamedTuple):
    """The atom ``of % divisor``, for a positive extent; that of an integer consists of quotients."""

    of: Any
    divisor: Any
    name: str = "mod"  # by which it differs from the quotient: tuples compare by their fields alone

    def at(self, sizes: Any) -> Any:
        return self.of.at(sizes) % self.divisor.at(sizes)

    def __repr__(self) -> str:
        return f"{self.name}({self.of!r},{self.divisor!r})"


Monomial = tuple[Any, ...]  # its factors: indices of lengths, in order, symbols, then atoms. (0, 0, 1) is n0*n0*n1


def degree(size: Any) -> int:
    """The greatest number of lengths and atoms in a term of a size, the total degree of its polynomial; 1 of an int."""
    return max([len(monomial) for monomial, _ in getattr(size, "terms", ())], default=1)
