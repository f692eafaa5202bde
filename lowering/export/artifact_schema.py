"""The tables of a serialized ``Exported``, which are JAX's, and the numbers that stand for names in them."""

from __future__ import annotations

from ...effects.sharding.mesh import AxisType
from ...effects.types.array_type import Space
from .flat_tables import Bytes, Many, Number, Schema, Table, Text

BYTE, UINT16, UINT32, FLAG = Number("b"), Number("H"), Number("I"), Number("?")

SCHEMA: Schema = {
    "Tree": {
        "kind": BYTE, "children": Many(Table("Tree")), "children_names": Many(Text()), "custom_name": Text(),
        "custom_auxdata": Bytes(),
    },
    "Device": {"device_kind": Text(), "num_cores": UINT32, "platform": Text()},
    "Mesh": {
        "axis_sizes": Many(UINT32), "axis_names": Many(Text()), "axis_types": Many(BYTE),
        "abstract_device": Table("Device"),
    },
    "SpecEntry": {"axes": Many(Text())},
    "Spec": {"partitions": Many(Table("SpecEntry")), "reduced": Many(Text()), "unreduced": Many(Text())},
    "NamedSharding": {
        "mesh": Table("Mesh"), "spec": Table("Spec"), "memory_kind": Text(), "abstract_mesh_idx": UINT32,
    },
    "Aval": {"kind": BYTE, "shape": Many(Text()), "dtype": BYTE, "memory_space": BYTE},
    "Sharding": {"kind": BYTE, "hlo_sharding_proto": Bytes(), "named_sharding": Table("NamedSharding")},
    "Effect": {"type_name": Text()},
    "Check": {"kind": BYTE, "custom_call_target": Text()},
    "Exported": {
        "serialization_version": UINT16, "function_name": Text(), "in_tree": Table("Tree"),
        "in_avals": Many(Table("Aval")), "out_tree": Table("Tree"), "out_avals": Many(Table("Aval")),
        "nr_devices_short": Number("h"), "in_shardings": Many(Table("Sharding")),
        "out_shardings": Many(Table("Sharding")), "platforms": Many(Text()), "ordered_effects": Many(Table("Effect")),
        "unordered_effects": Many(Table("Effect")), "disabled_checks": Many(Table("Check")),
        "mlir_module_serialized": Bytes(), "calling_convention_version": UINT16, "module_kept_var_idx": Many(UINT16),
        "uses_global_constants": FLAG, "vjp": Table("Exported"), "nr_devices": UINT32,
        "unique_avals": Many(Table("Aval")), "unique_abstract_meshes": Many(Table("Mesh")),
        "unique_named_shardings": Many(Table("NamedSharding")), "in_avals_idxs": Many(UINT32),
        "out_avals_idxs": Many(UINT32), "in_shardings_idxs": Many(UINT32), "out_shardings_idxs": Many(UINT32),
        "jax_version": Text(),
    },
}

SERIALIZATION_VERSION = 12
"""The version of these tables that is written; later ones are refused, and so are those before ``OLDEST``."""
OLDEST = 10  # since then types and shardings are written once, by number
UNSAID = 3  # what JAX writes in place of each version from 3 to 11

TREES = (None, type(None), tuple, list, dict)
"""The node of a tree by its kind: a leaf and the containers of Python. The next kind is registered nodes."""
REGISTERED = len(TREES)

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "int4", "uint4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn",
    "key<fry>", "key<rbg>", "key<urbg>",
)
"""The names of dtypes by their numbers."""

MEMORIES = {1: Space.Device, 2: Space.Host, 0: Space.Device, 3: Space.Device}  # 0: not said, 3: any
AXIS_TYPES = {1: AxisType.Auto, 2: AxisType.Explicit, 3: AxisType.Manual}
PLATFORM_CHECK, CUSTOM_CALL_CHECK = 0, 1

FOREIGN_EFFECT = "<class 'jax._src.ffi.FfiEffect'>"
"""The name of the effect of calling foreign functions with side effects."""
