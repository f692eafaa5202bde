"""``handlax.export``: jitted functions as portable artifacts, in JAX's format."""

from .effects.types.symbolic_shapes import SymbolicScope as SymbolicScope
from .effects.types.symbolic_shapes import is_symbolic_dim as is_symbolic_dim
from .effects.types.symbolic_shapes import symbolic_shape as symbolic_shape
from .lowering.export.artifact_reader import CALLING_CONVENTION as _LATEST
from .lowering.export.artifact_reader import OLDEST_CALLING_CONVENTION as _OLDEST
from .lowering.export.artifact_reader import deserialize as deserialize
from .lowering.export.export import default_export_platform as default_export_platform
from .lowering.export.export import export as export
from .lowering.export.exported import DisabledSafetyCheck as DisabledSafetyCheck
from .lowering.export.exported import Exported as Exported
from .lowering.export.symbolic_arguments import symbolic_args_specs as symbolic_args_specs
from .lowering.export.tree_serialization import register_namedtuple_serialization as register_namedtuple_serialization
from .lowering.export.tree_serialization import register_pytree_node_serialization as register_pytree_node_serialization

minimum_supported_calling_convention_version: int = _OLDEST
maximum_supported_calling_convention_version: int = _LATEST
