"""StableHLO modules of whole programs: the entry function, with the attributes of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross
from ...effects.programs.program import Program
from ...effects.sharding.devices import KINDS_OF_SPACES
from ...effects.sharding.layout import AutoLayout, Layout
from ...effects.sharding.mesh import MeshAxes, sdy_axis
from ...effects.sharding.named_sharding import Sharding
from ...effects.types.array_type import ArrayType, Space
from ...interpreters.custom.custom_partitioning import DevicePart
from ...interpreters.custom.rule_free_programs import without_rules
from ...interpreters.handlers.default_clauses import with_defaults
from ..xla.compiler_calls import Inspection, UserPartitionCall
from ..xla.host_callbacks import HostCall
from .emitter import Emitter, function, identifier
from .manual_computation import ManualMesh
from .placement import ANYWHERE, Placement


class StablehloModule(NamedTuple):
    """A module: its text, and the functions that it calls, or the compiler."""

    text: str
    calls: tuple[HostCall | Inspection | UserPartitionCall, ...]


class EntryEmitter(Emitter):
    """The emitter of a module's entry function, ``@main``. A mesh of one device is left out: nothing is divided."""

    __slots__ = ()

    def __init__(self, mesh: MeshAxes | None, platform: str):
        super().__init__(mesh=None if mesh is None or mesh.size == 1 else mesh, platform=platform)

    def module(self, name: str, main: str) -> str:
        """The text of the module of the entry function ``main``."""
        functions = "".join([text for _, text in self.functions.values()])
        meshes = "".join([_declaration(symbol, sizes) for sizes, symbol in self.meshes.items()])
        symbolic = "jax.uses_shape_polymorphism = true, " if self.symbols else ""
        partitions = 1 if self.mesh_of_all is None else self.mesh_of_all.size
        head = f"{symbolic}mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32"
        tables = "".join([f"{name} = {table}\n" for table, name in self.tables.items()])
        return f"{tables}module @{identifier(name)} attributes {{{head}}} {{\n{meshes}{main}{functions}}}\n"

    def place(self, sharding: Sharding | None, type: ArrayType, layout: Layout | AutoLayout | None = None) -> list[str]:
        """The attributes of an argument or result: its sharding and its layout, if it has one, and its memory, if that
        is the host's.
        """
        texts = []
        if sharding is not None and self.mesh_of_all is not None:
            texts.append(f"sdy.sharding = #sdy.sharding{self.sharding(sharding, type)}")  # type: ignore[arg-type]
        if type.memory_space is Space.Host:
            named = sharding is not None and sharding.memory_space is Space.Host
            kind = sharding.memory_kind if named else KINDS_OF_SPACES[Space.Host]  # type: ignore[union-attr]
            texts.append(f'mhlo.memory_kind = "{kind}"')
        if layout is not None:
            texts.append(f'mhlo.layout_mode = "{layout.mode if isinstance(layout, Layout) else "auto"}"')
        return texts


def lower_program(
    program: Program, name: str, aliases: Sequence[str] = (), placement: Placement = ANYWHERE, platform: str = ""
) -> StablehloModule:
    """The StableHLO module of a closed program whose effects have a lowering, for the devices of its placement.

    ``aliases[i]``: the attribute of input ``i`` that lends its memory to a result, or the empty text. ``platform``: by
    default that of the placement.
    """
    emit = EntryEmitter(placement.mesh, platform or placement.platform)
    ins, outs = program.in_types, program.out_types
    shared = [[text] if text else [] for text in aliases] or [[]] * len(ins)
    taken = map(emit.place, placement.arguments or (None,) * len(ins), ins, placement.argument_layouts or repeat(None))
    given = map(emit.place, placement.results or (None,) * len(outs), outs, placement.result_layouts or repeat(None))
    notes = [attributes(place + alias) for place, alias in zip(taken, shared)]
    made = [*map(attributes, given)]
    main = function(emit, program, "public @main", notes, made)
    calls = [call.lowered_by(lower_part) if isinstance(call, UserPartitionCall) else call for call in emit.calls]
    return StablehloModule(emit.module(name, main), tuple(calls))


def lower_part(part: DevicePart, platform: str) -> str:
    """The module of what each device executes of a function that a user partitions.

    Raises: CannotCross: it calls the host, which XLA knows of before it asks for the part.
    """
    program, emit = without_rules(with_defaults(part.program)), EntryEmitter(part.mesh, platform)
    emit.manual = ManualMesh(part.mesh, part.mesh.shape_tuple)
    main = function(emit, program, "public @main")
    if emit.calls:
        called = ", ".join(dict.fromkeys([call.op.name for call in emit.calls]))
        raise CannotCross(
            f"{program.name}: the function of a part must not call the host, got {called}.",
            hint="call it outside of the function that is partitioned.",
        )
    return emit.module(program.name, main)


def attributes(texts: Sequence[str]) -> str:
    return f" {{{', '.join(texts)}}}" if texts else ""


def _declaration(symbol: str, sizes: Sequence[tuple[Any, int]]) -> str:
    """The line that declares a mesh by the sizes of its axes: for Shardy, and for the replica groups of collectives
    that name its axes.
    """
    named = [(sdy_axis(name), size) for name, size in sizes]
    axes = ", ".join([f"{name}={size}" for name, size in named])
    fields = ", ".join([f"{{name = {name}, size = {size} : i64}}" for name, size in named])
    return f"  sdy.mesh {symbol} = <[{axes}]> {{stablehlo.mesh = {{axes = [{fields}]}}}}\n"
