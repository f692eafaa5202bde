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

    ``unreduced``: axes along which each device has a partial sum; the value is the sum of them. ``reduced``: axes along
    which every device has the whole value, whose cotangent is left as partial sums. They are each other's dual.

    Raises: BadArgument: an entry is nothing of these, or an axis stands in two of the three places.

    >>> PartitionSpec("data", None, ("x", "y"))
    P('data', None, ('x', 'y'))
    >>> PartitionSpec("data", unreduced={"x"})
    P('data', unreduced={'x'})
    """

    __slots__ = ("partitions", "unreduced", "reduced")
    partitions: tuple[Any, ...]
    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]
    _guard = ("partition specs", "spec.update(partitions=...) makes another one.")
    UNCONSTRAINED: ClassVar[Unconstrained] = UNCONSTRAINED

    def __init__(
        self, *partitions: Any, unreduced: Iterable[Hashable] = frozenset(), reduced: Iterable[Hashable] = frozenset()
    ):
        entries = tuple([_entry(part) for part in partitions])
        nested = any([isinstance(name, (tuple, list)) for entry in entries for name in entry_axes(entry)])
        partial, whole = _names("unreduced", unreduced), _names("reduced", reduced)
        try:
            self._set_key(entries, partial, whole)
        except TypeError:
            nested = True
        if nested:
            raise BadArgument(
                f"PartitionSpec: an entry is None, UNCONSTRAINED, a name or a tuple of names, got {entries}."
            )
        self._fill(partitions=entries, unreduced=partial, reduced=whole)
        if partial & whole or not (partial | whole).isdisjoint(self.axes):
            raise BadArgument(
                f"PartitionSpec: along an axis a value is either cut, unreduced or reduced, got {self}."
            )

    @property
    def axes(self) -> tuple[Hashable, ...]:
        """The names of the axes that cut dimensions, in the order of the spec."""
        return tuple([name for entry in self.partitions for name in entry_axes(entry)])

    @property
    def summed_axes(self) -> frozenset[Hashable]:
        """The axes that are unreduced or reduced."""
        return self.unreduced | self.reduced

    @property
    def dual(self) -> PartitionSpec:
        """The spec of cotangents: cut alike, ``unreduced`` where this one is ``reduced`` and vice versa."""
        return PartitionSpec(*self, unreduced=self.reduced, reduced=self.unreduced) if self.summed_axes else self

    def restricted(self, names: Collection[Hashable]) -> PartitionSpec:
        """The spec as to the axes ``names`` alone: along others nothing is cut.

        >>> PartitionSpec("data", None, ("x", "y")).restricted({"data", "y"})
        P('data', None, 'y')
        """
        entries = [
            entry if entry is UNCONSTRAINED else tuple([a for a in entry_axes(entry) if a in names]) for entry in self
        ]
        return PartitionSpec(
            *entries, unreduced=self.unreduced.intersection(names), reduced=self.reduced.intersection(names))

    def without_sums(self, names: Collection[Hashable]) -> PartitionSpec:
        """The spec without these axes in ``unreduced`` and ``reduced``."""
        if self.summed_axes.isdisjoint(names):
            return self
        return self.update(unreduced=self.unreduced.difference(names), reduced=self.reduced.difference(names))

    def update(
        self, partitions: Iterable[Any] | None = None, unreduced: Iterable[Hashable] | None = None,
        reduced: Iterable[Hashable] | None = None,
    ) -> PartitionSpec:
        """The spec with these partitions, unreduced or reduced axes; None: its own."""
        return PartitionSpec(
            *(self if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def index(self, value: Any) -> int:
        return self.partitions.index(_entry(value))

    def count(self, value: Any) -> int:
        return self.partitions.count(_entry(value))

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __contains__(self, value: object) -> bool:
        return value in self.partitions

    def __getitem__(self, index: Any) -> Any:
        return self.partitions[index]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self, *other, unreduced=self.unreduced | other.unreduced, reduced=self.reduced | other.reduced)
        return self.update((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self.update((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __repr__(self) -> str:
        if not self.summed_axes:
            return f"P{self.partitions!r}"
        sums = [
            f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"
            for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)) if axes
        ]
        return f"P({', '.join([*map(repr, self.partitions), *sums])})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _spec, self._key


P = PartitionSpec


def _spec(
    partitions: tuple[Any, ...], unreduced: frozenset[Hashable], reduced: frozenset[Hashable]
) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _names(place: str, axes: Any) -> frozenset[Hashable]:
    """A set of axes. Raises BadArgument: it is none, or holds None."""
    names = None if isinstance(axes, str) else frozenset(as_tuple(axes, "PartitionSpec", place))
    if names is None or None in names:
        raise BadArgument(f"PartitionSpec: {place} must be a set of names, got {axes!r}.", hint=f"{place}={{'axis'}}.")
    return names


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
