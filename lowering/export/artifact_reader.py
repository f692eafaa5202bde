"""Bytes in JAX's format to exported functions; what does not fit together is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArtifact, BadShape, HandlaxError
from ...effects.base.frozen_values import Value
from ...effects.base.tracebacks import boundary
from ...effects.sharding.mesh import AbstractDevice, AbstractMesh
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import canonical
from ...effects.types.symbolic_shapes import SymbolicScope, parse_size
from ..xla import mlir_modules
from ..xla.stablehlo_types import tensor
from .artifact_schema import (
    AXIS_TYPES,
    CUSTOM_CALL_CHECK,
    DTYPES,
    MEMORIES,
    OLDEST,
    PLATFORM_CHECK,
    SCHEMA,
    SERIALIZATION_VERSION,
    UNSAID,
)
from .exported import DisabledSafetyCheck, Exported
from .flat_tables import Fields, damaged, decode
from .tree_serialization import table_to_tree

OLDEST_CALLING_CONVENTION = 9
CALLING_CONVENTION = 10
"""The oldest version of what programs take and give that is read, and the latest, which is written."""


class ReadVjp(Value):
    """The exported vjp of a function whose artifact contains it: a callable that returns what was read."""

    exported: Exported

    def __call__(self, _: Exported) -> Exported:
        return self.exported


@boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function of these bytes, which ``serialize`` wrote, here or in JAX.

        deserialize(exported.serialize()).call(*args) == exported.call(*args)

    A function runs what its bytes say: read those alone that come from where you trust. JAX writes no checksum, so that
    of its functions a changed byte within the program itself may not be found, and may even end the process.

    Raises: BadArtifact: the bytes are damaged, are of another format or of a later version of it, or have nodes of
    types that are not registered here.
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise damaged(f"a {type(blob).__name__}")
    return _exported(decode(SCHEMA, "Exported", bytes(blob)), SymbolicScope())


def _exported(table: Fields, scope: SymbolicScope) -> Exported:
    """The exported function of a table, of whose dimension variables the program says what must hold."""
    _check_versions(table)
    avals = [_aval(part, scope) for part in table["unique_avals"]]
    meshes = [_mesh(part) for part in table["unique_abstract_meshes"]]
    cuts = [None, *[_sharding(part, meshes) for part in table["unique_named_shardings"]]]
    ins, outs = [_chosen(avals, table[f"{end}_avals_idxs"]) for end in ("in", "out")]
    vjp = table["vjp"]
    found = Exported(
        fun_name=table["function_name"] or "",
        in_tree=table_to_tree(_needed(table, "in_tree")),
        in_avals=ins,
        out_tree=table_to_tree(_needed(table, "out_tree")),
        out_avals=outs,
        _in_named_shardings=_chosen(cuts, table["in_shardings_idxs"]),
        _out_named_shardings=_chosen(cuts, table["out_shardings_idxs"]),
        in_shardings_hlo=(None,) * len(ins),
        out_shardings_hlo=(None,) * len(outs),
        nr_devices=table["nr_devices"],
        platforms=tuple(table["platforms"]),
        ordered_effects=tuple([_needed(part, "type_name") for part in table["ordered_effects"]]),
        unordered_effects=tuple([_needed(part, "type_name") for part in table["unordered_effects"]]),
        disabled_safety_checks=tuple([_check(part) for part in table["disabled_checks"]]),
        mlir_module_serialized=_needed(table, "mlir_module_serialized"),
        calling_convention_version=table["calling_convention_version"],
        module_kept_var_idx=tuple(table["module_kept_var_idx"]),
        uses_global_constants=bool(table["uses_global_constants"]),
        _get_vjp=None if vjp is None else ReadVjp(_exported(vjp, scope)),
    )
    _check_parts(found)
    return found


def _check_versions(table: Fields) -> None:
    """Raises: BadArtifact: the tables, or what the program takes, are of a version that is not known."""
    version, convention = table["serialization_version"], table["calling_convention_version"]
    said = f"written by JAX {table['jax_version']}" if table["jax_version"] else "of version"
    if version > SERIALIZATION_VERSION or convention > CALLING_CONVENTION:
        raise BadArtifact(
            f"deserialize: the format must be version {SERIALIZATION_VERSION} at most, and the calling convention "
            f"{CALLING_CONVENTION}, got {version} and {convention}, {said}.",
            hint="a later handlax may read it.",
        )
    by_number = version == UNSAID and table["unique_avals"]
    if (0 < version < OLDEST and not by_number) or convention < OLDEST_CALLING_CONVENTION:
        raise BadArtifact(
            f"deserialize: the format must be version {OLDEST} at least, and the calling convention "
            f"{OLDEST_CALLING_CONVENTION}, got {version} and {convention}.",
            hint="export the function again.",
        )


def _check_parts(exported: Exported) -> None:
    """Raises: BadArtifact: trees, types, shardings and the program do not fit together."""
    for end, tree, avals, cuts in (
        ("arguments", exported.in_tree, exported.in_avals, exported._in_named_shardings),
        ("results", exported.out_tree, exported.out_avals, exported._out_named_shardings),
    ):
        if not tree.num_leaves == len(avals) == len(cuts):
            raise damaged(f"{tree.num_leaves} {end} with {len(avals)} types and {len(cuts)} shardings")
    kept = exported.module_kept_var_idx
    if sorted({*kept}) != [*kept] or (kept and kept[-1] >= len(exported.in_avals)):
        raise damaged(f"the arguments {kept} of {len(exported.in_avals)}")
    if not exported.platforms or not exported.nr_devices:
        raise damaged(f"platforms {exported.platforms} with {exported.nr_devices} devices")
    if exported.ordered_effects:
        return  # whose tokens are among the program's arguments
    takes, gives = mlir_modules.entry_types(exported.mlir_module_serialized)
    if len(exported.platforms) > 1 and takes[:1] in (("tensor<i32>",), ("tensor<i64>",)):
        takes = takes[1:]
    wanted = tuple([tensor(exported.in_avals[i]) for i in kept]), tuple(map(tensor, exported.out_avals))
    if (takes, gives) != wanted:
        raise damaged(f"a program {takes} -> {gives} for {wanted[0]} -> {wanted[1]}")


def _needed(table: Fields, name: str) -> Any:
    if table[name] is None:
        raise damaged(f"no {name}")
    return table[name]


def _chosen(values: Sequence[Any], indices: Sequence[int]) -> tuple[Any, ...]:
    if indices and max(indices) >= len(values):
        raise damaged(f"the number {max(indices)} of {len(values)} values")
    return tuple([values[i] for i in indices])


def _aval(table: Fields, scope: SymbolicScope) -> ArrayType:
    """The type of an argument or result."""
    if table["kind"] or not 0 <= table["dtype"] < len(DTYPES):
        raise damaged(f"a type of the kind {table['kind']} and the dtype {table['dtype']}")
    if table["memory_space"] not in MEMORIES:
        raise damaged(f"a memory of the number {table['memory_space']}")
    shape = tuple([_size(text, scope) for text in table["shape"]])
    return array_type(shape, canonical(DTYPES[table["dtype"]])).lying_in(MEMORIES[table["memory_space"]])


def _size(text: str, scope: SymbolicScope) -> Any:
    try:
        size = parse_size(text, scope)
    except BadShape as error:
        raise damaged(f"a size {text!r}") from error
    if isinstance(size, int) and not 0 <= size < 2**63:
        raise damaged(f"a size {text!r}")
    return size


def _mesh(table: Fields) -> AbstractMesh:
    kinds, names = table["axis_types"], tuple(table["axis_names"])
    if not all([kind in AXIS_TYPES for kind in kinds]) or not len(kinds) == len(names) == len(table["axis_sizes"]):
        raise damaged(f"a mesh of the axes {names}")
    try:
        device = table["abstract_device"] and AbstractDevice(**_without_absent(table["abstract_device"]))
        types = tuple([AXIS_TYPES[kind] for kind in kinds])
        return AbstractMesh(table["axis_sizes"], names, types, abstract_device=device)
    except HandlaxError as error:
        raise damaged(f"a mesh that is none: {error.what}") from error


def _without_absent(device: Fields) -> Fields:
    return {**device, "num_cores": device["num_cores"] or None}


def _sharding(table: Fields, meshes: Sequence[AbstractMesh]) -> NamedSharding:
    (mesh,) = _chosen(meshes, [table["abstract_mesh_idx"]])
    spec = _needed(table, "spec")
    try:
        entries = [tuple(entry["axes"]) for entry in spec["partitions"]]
        parts = PartitionSpec(*entries, unreduced=spec["unreduced"], reduced=spec["reduced"])
        return NamedSharding(mesh, parts, memory_kind=table["memory_kind"])
    except HandlaxError as error:
        raise damaged(f"a sharding that is none: {error.what}") from error


def _check(table: Fields) -> DisabledSafetyCheck:
    if table["kind"] == CUSTOM_CALL_CHECK:
        return DisabledSafetyCheck.custom_call(_needed(table, "custom_call_target"))
    if table["kind"] == PLATFORM_CHECK:
        return DisabledSafetyCheck.platform()
    raise damaged(f"a check of the kind {table['kind']}")
