"""``handlax.experimental.mesh_utils``: grids of devices for meshes, under JAX's names."""

from ..sharding import device_grids as _device_grids

create_device_mesh = _device_grids.create_device_mesh
create_hybrid_device_mesh = _device_grids.create_hybrid_device_mesh
