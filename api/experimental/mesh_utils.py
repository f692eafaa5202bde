"""``handlax.experimental.mesh_utils``: grids of devices for meshes, under JAX's names."""

from ..sharding.device_grids import create_device_mesh as create_device_mesh
from ..sharding.device_grids import create_hybrid_device_mesh as create_hybrid_device_mesh
