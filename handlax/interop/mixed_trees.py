"""Trees with nodes of both libraries: each is flattened by the library that knows it, handlax first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..effects.trees import pytrees
from ..interpreters.core.trace_cache import leaf_names
from .jax_modules import jax


class MixedStructure(NamedTuple):
    """The structure of a tree; hashable.

    ``outer``: handlax's treedef. ``inner``: for each leaf of it JAX's treedef and the structures of that one's leaves;
    None where the leaf is one for both.
    """

    outer: Any
    inner: tuple[tuple[Any, tuple[MixedStructure, ...]] | None, ...]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The tree of this structure with these leaves."""
        return self._built(iter(leaves))

    def names(self, argument: Callable[[int], str]) -> list[str]:
        """The arguments that the leaves of a structure ``(args, kwargs)`` are, or are parts of, as messages name them.

        ``argument`` names the positional ones. Below a node that JAX alone knows there are no names.
        """
        named = zip(leaf_names(argument, self.outer), self.inner, strict=True)
        return [name for name, node in named for _ in range(_count(node))]

    def _built(self, leaves: Iterator[Any]) -> Any:
        parts = []
        for node in self.inner:
            if node is None:
                parts.append(next(leaves))
            else:
                treedef, structures = node
                parts.append(jax.tree_util.tree_unflatten(treedef, [part._built(leaves) for part in structures]))
        return pytrees.unflatten(self.outer, parts)


def _count(node: tuple[Any, tuple[MixedStructure, ...]] | None) -> int:
    """The number of arrays at one leaf of handlax's structure: 1, or those of ``node``, which JAX alone can flatten."""
    return 1 if node is None else sum([_count(inner) for part in node[1] for inner in part.inner])


def flatten(tree: Any) -> tuple[list[Any], MixedStructure]:
    """The leaves of a tree, which neither library can flatten, and its structure.

        leaves, structure = flatten(tree);  structure.unflatten(leaves) == tree
    """
    leaves: list[Any] = []
    return leaves, _flattened(tree, leaves)


def _flattened(tree: Any, leaves: list[Any]) -> MixedStructure:
    """The structure of a tree, whose leaves are appended to ``leaves``."""
    nodes, outer = pytrees.flatten(tree)
    inner: list[Any] = []
    for node in nodes:
        parts, treedef = jax.tree_util.tree_flatten(node)
        if len(parts) == 1 and parts[0] is node:
            leaves.append(node)
            inner.append(None)
        else:
            inner.append((treedef, tuple([_flattened(part, leaves) for part in parts])))
    return MixedStructure(outer, tuple(inner))
