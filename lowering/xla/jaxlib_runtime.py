"""XLA's runtime in one namespace, loaded at first use (``lazy.runtime``).

The files named here contain every call to jaxlib. They take and return NumPy dtypes, shapes, program texts and
buffers; they do not know the package's arrays and programs.
"""

from ..clients.jaxlib_modules import HAS_MUTUAL_TLS, JAXLIB_VERSION, RuntimeFailure
from ..clients.platforms import backend, is_used, register_lapack
from ..clients.processes import Membership, connect, connection, disconnect, failure_of_others
from .buffer_types import aval, laid_out, layout_of, named_sharding, sharding, sharding_over
from .buffers import (
    all_until_ready,
    assemble,
    block_until_ready,
    cuda_array_interface,
    delete,
    device_of,
    devices_of,
    duplicate,
    in_words_of,
    is_committed,
    is_deleted,
    is_device,
    is_only_device,
    is_ready,
    lies_at,
    parts_of,
    place_of,
    places_of,
    pointer,
    put,
    put_at,
    putter,
    size_on_devices,
    spread,
    spread_parts,
    to_numpy,
)
from .dlpack import FLAGS_DLPACK, dlpack_device, from_dlpack, to_dlpack
from .executables import (
    KEEPS_BARRIERS,
    Executable,
    cache_key_facts,
    collect_garbage,
    compile,
    deserialize,
    quick_options,
    unoptimized_cost,
    unoptimized_hlo,
)
from .transfers import copied_to, copy_to, copy_to_device, mover
