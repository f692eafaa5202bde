"""Strategies of collectives, with all that they can be told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from inspect import signature
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

from ... import lax
from ...effects.core.named_axes import axis_tuple
from ...effects.types.array_type import Shape
from .types_and_shapes import shapes

Options: TypeAlias = "tuple[Shape, dict[str, Any]]"

REDUCTIONS = ("psum", "pmean", "pmax", "pmin", "pprod")
SCANS = ("pcumsum", "pcumprod", "pcummax", "pcummin")
_OF_GROUPS_OF_ANY_SIZES = (*REDUCTIONS, *SCANS, "pargmax", "pargmin", "axis_index")


class CollectiveCall(NamedTuple):
    """A call of a collective: ``call(x) == getattr(lax, name)(x, axis_name, **options)``, where ``x`` has ``shape``.

    ``x`` is not used by a collective without operands, which is ``axis_index``.
    """

    name: str
    axis_name: Any
    shape: Shape
    options: Mapping[str, Any]

    @property
    def axes(self) -> tuple[Hashable, ...]:
        """The names of mapped axes among those of the call, the major one first."""
        return tuple([item for item in axis_tuple(self.axis_name) if not isinstance(item, int)])

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of the operand among the names."""
        return tuple([item for item in axis_tuple(self.axis_name) if isinstance(item, int)])

    def __call__(self, x: Any) -> Any:
        collective = getattr(lax, self.name)
        first, *others = signature(collective).parameters
        named = "axis_name" if "axis_name" in (first, *others) else "axes"
        operands = () if first == named else (x,)
        return collective(*operands, **{named: self.axis_name}, **self.options)


@st.composite
def lane_groups(draw: st.DrawFn, total: int, *, equal: bool = False) -> list[list[int]]:
    """What ``axis_index_groups`` may be: lists that have each of ``total`` lanes once; ``equal``: of equal lengths.

    Shrinks to one group, in order.

    >>> from hypothesis import find
    >>> find(lane_groups(4, equal=True), lambda groups: len(groups) == 2)
    [[0, 1], [2, 3]]
    """
    lanes = draw(st.permutations(range(total)))
    if equal:
        count = draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
        cuts = [*range(0, total, total // count)]
    else:
        cuts = sorted({0, *draw(st.lists(st.integers(1, total - 1), max_size=total) if total > 1 else st.just([]))})
    return [[*lanes[start:stop]] for start, stop in zip(cuts, [*cuts[1:], total])]


def _unchanged(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    return shape, {}


def _scan(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    return shape, {"reverse": draw(st.booleans()), "exclusive": draw(st.booleans())}


def _pbroadcast(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    return shape, {"source": draw(st.integers(0, size - 1))}


def _ppermute(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    pairs = [*zip(*[draw(st.permutations(range(size))) for _ in range(2)])]
    return shape, {"perm": pairs[: draw(st.integers(0, size))]}


def _pshuffle(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    return shape, {"perm": draw(st.permutations(range(size)))}


def _pgather(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    return shape, {"idx": np.array(draw(st.lists(st.integers(0, size - 1), max_size=3)), np.int32)}


def _all_gather(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    tiled = shape != () and draw(st.booleans())
    rank = len(shape) + (not tiled)
    return shape, {"axis": draw(st.integers(-rank, rank - 1)), "tiled": tiled}


def _divided(draw: st.DrawFn, shape: Shape, size: int, tiled: bool) -> tuple[Shape, int]:
    """The shape with one more dimension, which the lanes divide among them, and the index of that dimension."""
    d, blocks = draw(st.integers(0, len(shape))), draw(st.integers(1, 2)) if tiled else 1
    return (*shape[:d], size * blocks, *shape[d:]), draw(st.sampled_from([d, d - len(shape) - 1]))


def _psum_scatter(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    tiled = draw(st.booleans())
    shape, d = _divided(draw, shape, size, tiled)
    return shape, {"scatter_dimension": d, "tiled": tiled}


def _all_to_all(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    tiled = draw(st.booleans())
    shape, d = _divided(draw, shape, size, tiled)
    return shape, {"split_axis": d, "concat_axis": draw(st.integers(-len(shape), len(shape) - 1)), "tiled": tiled}


def _pswapaxes(draw: st.DrawFn, shape: Shape, size: int) -> Options:
    shape, d = _divided(draw, shape, size, False)
    return shape, {"axis": d}


# for each collective: from the shape of an operand and the number of lanes, the shape that it needs, and its options
_OPTIONS: Mapping[str, Callable[[st.DrawFn, Shape, int], Options]] = MappingProxyType({
    **dict.fromkeys((*REDUCTIONS, "pargmax", "pargmin", "axis_index"), _unchanged), **dict.fromkeys(SCANS, _scan),
    "pbroadcast": _pbroadcast, "ppermute": _ppermute, "pshuffle": _pshuffle, "pgather": _pgather,
    "all_gather": _all_gather, "psum_scatter": _psum_scatter, "all_to_all": _all_to_all, "pswapaxes": _pswapaxes,
})
COLLECTIVES = tuple(_OPTIONS)


@st.composite
def collectives(draw: st.DrawFn, sizes: Mapping[str, int], names: Sequence[str] = COLLECTIVES) -> CollectiveCall:
    """Calls of collectives over some of these axes, in any order, where ``vmap``, ``shard_map`` or others bind them.

    With all that a collective can be told: dimensions among the names, groups of lanes, tiles, permutations.
    Shrinks to ``psum`` of a number over no axes.

    Args:
        sizes: the size of each axis by its name.
        names: the collectives, of those of ``handlax.lax``.

    >>> from hypothesis import find
    >>> find(collectives({"i": 2}, ["all_gather"]), lambda call: call.axes and call.options["tiled"])
    CollectiveCall(name='all_gather', axis_name=('i',), shape=(0,), options={'axis': 0, 'tiled': True})
    """
    name = draw(st.sampled_from(names))
    axes = draw(st.lists(st.sampled_from([*sizes]), unique=True) if sizes else st.just([]))
    total = prod([sizes[axis] for axis in axes])
    groups = None
    if "axis_index_groups" in signature(getattr(lax, name)).parameters:
        groups = draw(st.none() | lane_groups(total, equal=name not in _OF_GROUPS_OF_ANY_SIZES))
    shape, options = _OPTIONS[name](draw, draw(shapes(max_dims=2, max_side=3)), len(groups[0]) if groups else total)
    items: list[Any] = [*axes]
    reducible = [d for d, n in enumerate(shape) if n] if name in REDUCTIONS else []
    for d in draw(st.lists(st.sampled_from(reducible), unique=True)) if reducible else ():
        items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from([d, d - len(shape)])))
    axis_name = items[0] if len(items) == 1 and isinstance(items[0], str) and draw(st.booleans()) else tuple(items)
    if groups is not None:
        options["axis_index_groups"] = groups
    return CollectiveCall(name, axis_name, shape, options)
