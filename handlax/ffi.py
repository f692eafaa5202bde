"""``handlax.ffi``: functions of other languages as operations, under the names of ``jax.ffi``."""

from .effects.control.ffi_call import FfiCall as FfiCall
from .effects.control.ffi_call import FfiEffect as FfiEffect
from .effects.control.ffi_call import build_ffi_lowering_function as build_ffi_lowering_function
from .effects.control.ffi_call import ffi_call as ffi_call
from .effects.control.ffi_call import ffi_lowering as ffi_lowering
from .lowering.clients.foreign_targets import include_dir as include_dir
from .lowering.clients.foreign_targets import pycapsule as pycapsule
from .lowering.clients.foreign_targets import register_ffi_target as register_ffi_target
from .lowering.clients.foreign_targets import (
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
)
from .lowering.clients.foreign_targets import register_ffi_type as register_ffi_type
