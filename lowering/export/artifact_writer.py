"""Exported functions to bytes, in JAX's format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArgument, NotExportable
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED, entry_axes
from ...effects.types.array_type import ArrayType
from .artifact_schema import (
    AXIS_TYPES,
    CUSTOM_CALL_CHECK,
    DTYPES,
    MEMORIES,
    PLATFORM_CHECK,
    SCHEMA,
    SERIALIZATION_VERSION,
)
from .flat_tables import Fields, encode
from .tree_serialization import tree_to_table


class Numbering:
    """The different ones among some values, each once, and their numbers in order."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def of(self, values: Sequence[Any]) -> list[int]:
        return [self.numbers.setdefault(value, len(self.numbers)) for value in values]


def serialize(exported: Any, vjp_order: int) -> bytearray:
    """The bytes of an ``Exported`` with its pullbacks up to ``vjp_order``; see ``Exported.serialize``."""
    if not isinstance(vjp_order, int) or vjp_order < 0:
        raise BadArgument(f"serialize: vjp_order must be an integer from 0 on, got {vjp_order!r}.")
    return bytearray(encode(SCHEMA, "Exported", exported_to_table(exported, vjp_order)))


def exported_to_table(exported: Any, vjp_order: int) -> Fields:
    avals, cuts, meshes = Numbering(), Numbering(), Numbering()
    numbers = {f"{end}_avals_idxs": avals.of(getattr(exported, f"{end}_avals")) for end in ("in", "out")}
    for end in ("in", "out"):
        said = getattr(exported, f"_{end}_named_shardings")
        numbers[f"{end}_shardings_idxs"] = [0 if s is None else 1 + cuts.of([s])[0] for s in said]
    return {
        "serialization_version": SERIALIZATION_VERSION,
        "function_name": exported.fun_name,
        "in_tree": tree_to_table(exported.in_tree),
        "out_tree": tree_to_table(exported.out_tree),
        "platforms": list(exported.platforms),
        "ordered_effects": [{"type_name": name} for name in exported.ordered_effects],
        "unordered_effects": [{"type_name": name} for name in exported.unordered_effects],
        "disabled_checks": [_check_to_table(check) for check in exported.disabled_safety_checks],
        "mlir_module_serialized": exported.mlir_module_serialized,
        "calling_convention_version": exported.calling_convention_version,
        "module_kept_var_idx": list(exported.module_kept_var_idx),
        "uses_global_constants": exported.uses_global_constants,
        "vjp": exported_to_table(exported.vjp(), vjp_order - 1) if vjp_order else None,
        "nr_devices": exported.nr_devices,
        "unique_avals": [_aval_to_table(t) for t in avals.numbers],
        "unique_named_shardings": [_sharding_to_table(s, *meshes.of([s.mesh])) for s in cuts.numbers],
        "unique_abstract_meshes": [_mesh_to_table(mesh) for mesh in meshes.numbers],
        **numbers,
    }


def _aval_to_table(t: ArrayType) -> Fields:
    name = t.dtype.name if t.dtype.itemsize else "float0"
    if name not in DTYPES:
        raise NotExportable(f"serialize: the dtype of an argument or result must be one that JAX has, got {name}.")
    memory = next(number for number, space in MEMORIES.items() if space is t.memory_space)
    return {"shape": [*map(str, t.shape)], "dtype": DTYPES.index(name), "memory_space": memory}


def _mesh_to_table(mesh: Any) -> Fields:
    kinds = {kind: number for number, kind in AXIS_TYPES.items()}
    device = mesh.abstract_device
    fields = {name: getattr(device, name) for name in SCHEMA["Device"]} if device is not None else None
    return {
        "axis_sizes": mesh.axis_sizes, "axis_names": [_axis_name(name) for name in mesh.axis_names],
        "axis_types": [kinds[kind] for kind in mesh.axis_types], "abstract_device": fields,
    }


def _sharding_to_table(sharding: NamedSharding, mesh: int) -> Fields:
    """A sharding over the mesh of this number."""
    if UNCONSTRAINED in sharding.spec:
        raise NotExportable(f"serialize: a sharding must say how every dimension is cut, got {sharding.spec}.")
    entries = [{"axes": [_axis_name(name) for name in entry_axes(entry)]} for entry in sharding.spec]
    return {
        "mesh": _mesh_to_table(sharding.mesh), "abstract_mesh_idx": mesh, "memory_kind": sharding.memory_kind,
        "spec": {"partitions": entries, "reduced": [], "unreduced": []},
    }


def _axis_name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise NotExportable(f"serialize: the axes of a mesh must have strings as names, got {name!r}.")


def _check_to_table(check: Any) -> Fields:
    target = check.is_custom_call()
    return {"kind": PLATFORM_CHECK if target is None else CUSTOM_CALL_CHECK, "custom_call_target": target}
