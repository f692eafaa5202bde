"""The arguments and results of ``vmap`` over ragged arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.base.stack import Run, runs
from ...effects.core.arrays import as_array
from ...effects.operations.manipulation.slicing import slice_in_dim
from ...effects.trees import pytrees
from ...effects.types.extent import Extent, length
from .lane_lengths import LaneLengths, RaggedLanes
from .ragged_array import Ragged, lengths_of, ragged_axis
from .ragged_batch import RaggedBatch, ragged_axes


def is_ragged(x: Any) -> bool:
    return type(x) is Ragged


def names_ragged_axis(*axes: Any) -> bool:
    """Whether ``ragged_axis`` occurs in ``in_axes`` or ``out_axes``."""
    trees = [axis for axis in axes if type(axis) is not int]  # nearly always there is none
    return any([leaf is ragged_axis for tree in trees for leaf in pytrees.leaves(tree)])


class RaggedArguments:
    """The arguments of one call, flat, with ragged arrays as leaves, and the mapped axis of each."""

    def __init__(self, leaves: Sequence[Any], axes: Sequence[Any]):
        self.leaves: list[Any] = [x if is_ragged(x) else as_array(x) for x in leaves]
        self.axes = list(axes)
        for x, axis in zip(self.leaves, self.axes):
            if axis is ragged_axis and not is_ragged(x):
                raise BadArgument(
                    f"vmap: ragged_axis is the axis of a Ragged, got {x.type}.",
                    hint="an int for an array with a row for each lane, None for one that all lanes share.",
                )
            if is_ragged(x) and axis is not ragged_axis:
                raise BadArgument(f"vmap: the axis of a Ragged is ragged_axis, got {axis} for {x.type}.")

    @property
    def counts(self) -> set[int]:
        """The numbers of lanes of the ragged arguments."""
        return {x.count for x in self.leaves if is_ragged(x)}

    def install(self, outer: Run, count: int, axis_name: Any, site: Any) -> RaggedBatch:
        """The run, with a length for each vector of lengths: ragged arrays of the same vector have one."""
        first = sum([len(run.lanes.lengths) for run in runs(outer) if isinstance(run, RaggedBatch)])
        self.extents: dict[Any, Extent] = {}
        self.sources: dict[Extent, Ragged] = {}
        lengths: dict[int, LaneLengths] = {}
        for x in self.leaves:
            if is_ragged(x) and _identity(x) not in self.extents:
                number = first + len(lengths)
                lengths[number] = lengths_of(x, outer)
                self.extents[_identity(x)] = length(number)
                self.sources[length(number)] = x
        return RaggedBatch(outer, RaggedLanes(count, lengths, outer), axis_name, site)

    def boxes(self, run: RaggedBatch, dims: Sequence[int | None]) -> list[Any]:
        """What one lane sees of each argument."""
        return [self._entered(run, x) if is_ragged(x) else run.box(dim, (x,)) for x, dim in zip(self.leaves, dims)]

    def _entered(self, run: RaggedBatch, x: Ragged) -> Any:
        extent = self.extents[_identity(x)]
        return pytrees.tree_map(lambda leaf: run.enter(leaf, extent), x.data)

    def result(self, run: RaggedBatch, ys: Any) -> Ragged:
        """The ragged array of a tree of results, whose first axes have one extent.

        Raises: ShapeMismatch: they have not.
        """
        leaves, tree = pytrees.flatten(ys)
        extents = {_first_extent(run, y) for y in leaves}
        if len(extents) != 1:
            raise ShapeMismatch(
                f"vmap: arrays of one Ragged have one length, got {', '.join([str(y.type) for y in leaves])}.",
                hint="name ragged_axis for each of them in out_axes.",
            )
        (extent,) = extents
        data = pytrees.unflatten(tree, [run.leave(y, extent) for y in leaves])
        n = run.lanes.of(extent)
        source = self.sources.get(extent)
        if source is not None:
            rows = pytrees.leaves(source.data)[0].type.shape[0]
            data = pytrees.tree_map(lambda y: slice_in_dim(y, 0, rows), data)
            return Ragged(data, source.segment_lengths, source.longest)
        return Ragged(data, n.values, None if n.known is not None else n.longest)


def _identity(x: Ragged) -> Any:
    """What equal lengths are known by: static ones by value, arrays by identity."""
    rows = pytrees.leaves(x.data)[0].type.shape[0]
    return (x.segment_lengths, rows) if isinstance(x.segment_lengths, tuple) else id(x.segment_lengths)


def _first_extent(run: RaggedBatch, y: Any) -> Extent:
    axes = ragged_axes(y.type.shape) if y.run is run else ()
    if [axis for axis, _ in axes] != [0]:
        raise ShapeMismatch(
            f"vmap: out_axes=ragged_axis is for a result whose first axis is its only ragged one, got {y.type}.",
            hint="out_axes=0 for a result of one shape in all lanes." if not axes else "transpose or reduce it.",
        )
    return axes[0][1]
