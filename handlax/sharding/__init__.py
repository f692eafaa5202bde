"""``handlax.sharding``: meshes of devices, and where the parts of an array are; under JAX's names."""

from ..effects.sharding.mesh import AbstractDevice as AbstractDevice
from ..effects.sharding.mesh import AbstractMesh as AbstractMesh
from ..effects.sharding.mesh import AxisType as AxisType
from ..effects.sharding.mesh import Mesh as Mesh
from ..effects.sharding.mesh_scope import get_abstract_mesh as get_abstract_mesh
from ..effects.sharding.mesh_scope import get_mesh as get_mesh
from ..effects.sharding.mesh_scope import set_mesh as set_mesh
from ..effects.sharding.mesh_scope import use_abstract_mesh as use_abstract_mesh
from ..effects.sharding.named_sharding import NamedSharding as NamedSharding
from ..effects.sharding.named_sharding import Sharding as Sharding
from ..effects.sharding.named_sharding import SingleDeviceSharding as SingleDeviceSharding
from ..effects.sharding.named_sharding import make_single_device_sharding as make_single_device_sharding
from ..effects.sharding.partition_spec import P as P
from ..effects.sharding.partition_spec import PartitionSpec as PartitionSpec
from ..effects.sharding.sharding_rules import ShardingRule as ShardingRule
from ..effects.sharding.sharding_rules import alike as alike
from ..effects.types.manual_axis_type import ManualAxisType as ManualAxisType
from ..lowering.arrays.sharding_constraints import reshard as reshard
from .axis_modes import auto_axes as auto_axes
from .axis_modes import explicit_axes as explicit_axes
from .device_grids import make_mesh as make_mesh
