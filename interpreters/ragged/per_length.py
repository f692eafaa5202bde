"""``vmap(per_length=True)``: one call of the function for each distinct length, on all lanes with this length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, CannotCross, ShapeMismatch, TreeMismatch
from ...effects.base.stack import inside, installed
from ...effects.core.arrays import as_array, from_numpy
from ...effects.core.containers import is_axis
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation, effects_text
from ...effects.trees import pytrees
from ...effects.types.extent import length
from ...effects.types.sized import extents_in
from ..batching.batch import Batch
from ..batching.mapped_axes import stacked
from .lane_lengths import INT32, Bucket, LaneLengths, Partition, Segments
from .ragged_array import ragged_axis
from .ragged_batch import RaggedBatch


def call_per_length(fun: Callable[..., Any], run: Any, args: Any, kwargs: Any, out_axes: Any) -> Any:
    """The results of all lanes, as values of ``run``, from one call of ``fun`` for each distinct length.

    Each call is under an ordinary ``vmap`` over the lanes of one length, which is an integer in it.

    Raises: BadArgument: there are no ragged arrays, lengths are values, or lanes have an axis name. ShapeMismatch:
    results that are not ragged have different shapes.
    """
    if not isinstance(run, RaggedBatch) or not run.lanes.lengths or not run.size:
        raise BadArgument("vmap: per_length=True is for ragged arrays with lanes, got none.")
    if run.axis_name is not None:
        raise BadArgument(
            f"vmap: with per_length=True lanes of different lengths are never together, got {run.axis_name!r}.",
            hint="compute over the lanes outside of it, or leave per_length out.",
        )
    if not run.lanes.known:
        raise BadArgument(
            "vmap: per_length=True needs lengths that are known, got values of a program.",
            hint="hx.Ragged(data, (3, 1, 4)) has static lengths.",
        )
    leaves, tree = pytrees.flatten((args, kwargs))
    partition = run.lanes.equal
    with inside(run.outer):
        columns = [run.padded(x, partition) if x.run is run else None for x in leaves]
        results_of = []
        for k, bucket in enumerate(partition.buckets):
            kind = Batch if len(partition.buckets) == 1 else _SomeLanes
            lanes = kind(run.outer, len(bucket.lanes), None, run.site)
            boxes = [x if parts is None else lanes.box(0, (parts[k],)) for x, parts in zip(leaves, columns)]
            with installed(lanes):
                positional, named = pytrees.unflatten(tree, boxes)
                results = pytrees.tree_map(as_array, fun(*positional, **named))
            results_of.append(pytrees.tree_map(lambda y, lanes=lanes: stacked(lanes, y, 0), results))
        flat, structure = zip(*map(pytrees.flatten, results_of))
        if len({*structure}) > 1:
            raise TreeMismatch(f"vmap: all lengths must give results of one structure, got {structure[0]} and others.")
        targets = pytrees.broadcast_prefix(out_axes, results, is_leaf=is_axis, what="vmap out_axes")
        return pytrees.unflatten(structure[0], _joined(run, list(zip(*flat)), targets))


class _SomeLanes(Batch):
    """The vmap handler for the lanes of one length. It refuses effects, whose order would be that of the lengths."""

    __slots__ = ()

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        effects = [effect for effect in op.effects if not isinstance(effect, Axis) and not _in_no_order(effect)]
        if effects:
            raise CannotCross(
                f"vmap: with per_length=True lanes would perform {effects_text(effects)} in the order of their "
                "lengths.",
                hint="handle it inside: vmap(hx.handle(h)(f), per_length=True); or leave per_length out.",
            )
        return super().answer(op, operands)


def _in_no_order(effect: Any) -> bool:
    """Whether an effect may be performed in any order, such as an unordered callback to the host."""
    return bool(effect.calls_host) and not getattr(effect, "ordered", False)


def _joined(run: RaggedBatch, columns: Sequence[Sequence[Any]], targets: Sequence[Any]) -> list[Any]:
    """Boxes of all lanes, from one array for each length. Where the target is ``ragged_axis`` the first axis is ragged.
    """
    shapes = []
    sizes = [dict(bucket.sizes) for bucket in run.lanes.equal.buckets]
    for parts, target in zip(columns, targets):
        shapes_of = {part.type.shape[1:] for part in parts}
        shape: tuple[Any, ...] = parts[0].type.shape[1:]
        if target is ragged_axis and shape:
            rows = [part.type.shape[1] for part in parts]
            extent = _extent(run, rows)
            for size, count in zip(sizes, rows):
                size[min(extent.lengths)] = count
            shape = (extent, *shape[1:])
        if len({s[1:] if extents_in(shape) else s for s in shapes_of}) > 1:
            raise ShapeMismatch(
                f"vmap: lanes of different lengths have results of different shapes, got {sorted(shapes_of)}.",
                hint="out_axes=hx.ragged_axis where only the first axis differs.",
            )
        shapes.append(shape)
    partition = Partition(run.size, [Bucket(b.lanes, size, True) for b, size in zip(run.lanes.equal.buckets, sizes)])
    return [run.from_buckets(parts, shape, partition) for parts, shape in zip(columns, shapes)]


def _extent(run: RaggedBatch, rows: Sequence[int]) -> Any:
    """The symbolic dimension with these sizes in the lanes of each length; an argument's, if it has the same sizes."""
    values = np.zeros(run.size, INT32)
    for bucket, count in zip(run.lanes.equal.buckets, rows):
        values[bucket.lanes] = count
    for number, n in run.lanes.lengths.items():
        if (n.known == values).all():  # type: ignore[union-attr]
            return length(number)
    n = LaneLengths(from_numpy(values), int(values.sum()), int(values.max()), run.outer)
    return run.lanes.extent(Segments(tuple(values.tolist()), n))
