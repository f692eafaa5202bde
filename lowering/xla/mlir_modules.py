"""Modules of MLIR by jaxlib's bindings: StableHLO's portable artifacts, written from texts and read as texts.

A module has a context of its own, so that threads share none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...effects.base.caches import cached
from ...effects.base.errors import BadArtifact, NotExportable
from ...effects.base.lazy_module import LazyModule
from ..clients.jaxlib_modules import JAXLIB_VERSION, _jax

if TYPE_CHECKING:
    from . import mlir_bindings
else:
    mlir_bindings = LazyModule("handlax.lowering.xla.mlir_bindings")

AxisSizes = tuple[tuple[str, int], ...]


class ArtifactFunction(NamedTuple):
    """A function of a module: its symbol, and its text without locations."""

    symbol: str
    text: str


def parsed(text: str | bytes) -> Any:
    """The module of a text, or of bytecode."""
    return mlir_bindings.ir.Module.parse(text, mlir_bindings.new_context())


def portable_artifact(module: Any) -> bytes:
    """A module as a portable artifact, which jaxlib reads from twelve weeks before this version on.

    Raises: NotExportable: it has operations that are younger.
    """
    dialect = mlir_bindings.stablehlo
    window = dialect.StablehloCompatibilityRequirement.WEEK_12
    try:
        target = dialect.get_version_from_compatibility_requirement(window)
        return bytes(_jax.mlir.serialize_portable_artifact(module, target, use_mixed_serialization=True))
    except _jax.JaxRuntimeError as error:
        raise NotExportable(f"export: the program must be one of StableHLO {target}, got {error}.") from error


def read_artifact(artifact: bytes) -> Any:
    """The module of a portable artifact.

    Raises: BadArtifact: the bytes are none, or one that is younger than this version of jaxlib.
    """
    _check_sections(artifact)
    try:  # what MLIR finds stands on the error stream: a handler of its messages, called without Python's lock, crashes
        return _jax.mlir.deserialize_portable_artifact(artifact, mlir_bindings.new_context())
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise BadArtifact(
            f"deserialize: the program must be a portable artifact of StableHLO that jaxlib {JAXLIB_VERSION} "
            f"reads, got: {error}.",
            hint="a program of a later jaxlib needs that one, or one of twelve weeks before it.",
        ) from error


def _check_sections(artifact: bytes) -> None:
    """Check that the sections of MLIR's bytecode fill the bytes; its reader may end the process where they do not.

    Source: MLIR's bytecode format: magic number, version, producer, and sections by kind, length and alignment.
    Raises: BadArtifact.
    """
    try:
        if artifact[:4] != b"ML\xefR":
            raise IndexError
        _, place = _varint(artifact, 4)
        place = artifact.index(b"\0", place) + 1
        while place < len(artifact):
            aligned = artifact[place] & 0x80
            length, place = _varint(artifact, place + 1)
            if aligned:
                alignment, place = _varint(artifact, place)
                place += -place % alignment
            place += length
        if place > len(artifact):
            raise IndexError
    except (IndexError, ValueError, ZeroDivisionError):
        raise BadArtifact("deserialize: the program must be MLIR's bytecode, all of it, got other bytes.") from None


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at ``place``, in whose first byte as many zeros end as bytes follow, and where it ends.

    Raises: ValueError: there are eight zeros, before a number that is larger than all lengths.
    """
    size = f"{data[place]:08b}"[::-1].index("1") + 1
    return int.from_bytes(data[place : place + size], "little") >> size, place + size


def module_text(module: Any) -> str:
    """A module as text, without locations."""
    return str(module.operation.get_asm())


@cached("artifact types", 1024)
def entry_types(artifact: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types of the arguments and of the results of ``@main``. Raises: BadArtifact: there is no such function."""
    module = read_artifact(artifact)  # which has to live as long as its operations are read
    for function in _all_of("func", "FuncOp", module.body.operations):
        if _symbol(function) == "main":
            return tuple(map(str, function.type.inputs)), tuple(map(str, function.type.results))
    raise BadArtifact("deserialize: the program must have a function main, got none.")


def refined(text: str) -> bytes:
    """A module whose entry has known types, with the types that follow from them, as bytecode.

    Raises: ValueError, RuntimeError: an assertion does not hold, or a type does not follow.
    """
    return bytes(_jax.mlir.refine_polymorphic_shapes(text.encode(), enable_shardy="sdy.mesh" in text))


def called_targets(module: Any) -> set[str]:
    """The names of what the module calls by name outside of it."""
    every = [module.operation]
    for op in every:  # which grows
        every += [inner for region in op.operation.regions for block in region for inner in block]
    calls = _all_of("stablehlo", "CustomCallOp", every)
    return {str(mlir_bindings.ir.StringAttr(call.operation.attributes["call_target_name"]).value) for call in calls}


def meshes_of(module: Any) -> dict[str, AxisSizes]:
    """The names and sizes of the axes of each mesh that the module declares, by its symbol.

    Raises: NotExportable: one has its devices in an order of its own.
    """
    found, sdy = {}, mlir_bindings.sdy
    for op in _all_of("sdy", "MeshOp", module.body.operations):
        mesh = sdy.MeshAttr(op.operation.attributes["mesh"])
        if list(mesh.device_ids):
            raise NotExportable(f"export: devices must be in the order of their mesh, got {mesh}.")
        found[_symbol(op)] = tuple([(axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes)])
    return found


def mesh_texts(module: Any) -> list[str]:
    """The lines that declare the module's meshes."""
    return [f"  {op}" for op in _all_of("sdy", "MeshOp", module.body.operations)]


def renamed_functions(module: Any, names: Mapping[str, str]) -> list[ArtifactFunction]:
    """The functions of the module, private, in which symbols have these names. It changes the module."""
    operations = list(module.body.operations)
    table = mlir_bindings.ir.SymbolTable
    for new in (lambda symbol: f"{symbol}.renamed", lambda symbol: names[symbol.removesuffix(".renamed")]):
        for op in operations:  # in two steps, since a new name may be another symbol's old one
            symbol = _symbol(op)
            table.replace_all_symbol_uses(symbol, new(symbol), module.operation)
            table.set_symbol_name(op.operation, new(symbol))
    functions = _all_of("func", "FuncOp", operations)
    for op in functions:  # not all have a visibility that could be set
        op.operation.attributes["sym_visibility"] = mlir_bindings.ir.StringAttr.get("private", module.context)
    # the short form of a dynamic_slice without indices does not parse; the generic form always does
    return [
        ArtifactFunction(_symbol(op), str(op.operation.get_asm(use_local_scope=True, print_generic_op_form=True)))
        for op in functions
    ]


def symbols_of(module: Any) -> Iterable[str]:
    """The symbols that the module defines, those of functions and of meshes, in order."""
    return [_symbol(op) for op in module.body.operations]


def _all_of(dialect: str, kind: str, operations: Iterable[Any]) -> list[Any]:
    """Those of a kind among some operations."""
    return [op for op in operations if isinstance(op, getattr(getattr(mlir_bindings.dialects, dialect), kind))]


def _symbol(op: Any) -> str:
    return str(mlir_bindings.ir.StringAttr(op.operation.attributes["sym_name"]).value)
