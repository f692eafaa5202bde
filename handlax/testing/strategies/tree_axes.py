"""Strategies of pytrees, and of the axes along which ``vmap`` maps their leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

from ...effects.base.errors import BadArgument
from ...effects.trees import pytrees
from ...effects.types.array_type import Shape

Strategy: TypeAlias = "st.SearchStrategy[Any]"


class NamedPair(NamedTuple):
    """A named tuple, which is a node of pytrees as it is."""

    first: Any
    second: Any


@pytrees.register_dataclass
@dataclass
class LabelledPair:
    """A dataclass with two children and static data."""

    left: Any
    right: Any
    label: str = pytrees.static(default="")


def _nodes(inner: Strategy) -> Strategy:
    """The containers that pytrees know, of subtrees by ``inner``."""
    few, keys = st.lists(inner, max_size=3), st.text("abc", max_size=2)
    by_name = st.dictionaries(keys, inner, max_size=3)
    return st.one_of(
        few.map(tuple), few, by_name, st.dictionaries(st.integers(0, 5), inner, max_size=3), by_name.map(OrderedDict),
        by_name.map(lambda items: defaultdict(list, items)), st.builds(NamedPair, inner, inner),
        st.builds(LabelledPair, inner, inner, keys), st.builds(pytrees.Partial, st.just(max), inner, key=inner),
    )


def trees(
    leaves: Strategy, *, nodes: Sequence[Callable[[Strategy], Strategy]] = (), max_leaves: int = 8
) -> Strategy:
    """Pytrees of these leaves: ``structure(tree)`` exists, and ``leaves(tree)`` are values of ``leaves``.

    A leaf alone; tuples, lists, dictionaries by names and by numbers, ordered ones and those with a default, named
    tuples, registered dataclasses with static data, ``Partial``, None; empty ones too. Shrinks to a leaf or nothing.

    Args:
        nodes: further containers: functions from the strategy of subtrees to one of such containers.
        max_leaves: about how many leaves a tree has at most.

    >>> from hypothesis import find
    >>> find(trees(st.just("leaf")), lambda tree: isinstance(tree, dict) and "leaf" in tree.values())
    {'': 'leaf'}
    """
    kinds = (_nodes, *nodes)
    return st.recursive(leaves | st.none(), lambda inner: st.one_of([kind(inner) for kind in kinds]),
                        max_leaves=max_leaves)


@st.composite
def in_axes(draw: st.DrawFn, args: tuple[Any, ...]) -> Any:
    """What ``vmap(f, in_axes)`` takes for these arguments: an axis, counted from either end, or None, for each leaf.

    A prefix of the tree of ``args``; axes are of one size, and at least one leaf is mapped. Shrinks to axis 0.

    Args:
        args: a tuple of trees of arrays, or of their types.

    Raises: BadArgument: no leaf has an axis.

    >>> from hypothesis import find
    >>> x, y = np.zeros((2, 3)), np.zeros(3)
    >>> find(in_axes((x, {"y": y})), lambda axes: isinstance(axes, tuple) and axes[1] == 0)
    (1, 0)
    """
    leaves, tree = pytrees.flatten(args)
    shapes = [*map(_shape, leaves)]
    sizes = [*dict.fromkeys([size for shape in shapes for size in shape])]
    if not sizes:
        raise BadArgument(f"in_axes: an argument must have an axis that can be mapped, got {args!r}.")
    size = draw(st.sampled_from(sizes))
    mapped = draw(st.sampled_from([k for k, shape in enumerate(shapes) if size in shape]))
    mappable = [_both_ways([d for d, n in enumerate(shape) if n == size], len(shape)) for shape in shapes]
    choices = [axes if k == mapped else axes | {None} for k, axes in enumerate(mappable)]
    return _prefix(draw, pytrees.unflatten(tree, choices))


@st.composite
def out_axes(draw: st.DrawFn, results: Any) -> Any:
    """What ``vmap(f, out_axes=...)`` takes for these results of a lane: for each leaf the place of the mapped axis.

    A prefix of their tree; places are counted from either end. Shrinks to 0.

    >>> from hypothesis import find
    >>> find(out_axes({"a": np.zeros(3), "b": np.zeros(())}), lambda axes: isinstance(axes, dict) and axes["a"] == 1)
    {'a': 1, 'b': 0}
    """
    leaves, tree = pytrees.flatten(results)
    ranks = [len(_shape(x)) + 1 for x in leaves]
    return _prefix(draw, pytrees.unflatten(tree, [_both_ways(range(rank), rank) for rank in ranks]))


def _shape(x: Any) -> Shape:
    """The shape of an array, of a type, or of a number."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def _both_ways(dims: Iterable[int], rank: int) -> frozenset[int | None]:
    """Dimensions, counted from the first and from the last one."""
    return frozenset([axis for d in dims for axis in (d, d - rank)])


def _prefix(draw: st.DrawFn, choices: Any, shared: bool = True) -> Any:
    """A prefix of a tree whose leaves are the axes to choose from: where ``shared``, an axis that all leaves of a
    subtree may have; or a prefix of each child. A registered node may hold other leaves, but no leaf for a subtree.
    """
    leaves = pytrees.leaves(choices)
    common = frozenset.intersection(*leaves) if leaves else frozenset((None,))
    if isinstance(choices, frozenset) or (common and shared and not draw(st.booleans())):
        return draw(st.sampled_from(sorted(common, key=_simplicity)))
    children, node = pytrees.flatten(choices, is_leaf=lambda x: x is not choices)
    shared = shared and isinstance(choices, (tuple, list, dict))
    return pytrees.unflatten(node, [_prefix(draw, child, shared) for child in children])


def _simplicity(axis: int | None) -> tuple[bool, bool, int]:
    """The place of an axis among the choices: from the first on, then from the last one, then None."""
    return axis is None, (axis or 0) < 0, abs(axis or 0)
