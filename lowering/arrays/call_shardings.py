"""The shardings that ``jit`` was given for arguments and results, and the devices on which a call is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, DeviceMismatch, ShardingTypeError
from ...effects.base.stack import perform
from ...effects.core.arrays import as_array
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint, reveal
from ...effects.operations.foundations.to_memory import in_memory
from ...effects.programs.closure_conversion import close
from ...effects.programs.program import interpret
from ...effects.sharding.devices import KINDS_OF_SPACES
from ...effects.sharding.layout import Layout, row_major
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding, Sharding
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...interpreters.core.record import record_apart
from ...interpreters.core.trace_cache import Trace, TraceRequest
from ...interpreters.transformations.make_program import ShapeDtypeStruct
from ..compile.placement import Placement, by_settings, committed, on_device, over
from ..xla.array_backend import note_placement
from ..xla.lazy import runtime
from .requested_shardings import (
    for_leaves,
    is_requested,
    layouts_for_leaves,
    leaf_name,
    over_mesh,
    requested,
    whole_shardings,
)


class CallShardings(NamedTuple):
    """Trees of shardings, prefixes of the positional arguments and of the results; None: unspecified."""

    arguments: Any = None
    results: Any = None

    def __bool__(self) -> bool:
        return any([leaf is not None for tree in self for leaf in pytrees.leaves(tree, is_requested)])

    def check(self) -> None:
        """Raises BadArgument: a leaf is no sharding, or leaves a dimension of an argument to the compiler."""
        whole_shardings("jit in_shardings", self.arguments)
        for leaf in pytrees.leaves(self.results, is_requested):
            if leaf is not None and not is_requested(leaf):
                requested("jit out_shardings", leaf)

    def of_arguments(self, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        """The sharding specified for each leaf of the dynamic arguments, else None. Raises: BadArgument, TreeMismatch.
        """
        if self.arguments is None:
            return [None] * len(pytrees.leaves((args, kwargs)))
        if kwargs:
            raise BadArgument(
                f"jit: in_shardings are those of positional arguments, got {', '.join(sorted(kwargs))} by name.",
                hint="pass them by position.",
            )
        shardings = tuple(self.arguments) if isinstance(self.arguments, list) else self.arguments
        return for_leaves("jit in_shardings", shardings, tuple(args))

    def of_results(self, name: str, tree: Any, types: Sequence[ArrayType]) -> list[Any]:
        """The sharding specified for each leaf of the results of the function ``name``, else None.

        Raises: TreeMismatch, ShapeMismatch.
        """
        if self.results is None:
            return [None] * len(types)
        results = tree.unflatten(list(types))
        by_leaf = for_leaves("jit out_shardings", self.results, results)
        for i, (sharding, t) in enumerate(zip(by_leaf, types)):
            if sharding is not None:
                sharding.check_fit(name, partial(leaf_name, "the result", results, i), t.shape)
        return by_leaf

    def placement(
        self,
        name: str,
        specified: list[Any],
        committed: Sequence[Any],
        where: Placement | None,
        names: Callable[[int], str],
    ) -> Placement | None:
        """Where a call is executed: as specified for its arguments or results, else ``where``, the placement of its
        arguments.

        ``specified`` has the specified sharding of each argument, ``committed`` that of each committed array, else
        None.

        Raises: DeviceMismatch: they are over different devices. BadArgument: a committed argument has another
        sharding than specified.
        """
        results = [requested("jit", s) for s in pytrees.leaves(self.results, is_requested) if s is not None]
        known = [sharding for sharding in (*specified, *results) if sharding is not None]
        if not known:
            return where
        devices = _devices(known[0])
        device_lists = [*map(_devices, known), *([] if where is None else [where.devices])]
        for devices_there in device_lists:
            if devices_there != devices:
                pair = " and ".join([str([device.id for device in each]) for each in (devices, devices_there)])
                raise DeviceMismatch(
                    f"{name}: arguments and shardings must be over the same devices in the same order, got {pair}.",
                    hint="device_put the arguments there, or make the meshes of one list of devices.",
                )
        for i, (sharding, own) in enumerate(zip(specified, committed)):
            if sharding is not None and own is not None and not own[0].is_equivalent_to(sharding, own[1]):
                raise BadArgument(
                    f"{name}: in_shardings say {sharding} of {names(i)}, which is cut by {own[0]}.",
                    hint="device_put it there before, or leave its sharding out.",
                )
        meshes = [sharding.mesh for sharding in known if isinstance(sharding, NamedSharding)]
        layouts = () if where is None else where.argument_layouts
        if not meshes:
            note_placement(devices[0])
            return on_device(devices[0])._replace(argument_layouts=layouts)
        held = where.arguments if where is not None and where.arguments else [None] * len(specified)
        arguments = [own if s is None else over_mesh(s) for s, own in zip(specified, held)]
        return over(meshes[0], arguments)._replace(argument_layouts=layouts)

    def with_layouts(
        self, placement: Placement | None, args: Any, types: Sequence[ArrayType], committed: Sequence[Any],
        names: Callable[[int], str],
    ) -> Placement | None:
        """The placement with the layouts specified for the arguments, else those that they have in it.

        Raises: BadArgument: a committed argument has another layout than specified.
        """
        layouts = layouts_for_leaves("jit in_shardings", self.arguments, tuple(args), types)
        if not layouts:
            return placement
        placement = placement or by_settings()
        found = []
        for i, (asked, lies) in enumerate(zip(layouts, placement.argument_layouts or (None,) * len(types))):
            if isinstance(asked, Layout) and committed[i] is not None and lies != asked:
                raise BadArgument(
                    f"jit: in_shardings say {asked} of {names(i)}, which has "
                    f"{lies or row_major(len(asked.major_to_minor))}.",
                    hint="device_put it there before, or leave its layout out.",
                )
            found.append(asked or lies)
        return placement._replace(argument_layouts=tuple(found))

    def with_results(
        self, name: str, placement: Placement | None, tree: Any, types: Sequence[ArrayType]
    ) -> Placement | None:
        """The placement with the shardings and layouts specified for the results."""
        if self.results is None:
            return placement
        layouts = layouts_for_leaves("jit out_shardings", self.results, tree.unflatten(list(types)), types)
        placement = (placement or by_settings())._replace(result_layouts=layouts) if layouts else placement
        if placement is None:
            return None
        asked = self.of_results(name, tree, types)
        if placement.mesh is not None:
            return placement._replace(results=tuple([None if s is None else over_mesh(s) for s in asked]))
        unknown = [s is not None and s.memory_kind not in KINDS_OF_SPACES.values() for s in asked]
        return placement._replace(results=tuple(asked)) if any(unknown) else placement  # types know the other memories


NO_SHARDINGS = CallShardings()


def _devices(sharding: Sharding) -> tuple[Any, ...]:
    """The devices of a sharding; empty if its mesh is abstract."""
    abstract = isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)
    return () if abstract else sharding._device_assignment


def constrained(xs: Sequence[Any], shardings: Sequence[Sharding | None]) -> list[Any]:
    """The arrays of a program, each constrained to its sharding, if it has one."""
    return [
        x if s is None else in_memory(perform(ShardingConstraint(over_mesh(s)), as_array(x)), s.memory_space)
        for x, s in zip(xs, shardings)
    ]


def described_placement(leaves: Sequence[Any], name: str, names: Callable[[int], str]) -> Placement | None:
    """Where a call with these arguments is executed: on the devices of committed arrays and of types with a sharding;
    None: on the default device.

    Raises: DeviceMismatch: they are over different devices. BadArgument: a type cannot have its layout.
    """
    where = committed([getattr(x, "_buffer", None) for x in leaves], name, names)
    described = [x if isinstance(x, ShapeDtypeStruct) else None for x in leaves]
    said = [None if x is None else x.sharding for x in described]
    where = NO_SHARDINGS.placement(name, said, [None] * len(leaves), where, names)
    asked = [None if x is None else x.format.layout_of(name, x.type) for x in described]
    if not any(asked):
        return where
    where = where or by_settings()
    own = where.argument_layouts or (None,) * len(leaves)
    return where._replace(argument_layouts=tuple([a or b for a, b in zip(asked, own)]))


def with_argument_cuts(request: TraceRequest, shardings: Sequence[Sharding | None]) -> TraceRequest:
    """The request of a trace on arguments whose types state the cuts and memories of these shardings.

    Raises: ShardingTypeError: one says that an argument is of partial sums, which is whole.
    """
    for s, t in zip(shardings, request.types):
        if s is not None and s.unreduced and (t.cut is None or t.cut.unreduced != s.unreduced):
            raise ShardingTypeError(
                f"jit in_shardings: what is unreduced is so by its type, got {s} for {t}.",
                hint="hx.device_put(x, sharding) before.",
            )
    types = tuple([
        t if s is None else t.cut_by(s.cut(t.ndim) or t.cut).lying_in(s.memory_space or t.memory_space)
        for s, t in zip(shardings, request.types)
    ])
    if types == request.types:
        return request
    return request._replace(types=types, key=(*request.key, types))


def with_result_cuts(trace: Trace, shardings: Sequence[Sharding | None]) -> Trace:
    """The trace of the function whose results are resharded along explicit axes, and moved to other memories."""
    recorded = trace.recorded
    moves = lambda s, t: s.memory_space not in (None, t.memory_space) or over_mesh(s).mesh.explicit_axes
    moving = [s if s is not None and moves(s, t) else None for s, t in zip(shardings, recorded.out_types)]
    if not any(moving):
        return trace

    def resharded(*xs: Any) -> Any:
        ys = interpret(recorded, xs)
        return [
            y if s is None else in_memory(reveal(y, s.cut(len(y.type.shape))), s.memory_space)
            for y, s in zip(ys, moving)
        ], None

    program, _ = record_apart(resharded, recorded.in_types)
    closed = close(program)
    return trace._replace(recorded=program, program=closed.program, captured=closed.captured)


def shardings_of(leaves: Sequence[Any]) -> list[Any]:
    """For each argument, its sharding and rank if it is committed to devices, else None."""
    return [
        (x.sharding, len(x.type.shape)) if getattr(x, "_buffer", None) is not None and runtime.is_committed(x._buffer)
        else None for x in leaves
    ]
