"""Lengths: extents as a user holds them, which belong to the lanes that they were read in.

    n = x.shape[0]          a Length: the extent n0 of this vmap, and of no other that has an n0

Types, operations and programs name extents, which compare by structure. What ``x.shape`` gives outside of the package
is bound to its lanes besides, and compares by value: used when they have ended, where n0 would be the length of other
lanes, it is refused.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from ..base.errors import EscapedBox
from ..base.source_locations import is_internal
from ..base.stack import Run, runs
from .extent import BoundSize, Extent, decided, differs, equal, in_package, unbound


class Length(BoundSize):
    """An extent, and for each of its lengths the run of the lanes that have it.

    A size wherever one is asked for, and a number of the lane in arithmetic and comparisons. Arithmetic that has an
    extent as result has a length.

    Raises, wherever it is used: EscapedBox: the lanes have ended.
    """

    __slots__ = ("homes", "held")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class
    homes: dict[int, Run]
    held: Extent

    def __init__(self, held: Extent, homes: dict[int, Run]):
        self.held, self.homes = held, homes

    @property
    def extent(self) -> Extent:
        """The extent, in its lanes."""
        for number, home in self.homes.items():
            owner = _owner(number)
            if home.ended if owner is None else owner.home is not home:
                why = "which has ended" if home.ended else "which is not in this thread's stack"
                where = "" if home.site is None else f", installed at {home.installed_at}"
                raise EscapedBox(
                    f"shape: {self.held} is the length of a lane of {home.described}{where}, {why}.",
                    hint="compute with it inside of the mapped function, and return the result.",
                )
        return self.held

    @property
    def value(self) -> Any:
        """The length of the lane as an array."""
        return self.extent.value

    def __handlax_array__(self) -> Any:
        return self.value

    def __index__(self) -> int:
        return self.extent.__index__()

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.extent)

    def __bool__(self) -> bool:
        n = self.extent
        return n.least > 0 or bool(differs(n, 0, in_package()))

    def __eq__(self, other: object) -> Any:
        return equal(self.extent, other, in_package())

    def __ne__(self, other: object) -> Any:
        return differs(self.extent, other, in_package())

    def __hash__(self) -> int:
        return hash((self.held, *self.homes.values()))

    def __repr__(self) -> str:
        return repr(self.held)

    def __reduce__(self) -> Any:
        return self.held.__reduce__()


def _arithmetic(f: Callable[..., Any], reflected: bool = False) -> Any:
    """A method that computes with the extents."""

    def method(self: Length, *others: Any) -> Any:
        sizes = [self.extent, *map(unbound, others)]
        homes = dict(self.homes)
        for other in others:
            homes.update(other.homes if isinstance(other, Length) else {})
        y = f(*(sizes[::-1] if reflected else sizes))
        return tuple([_bound(part, homes) for part in y]) if isinstance(y, tuple) else _bound(y, homes)

    return method


def _comparison(f: Callable[..., Any]) -> Any:
    return lambda self, other: decided(f, self.extent, unbound(other), in_package())


_BINARY = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, divmod, operator.truediv,
           operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)  # fmt: skip
for _f in _BINARY:
    _name = _f.__name__.strip("_")
    setattr(Length, f"__{_name}__", _arithmetic(_f))
    setattr(Length, f"__r{_name}__", _arithmetic(_f, reflected=True))
_UNARY: Any = (operator.neg, operator.pos, operator.invert, operator.abs)
_COMPARISONS: Any = (operator.lt, operator.le, operator.gt, operator.ge)
for _f in _UNARY:
    setattr(Length, f"__{_f.__name__.strip('_')}__", _arithmetic(_f))
for _f in _COMPARISONS:
    setattr(Length, f"__{_f.__name__}__", _comparison(_f))


def read(*sizes: Any) -> tuple[Any, ...]:
    """Sizes, for who called the function that calls this one: within the package extents, for a user lengths."""
    return sizes if is_internal(sys._getframe(2).f_code.co_filename) else held(*sizes)


def held(*sizes: Any) -> tuple[Any, ...]:
    """Sizes as a user holds them: extents bound to the lanes around the caller."""
    return tuple([_bound(size, _homes(size)) for size in sizes])


def _homes(size: Any) -> dict[int, Run]:
    """The runs of the lanes around the caller that have the lengths of an extent."""
    owners = {number: _owner(number) for number in size.lengths} if type(size) is Extent else {}
    return {number: owner.home for number, owner in owners.items() if owner is not None}


def _owner(number: int) -> Run | None:
    """The innermost run whose lanes have the length with this number."""
    return next((run for run in runs() if number in run.lengths), None)


def _bound(size: Any, homes: dict[int, Run]) -> Any:
    """A size as a length of these lanes; an extent of none of them, outside of lanes, is itself."""
    own = {n: homes[n] for n in sorted(size.lengths) if n in homes} if type(size) is Extent else {}
    return Length(size, own) if own else size
