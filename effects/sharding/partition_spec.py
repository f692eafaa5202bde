"""Partition specs: the mesh axes along which each dimension of an array is cut."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, ClassVar

from ..base.errors import BadArgument, as_tuple
from ..base.immutables import KeyedObject


class Unconstrained:
    """``PartitionSpec.UNCONSTRAINED``: the compiler chooses how the dimension is cut. There is one."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = Unconstrained()


class PartitionSpec(KeyedObject):
    """For each dimension the mesh axes that cut it: None, a name, a tuple of names (major first), or UNCONSTRAINED.

    Dimensions beyond the last entry are whole. A spec is a sequence of its entries, and a leaf in pytrees.
    Raises: BadArgument: an entry is nothing of these.

    >>> PartitionSpec("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    """

    __slots__ = ()
    _guard = ("partition specs", "spec.update(partitions=...) makes another one.")
    UNCONSTRAINED: ClassVar[Unconstrained] = UNCONSTRAINED

    def __init__(
        self, *partitions: Any, unreduced: Iterable[Hashable] = frozenset(), reduced: Iterable[Hashable] = frozenset()
    ):
        if as_tuple(unreduced, "PartitionSpec", "unreduced") or as_tuple(reduced, "PartitionSpec", "reduced"):
            raise BadArgument(
                f"PartitionSpec: values are whole sums on every device, got unreduced={unreduced}, reduced={reduced}.",
                hint="hold partial sums as an array with one more dimension, cut along the axis.",
            )
        entries = tuple([_entry(part) for part in partitions])
        nested = any([isinstance(name, (tuple, list)) for entry in entries for name in entry_axes(entry)])
        try:
            self._set_key(*entries)
        except TypeError:
            nested = True
        if nested:
            raise BadArgument(
                f"PartitionSpec: an entry is None, UNCONSTRAINED, a name or a tuple of names, got {entries}."
            )

    @property
    def partitions(self) -> tuple[Any, ...]:
        return self._key

    @property
    def unreduced(self) -> frozenset[Hashable]:
        return frozenset()

    @property
    def reduced(self) -> frozenset[Hashable]:
        return frozenset()

    @property
    def axes(self) -> tuple[Hashable, ...]:
        """The names of all axes in the order of the spec."""
        return tuple([name for entry in self._key for name in entry_axes(entry)])

    def restricted(self, names: Collection[Hashable]) -> PartitionSpec:
        """The spec as to the axes ``names`` alone: along others nothing is cut.

        >>> PartitionSpec("data", None, ("x", "y")).restricted({"data", "y"})
        P('data', None, 'y')
        """
        return PartitionSpec(*[
            entry if entry is UNCONSTRAINED else tuple([a for a in entry_axes(entry) if a in names]) for entry in self
        ])

    def update(self, partitions: Iterable[Any] | None = None) -> PartitionSpec:
        """The spec with these partitions."""
        return self if partitions is None else PartitionSpec(*partitions)

    def index(self, value: Any) -> int:
        return self._key.index(_entry(value))

    def count(self, value: Any) -> int:
        return self._key.count(_entry(value))

    def __len__(self) -> int:
        return len(self._key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._key)

    def __contains__(self, value: object) -> bool:
        return value in self._key

    def __getitem__(self, index: Any) -> Any:
        return self._key[index]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (PartitionSpec, tuple)):
            return PartitionSpec(*self, *other)
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    def __repr__(self) -> str:
        return f"P{self._key!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, self._key


P = PartitionSpec


def _entry(part: Any) -> Any:
    """The canonical form of an entry: an empty tuple becomes None, a tuple of one name that name."""
    if not isinstance(part, (tuple, list)):
        return part
    names = tuple(part)
    return None if not names else names[0] if len(names) == 1 else names


def entry_axes(entry: Any) -> tuple[Hashable, ...]:
    """The axes that cut a dimension, major first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def cut_along(d: int | None, axis: Hashable) -> PartitionSpec:
    """The spec that cuts dimension ``d`` alone, along one axis; None: no dimension."""
    return PartitionSpec() if d is None else PartitionSpec(*[None] * d, axis)
