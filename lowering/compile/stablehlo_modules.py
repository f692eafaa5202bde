"""StableHLO modules of whole programs: the entry function, with the attributes of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...effects.programs.program import Program
from ...effects.sharding.devices import KINDS_OF_SPACES
from ...effects.sharding.mesh import MeshAxes, sdy_axis
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.types.array_type import ArrayType, Space
from ..xla.host_callbacks import HostCall
from .emitter import Emitter, function, identifier


class StablehloModule(NamedTuple):
    """A module: its text, and its host functions."""

    text: str
    calls: tuple[HostCall, ...]


class EntryEmitter(Emitter):
    """The emitter of a module's entry function, ``@main``. A mesh of one device is left out: nothing is divided."""

    __slots__ = ()

    def __init__(self, mesh: MeshAxes | None, platform: str):
        super().__init__(mesh=None if mesh is None or mesh.size == 1 else mesh, platform=platform)

    def module(self, name: str, main: str) -> str:
        """The text of the module of the entry function ``main``."""
        functions = "".join([text for _, text in self.functions.values()])
        meshes = "".join([_declaration(symbol, axes) for axes, symbol in self.meshes.items()])
        symbolic = "jax.uses_shape_polymorphism = true, " if self.symbols else ""
        partitions = 1 if self.mesh_of_all is None else self.mesh_of_all.size
        head = f"{symbolic}mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32"
        tables = "".join([f"{name} = {table}\n" for table, name in self.tables.items()])
        return f"{tables}module @{identifier(name)} attributes {{{head}}} {{\n{meshes}{main}{functions}}}\n"

    def place(self, sharding: NamedSharding | None, type: ArrayType) -> list[str]:
        """The attributes of an argument or result: its sharding, if it has one, and its memory, if that is the host's.
        """
        far = type.memory_space is Space.Host
        memory = [f'mhlo.memory_kind = "{KINDS_OF_SPACES[Space.Host]}"'] if far else []
        if sharding is None or self.mesh_of_all is None:
            return memory
        return [f"sdy.sharding = #sdy.sharding{self.sharding(sharding, type)}", *memory]


def lower_program(
    program: Program,
    name: str,
    aliases: Sequence[str] = (),
    arguments: Sequence[NamedSharding | None] = (),
    results: Sequence[NamedSharding | None] = (),
    mesh: MeshAxes | None = None,
    platform: str = "cpu",
) -> StablehloModule:
    """The StableHLO module of a closed program whose effects have a lowering, for the devices of a mesh, or for one.

    ``aliases[i]``: the attribute of input ``i`` that lends its memory to a result, or the empty text. ``arguments`` and
    ``results``: the sharding of each, or None.
    """
    emit = EntryEmitter(mesh, platform)
    cuts = arguments or (None,) * len(program.in_types)
    shared = [[text] if text else [] for text in aliases] or [[]] * len(program.in_types)
    notes = [attributes(emit.place(s, t) + a) for s, t, a in zip(cuts, program.in_types, shared)]
    cuts = results or (None,) * len(program.out_types)
    made = [attributes(emit.place(s, t)) for s, t in zip(cuts, program.out_types)]
    main = function(emit, program, "public @main", notes, made)
    return StablehloModule(emit.module(name, main), tuple(emit.calls))


def attributes(texts: Sequence[str]) -> str:
    return f" {{{', '.join(texts)}}}" if texts else ""


def _declaration(symbol: str, mesh: MeshAxes) -> str:
    """The line that declares a mesh: for Shardy, and for the replica groups of collectives that name its axes."""
    axes = ", ".join([f"{{name = {sdy_axis(name)}, size = {size} : i64}}" for name, size in mesh.shape_tuple])
    return f"  sdy.mesh {symbol} = {mesh.sdy()} {{stablehlo.mesh = {{axes = [{axes}]}}}}\n"
