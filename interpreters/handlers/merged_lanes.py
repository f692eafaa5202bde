"""Lazy merging for handlers with ``moves=merge``: the states of lanes, until a reader needs the merged state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...effects.control.loops import scan
from ...effects.trees import pytrees
from ..transformations.vmap import vmap_leaves


class UnmergedLanes(NamedTuple):
    """A state with the stacked states of ``size`` lanes that ``op`` is still to merge into it.

    Later operations over as many lanes merge lane by lane, all lanes at once; only the next reader of the state merges
    across the lanes, which takes a loop.
    """

    op: Callable[[Any, Any], Any]
    state: Any
    lanes: Any
    size: int

    def with_lanes(self, lanes: Any) -> UnmergedLanes:
        """The state after a later operation over the same lanes, whose states are merged lane by lane."""
        return self._replace(lanes=vmap_leaves(self.op)(self.lanes, lanes))

    def merged(self) -> Any:
        """The merged state: ``op`` applied to the states of the lanes in index order."""
        leaves, tree = pytrees.flatten(self.lanes)  # a container among them is no more than a pytree
        step = lambda state, other: (self.op(state, pytrees.unflatten(tree, other)), None)
        return scan(step, self.state, leaves)[0]
