"""How ``vmap`` maps its arguments and stacks its results: arrays by dimension, containers by their own specs.

    spec        lane gets                               leaves
    None        as it is: all lanes share it           the value that all lanes share
    an int      an array, mapped along a dimension     lanes stacked along a dimension
    Segments    rows of lanes of different lengths     these rows, and the lengths
    any other   what the container's ``to_elt`` makes  what its ``from_elt`` makes of the lanes' results,
                of the parts that it lets enter        of which it lets parts leave
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, ShapeMismatch
from ...effects.base.stack import STACK, Run, inside, push, runs
from ...effects.core.arrays import Array, as_array
from ...effects.core.containers import (
    ContainerKind,
    container_kind,
    is_axis,
    is_container,
    is_spec,
    mapped_by,
    names_of_containers,
    numbers_of,
)
from ...effects.operations.manipulation.creation import iota
from ...effects.trees import pytrees
from ...effects.types.extent import as_size
from ...effects.types.sized import extents_in
from ..batching.batch import Batch
from ..batching.mapped_axes import dimension, flat_arguments, stacked
from .lane_by_lane import LaneByLane
from .lane_lengths import INT32, RaggedLanes, Segments
from .ragged_batch import RaggedBatch


def new_lanes(new_run: Callable[..., Batch], axis_name: Any, site: Any) -> Callable[..., Batch]:
    """The function that installs a ``vmap`` of a given size; for arrays its axis is ragged if a ragged argument enters.
    """
    outer = STACK.get()

    def new(size: Any, kind: ContainerKind | None) -> Batch:
        make = numbers_of(size, kind)
        if new_run is not Batch:
            if make is not None:
                raise BadArgument(
                    f"vmap: lanes with numbers of their own are neither grouped nor placed, got {size!r}.",
                    hint="axis_size as an integer.",
                )
            return new_run(outer, as_size(size), axis_name, site)
        start = sum([len(run.lanes.lengths) for run in runs(outer) if isinstance(run, RaggedBatch)])
        lanes = RaggedLanes(as_size(size), {}, outer, start, make and partial(make, size))
        return LaneByLane(outer, lanes, axis_name, site)

    return new


class ContainerMap:
    """One call of ``vmap``. ``new_run(size, kind)`` installs its handler once the size of a mapped axis is known.

    ``axis_size``: the number of lanes as the user gives it, an integer or of a registered ``axis_size_type``.
    """

    run: Any = None
    first: Any = ()  # describes the axis that determined the size
    number: Any = None  # the index of the current lane
    kind: Any = None  # the kind of the container that is being mapped

    def __init__(self, new_run: Callable[..., Batch], axis_size: Any = None):
        self.new_run = new_run
        self.axis_size = axis_size
        if axis_size is not None and not hasattr(axis_size, "__index__"):
            raise BadCall(
                f"vmap: axis_size is an integer, or of the axis_size_type of a container, got {axis_size!r}.",
                hint="give its class an __index__, which says how many lanes there are.",
            )
        if axis_size is not None:
            self._agree(axis_size, "axis_size", axis_size)

    @property
    def outer(self) -> Run:
        """The installation outside of this ``vmap``."""
        return STACK.get() if self.run is None else self.run.outer

    def _agree(self, size: Any, *axis: Any) -> None:
        """Install the handler for this size, or check that the mapped axes agree. Raises: ShapeMismatch."""
        if self.run is None:
            self.run, self.axis_size, self.first = self.new_run(size, self.kind), size, axis
            if self.kind is not None:
                push(self.run)  # what its to_elt computes from here on, it computes in the lanes
        elif as_size(size) != self.run.size:
            raise ShapeMismatch(
                f"vmap: mapped axes must have one size, got {_words(self.first)} and {_words(axis)}.",
                hint="in_axes=None shares an argument between the lanes.",
            )

    # --- entering

    def arguments(self, in_axes: Any, out_axes: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments as one lane gets them. Raises: BadArgument: nothing is mapped."""
        if is_spec(in_axes) and not kwargs:
            entered: Any = tuple([self.enter(x, in_axes) for x in args]), {}
        else:
            entered = self._by_prefix(in_axes, out_axes, args, kwargs)
        if self.run is None:
            raise BadArgument(
                "vmap: at least one argument must be mapped, or axis_size be set.",
                hint="all entries of in_axes are None, or to_elt lets no array enter.",
            )
        return entered

    def _by_prefix(self, in_axes: Any, out_axes: Any, args: Any, kwargs: Any) -> Any:
        """The arguments as one lane gets them; arrays are mapped before containers, since they determine the size."""
        leaves, tree, specs = flat_arguments(in_axes, out_axes, args, kwargs)
        entered = {}
        for i in sorted(range(len(leaves)), key=lambda i: is_container(leaves[i])):
            entered[i] = self.enter(leaves[i], specs[i])
        return pytrees.unflatten(tree, [entered[i] for i in range(len(leaves))])

    def enter(self, x: Any, spec: Any) -> Any:
        """An array, a container, or a tree of them as one lane gets it. Raises: BadArgument: it has no such axis."""
        kind = container_kind(x)
        if kind is not None and spec is not None:
            _need_spec("in_axes", kind, spec)
            return self._element(kind, x, spec)
        if type(spec) is Segments:
            spec = spec.within(self.outer)
        if kind is None and not isinstance(x, Array):
            leaves, tree = pytrees.flatten(x, is_container)
            if not pytrees.is_leaf_structure(tree):
                return pytrees.unflatten(tree, [self.enter(leaf, spec) for leaf in leaves])
        return x if spec is None else self._mapped(as_array(x), spec)

    def _element(self, kind: ContainerKind, x: Any, spec: Any) -> Any:
        """The result of the container's ``to_elt``, computed under the handler once the number of lanes is known."""
        around, self.kind = self.kind, kind
        element = partial(kind.to_elt, self.enter, self.lane_number, x, spec)
        try:
            if around is not None:  # a part of a container
                return element()
            with inside(self.run or STACK.get()):
                return element()
        finally:
            self.kind = around

    def _mapped(self, x: Any, spec: Any) -> Any:
        """One lane's slice of an array."""
        if self.run is not None and x.run is self.run:
            raise BadArgument(f"vmap: a part enters once, got the {x.type} that a lane sees already.")
        if type(spec) is Segments:
            self._agree(spec.lengths.count, "lanes of", spec.lengths.source)
            if self.run.equal_lanes:
                raise BadArgument(
                    f"vmap: lanes of different lengths {self.run.equal_lanes[0]}.",
                    hint=f"{self.run.equal_lanes[1]} with padded arrays, or ragged_axis without it.",
                )
            with inside(self.outer):
                return self.run.enter(x, self.run.extent(spec))
        if is_spec(spec):
            raise BadArgument(
                f"vmap: {spec!r} is an axis of {names_of_containers(mapped_by(type(spec)))}, got {x.type}.",
                hint="an int for an array with a row for each lane, None for one that all lanes share.",
            )
        dim = dimension("vmap", spec, x)
        self._agree(x.type.shape[dim], x.type, "along", dim)
        return self.run.box(dim, (x,))

    def lane_number(self) -> Any:
        """The index of the current lane, int32, from 0. Raises: BadArgument: the number of lanes is not known yet."""
        if self.run is None:
            raise BadArgument(
                "vmap: to_elt asks for the number of the lane before it is known how many there are.",
                hint="let an array enter by cont(x, axis) first, or say axis_size=.",
            )
        if self.number is None:
            with inside(self.outer):
                known = isinstance(self.run, RaggedBatch)
                self.number = self.run.box(0, (self.run.lanes.numbers if known else iota(INT32, self.run.size),))
        return self.number

    # --- leaving

    def results(self, out_axes: Any, results: Any) -> Any:
        """The results of all lanes, stacked as ``out_axes`` says."""
        if isinstance(self.run, RaggedBatch) and self.run.lanes.lengths:
            self.run.settle([y for y in pytrees.leaves(results) if isinstance(y, Array)])
        if is_spec(out_axes):
            return self.leave(self.axis_size, results, out_axes)
        targets, spec = pytrees.flatten(out_axes, is_axis)
        parts = pytrees.flatten_up_to(spec, results, "vmap out_axes", prefix=True)
        return pytrees.unflatten(spec, [self.leave(self.axis_size, y, target) for y, target in zip(parts, targets)])

    def leave(self, axis_size: Any, y: Any, spec: Any) -> Any:
        """The results of all lanes for one lane's ``y``, a container or a tree of results."""
        kind = container_kind(y) or _made_of(y, spec)
        if kind is not None and spec is not None:
            _need_spec("out_axes", kind, spec)
            return kind.from_elt(self.leave, axis_size, y, spec)
        if not isinstance(y, Array):
            leaves, tree = pytrees.flatten(y, None if spec is None else is_container)
            if not pytrees.is_leaf_structure(tree):
                return pytrees.unflatten(tree, [self.leave(axis_size, leaf, spec) for leaf in leaves])
            y = as_array(y)
        self.run.settle((y,))
        with inside(self.run.outer):
            return self._rows(y) if type(spec) is Segments else stacked(self.run, self._dense(y), spec)

    def _dense(self, y: Any) -> Any:
        """A result that has the same shape in all lanes. Raises: ShapeMismatch: it has a ragged axis."""
        if isinstance(self.run, RaggedBatch) and self.run.lanes.owns(extents_in(y.type.shape)):
            raise ShapeMismatch(
                f"vmap: a result with a ragged axis has out_axes=hx.ragged_axis, got {y.type}.",
                hint="or reduce it over that axis.",
            )
        return y

    def _rows(self, y: Any) -> tuple[Any, Any]:
        """The packed rows of all lanes, and the lengths, of a value whose first axis is its only ragged one."""
        axes: Any = self.run.ragged_axes(y.type.shape) if y.run is self.run else ()
        if [axis for axis, _ in axes] != [0]:
            several = "y.reshape(-1) makes one axis of two that stand one after the other; or reduce one of them."
            hints = ("out_axes=0 for a result of one shape in all lanes.", "transpose it.", several)
            raise ShapeMismatch(
                f"vmap: out_axes=ragged_axis is for a result whose first axis is its only ragged one, got {y.type}.",
                hint=hints[min(len(axes), 2)],
            )
        extent = axes[0][1]
        return self.run.leave(y, extent), self.run.lanes.of(extent)


def _words(axis: Sequence[Any]) -> str:
    return " ".join(map(str, axis))


def _need_spec(where: str, kind: ContainerKind, spec: Any) -> None:
    """Raise BadArgument unless ``spec`` is a spec of this kind of container."""
    if type(spec) is not kind.spec_type:
        own = "its spec, or " if kind.only_spec is None else f"{kind.only_spec} maps over the lanes; "
        raise BadArgument(
            f"vmap: {kind.data_type.__name__} is mapped by {where} of type {kind.spec_type.__name__}, got {spec!r}.",
            hint=f"{own}None for one that all lanes share.",
        )


def _made_of(y: Any, spec: Any) -> ContainerKind | None:
    """The kind of container that a spec builds from plain results, if there is exactly one.

    Raises: BadCall: there are several.
    """
    if not is_spec(spec) or any([is_container(leaf) for leaf in pytrees.leaves(y, is_container)]):
        return None
    kinds = mapped_by(type(spec))
    if len(kinds) > 1:
        raise BadCall(
            f"vmap: out_axes={spec!r} is an axis of {names_of_containers(kinds)}, and the result is neither.",
            hint="return one of them from the mapped function.",
        )
    return kinds[0]
