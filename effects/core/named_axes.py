"""Named axes: which of them are bound, and the effect of an operation over a named axis.

An operation over a named axis adds ``Axis(name)`` to the effect row; the handler that binds the axis removes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from ..base.errors import BadArgument, BadAxis, UnboundAxis
from ..base.stack import Binding, Run, current
from ..sharding.mesh_scope import get_abstract_mesh
from ..types.lengths import read

# Name and size of an axis. A size is looked up once, when an operation is performed: rules may meet it where the same
# name is that of another axis.
SizedAxis = tuple[Hashable, int]


UNNAMED = "<unnamed axis of pmap>"  # bound where a map over devices was given no name for its axis
PROCESSES = "<the processes>"  # bound where nothing else is: each lane is what this process has of its own


class Axis(NamedTuple):
    """The effect of an operation over the named axis ``name``: it must be performed where that axis is bound."""

    name: Hashable

    @property
    def remedy(self) -> str:
        return "call it: processes that meet compile it together." if self.name == PROCESSES else ""

    def __str__(self) -> str:
        return f"axis {self.name}"


class Bound(Run):
    """A run that binds named axes and forwards all operations, for recording a body apart from the run of its vmap."""

    __slots__ = ()

    def __init__(self, outer: Run, *scope: Binding):
        super().__init__(outer, "")
        self.scope = (*scope, *outer.scope)


def is_root(op: Any) -> bool:
    """Whether ``op`` performs an effect other than naming a mapped axis; such an operation is never dead code."""
    if not op.has_row:
        return False
    return any([not isinstance(effect, Axis) for effect in op.effects])


def under(outer: Run, scope: Sequence[Binding]) -> Run:
    """A run over ``outer`` that binds the axes of ``scope``; ``outer`` itself if there are none."""
    return Bound(outer, *scope) if scope else outer


def in_bodies_of(op: Any) -> Run:
    """The run in force, with the axes bound that the operation binds in its bodies."""
    return under(current(), () if op.binds is None else (op.binds,))


def _innermost() -> dict[Hashable, int]:
    """The sizes of the bound axes by name, innermost first; of axes with equal names the innermost."""
    sizes: dict[Hashable, int] = {}
    for name, size in named_axes():
        sizes.setdefault(name, size)
    return sizes


def named_axes() -> Iterator[SizedAxis]:
    """The named axes that are bound, innermost first, with their sizes."""
    return (axis for binding in current().scope for axis in binding.axes)


def tracked(axes: Iterable[SizedAxis]) -> frozenset[SizedAxis]:
    """Those of ``axes`` that are mesh axes, along which types say whether a value varies.

    Of bound axes with equal names the innermost counts, as in ``bound_axes``.
    """
    innermost: dict[Hashable, bool] = {}
    for binding in current().scope:
        for name, _ in binding.axes:
            innermost.setdefault(name, binding.tracks)
    return frozenset([axis for axis in axes if innermost.get(axis[0], False)])


def axis_tuple(axes: Any) -> tuple[Hashable, ...]:
    """An axis name, or a tuple or list of them, as a tuple. Raises: BadAxis: a set, which has no order."""
    if isinstance(axes, (set, frozenset)):
        raise BadAxis(f"axis_name: several axes must be a tuple, in whose order lanes are numbered, got {axes}.")
    return tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)


def bound_axes(where: str, names: Any) -> tuple[SizedAxis, ...]:
    """The axes of these names with their sizes, for the function ``where``: of each name the innermost one.

    Raises: UnboundAxis: nothing binds a name. BadAxis: several are no tuple, or one is no name. BadArgument: a name
    stands twice.
    """
    names = axis_tuple(names)
    sizes = _innermost()
    for name in names:
        if not isinstance(name, Hashable):
            raise BadAxis(f"{where}: axes have names, got {type(name).__name__}.")
        if name not in sizes:
            raise unbound_axis(where, name)
    if len(set(names)) < len(names):
        raise BadArgument(f"{where}: an axis must be named once, got {names}.")
    return tuple([(name, sizes[name]) for name in names])


def unbound_axis(where: str, name: Hashable) -> UnboundAxis:
    """The error for an axis that nothing binds; lists the axes in scope, and says what would bind it."""
    sizes = _innermost()
    listed = ", ".join([f"{known!r} of size {size}" for known, size in sizes.items()])
    if name in get_abstract_mesh().axis_names:
        hint = f"the mesh has it: shard_map with {name!r} among its axis_names binds it."
    else:
        named = " or ".join([repr(known) for known in sizes if known != UNNAMED])
        instead = f"name {named}, or " if named else ""
        hint = f"{instead}bind it: vmap or pmap(..., axis_name={name!r}), or shard_map over a mesh that has it."
    return UnboundAxis(
        f"{where}: nothing binds the axis {name!r}; in scope {f'are {listed}' if sizes else 'is none'}.", hint=hint
    )


def axis_size(axis_name: Any) -> int:
    """The number of lanes of a named axis, or of the product of several.

    Raises: UnboundAxis: no handler binds the axis. BadArgument: an axis is named twice.
    """
    return read(prod([size for _, size in bound_axes("axis_size", axis_name)]))[0]
