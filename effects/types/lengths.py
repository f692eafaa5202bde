"""Lengths: symbolic dimensions in a user's hands, each bound to the ``vmap`` that introduced it.

    n = x.shape[0]          a Length: the dimension n0 of this vmap, distinct from n0 of any other

Types, operations and programs contain ``Extent``s, which compare by structure. Outside of the package ``x.shape``
returns ``Length``s, which compare by value, and whose use after their ``vmap`` has ended is an error, since n0 might
then be the length of other lanes.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from ..base.errors import EscapedBox
from ..base.source_locations import knows_extents
from ..base.stack import Run, runs
from .extent import BoundSize, Extent, decided, differs, equal, in_package, unbound


class Length(BoundSize):
    """A symbolic dimension with, for each length in it, the ``vmap`` installation that introduced the length.

    It is accepted as a size; in arithmetic and comparisons it is the int32 value of the current lane, except that
    arithmetic whose result is again a polynomial in lengths returns a ``Length``.

    Every use raises EscapedBox once the ``vmap`` has ended.
    """

    __slots__ = ("homes", "held")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class
    homes: dict[int, Run]
    held: Extent

    def __init__(self, held: Extent, homes: dict[int, Run]):
        self.held, self.homes = held, homes

    @property
    def extent(self) -> Extent:
        """The ``Extent``. Raises: EscapedBox: its ``vmap`` has ended."""
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
        """The size in the current lane, as an int32 array."""
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
    """A method that applies ``f`` to the extents of its operands and binds the result to the same ``vmap``s."""

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
           operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)
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


def of_lanes(size: Any) -> bool:
    """Whether a size is that of lanes, which may differ from one to the next, so that no comparison decides for all."""
    return isinstance(size, Length) or (isinstance(size, Extent) and size.scope is None)


def read(*sizes: Any) -> tuple[Any, ...]:
    """The sizes as the caller's caller should see them: ``Extent``s within the package, ``Length``s in a user's code.
    """
    return sizes if knows_extents(sys._getframe(2).f_code.co_filename) else held(*sizes)


def held(*sizes: Any) -> tuple[Any, ...]:
    """The symbolic sizes as ``Length`` objects, each of which keeps the ``vmap`` installation that introduced it."""
    return tuple([_bound(size, _homes(size)) for size in sizes])


def _homes(size: Any) -> dict[int, Run]:
    """For each length in the size, by index, the innermost ``vmap`` installation in force that introduced it."""
    owners = {number: _owner(number) for number in size.lengths} if type(size) is Extent else {}
    return {number: owner.home for number, owner in owners.items() if owner is not None}


def _owner(number: int) -> Run | None:
    """The innermost ``vmap`` installation in force that introduced length ``number``, or None."""
    return next((run for run in runs() if number in run.lengths), None)


def _bound(size: Any, homes: dict[int, Run]) -> Any:
    """The size as a ``Length`` of these ``vmap`` installations; unchanged if none of them introduced its lengths."""
    own = {n: homes[n] for n in sorted(size.lengths) if n in homes} if type(size) is Extent else {}
    return Length(size, own) if own else size
