"""handlax: a functional-effects interpreter for array programs.

Operations are what a program performs; handlers say what they mean: evaluate, batch, differentiate, record, compile.
"""

import typing as _typing

from . import numpy as _numpy
from .effects.base.caches import cache_info as cache_info
from .effects.base.caches import clear_caches as clear_caches
from .effects.base.config import config as config
from .effects.base.config import configure as configure
from .effects.base.config import default_matmul_precision as default_matmul_precision
from .effects.base.config import default_prng_impl as default_prng_impl
from .effects.base.config import enable_x64 as enable_x64
from .effects.base.config import numpy_dtype_promotion as numpy_dtype_promotion
from .effects.base.config import numpy_rank_promotion as numpy_rank_promotion
from .effects.base.later_layers import LaterLayers as _Later
from .effects.base.lazy_module import late_module as _late_module
from .effects.base.lazy_module import late_names as _late_names
from .effects.base.stack import BASE as _BASE
from .effects.base.stack import site as site
from .effects.base.watching import explain_cache_misses as explain_cache_misses
from .effects.base.watching import log_compiles as log_compiles
from .effects.base.watching import no_tracing as no_tracing
from .effects.control import body_rules as _modes  # what the ways of running mean
from .effects.control import scoped_effects as _scoped  # the family of effects that take functions
from .effects.control.callbacks import IoCallback as IoCallback
from .effects.control.callbacks import PureCallback as PureCallback
from .effects.control.callbacks import pure_callback as pure_callback
from .effects.control.checkpoint import checkpoint_name as checkpoint_name
from .effects.core.array_shards import Shard as Shard
from .effects.core.arrays import Array as Array
from .effects.core.arrays import perform as perform
from .effects.core.columns import RAGGED as _RAGGED
from .effects.core.columns import SPARSE as _SPARSE
from .effects.core.columns import rules as rules
from .effects.core.containers import register_vmappable as register_vmappable
from .effects.core.containers import unregister_vmappable as unregister_vmappable
from .effects.core.jax_contexts import allow_f16_reductions as allow_f16_reductions
from .effects.core.jax_contexts import auto_pcast as auto_pcast
from .effects.core.jax_contexts import debug_key_reuse as debug_key_reuse
from .effects.core.jax_contexts import enable_checks as enable_checks
from .effects.core.jax_contexts import enable_custom_prng as enable_custom_prng
from .effects.core.jax_contexts import jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions
from .effects.core.jax_contexts import legacy_prng_key as legacy_prng_key
from .effects.core.jax_contexts import make_user_context as make_user_context
from .effects.core.jax_contexts import no_execution as no_execution
from .effects.core.jax_contexts import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from .effects.core.jax_contexts import softmax_custom_jvp as softmax_custom_jvp
from .effects.core.jax_contexts import threefry_partitionable as threefry_partitionable
from .effects.core.jax_contexts import transfer_guard as transfer_guard
from .effects.core.jax_contexts import transfer_guard_device_to_device as transfer_guard_device_to_device
from .effects.core.jax_contexts import transfer_guard_device_to_host as transfer_guard_device_to_host
from .effects.core.jax_contexts import transfer_guard_host_to_device as transfer_guard_host_to_device
from .effects.core.operation import LATE_OPERATIONS as _LATE_OPERATIONS
from .effects.core.operation import Operation as Operation
from .effects.core.operation import effect as effect
from .effects.core.operation import is_pure as is_pure
from .effects.core.operation import operation as operation
from .effects.operators import array_operators as _infix  # attaches the operators
from .effects.programs.program import Program as Program
from .effects.trees.frozen_tree import Frozen as Frozen
from .effects.types.array_type import ArrayType as ArrayType
from .effects.types.dtype_families import float0 as float0
from .interpreters.analysis.simplify import common_subexpressions as common_subexpressions
from .interpreters.analysis.simplify import dead_code_elimination as dead_code_elimination
from .interpreters.batching.batch import batch_program as batch_program
from .interpreters.core import evaluate as _evaluate
from .interpreters.core.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from .interpreters.core.record import record as _record
from .interpreters.custom import custom_vmap as _custom_vmap  # its rules
from .interpreters.custom import implicit as _solves  # its rules
from .interpreters.custom.custom_jvp import custom_jvp as custom_jvp
from .interpreters.custom.custom_vjp import custom_gradient as custom_gradient
from .interpreters.custom.custom_vjp import custom_vjp as custom_vjp
from .interpreters.differentiation.jvp import jvp_program as jvp_program
from .interpreters.differentiation.partial_eval import partial_eval_program as partial_eval_program
from .interpreters.differentiation.transpose import transpose_program as transpose_program
from .interpreters.handlers.default_clauses import answer_by_default as _answer_by_default
from .interpreters.handlers.handler import Handler as Handler
from .interpreters.handlers.handler import ctl as ctl
from .interpreters.handlers.handler import final as final
from .interpreters.handlers.handler import handler as handler
from .interpreters.handlers.handler import once as once
from .interpreters.handlers.state_movements import When as When
from .interpreters.handlers.state_movements import append as append
from .interpreters.handlers.state_movements import carry as carry
from .interpreters.handlers.state_movements import merge as merge
from .interpreters.handlers.state_movements import split as split
from .interpreters.handlers.state_movements import tally as tally
from .interpreters.references.reference import Ref as Ref
from .interpreters.references.reference import empty_ref as empty_ref
from .interpreters.references.reference import free_ref as free_ref
from .interpreters.references.reference import freeze as freeze
from .interpreters.references.reference import new_ref as new_ref
from .interpreters.references.reference import typeof as typeof
from .interpreters.transformations.checkpoint import checkpoint as checkpoint
from .interpreters.transformations.derivatives import grad as grad
from .interpreters.transformations.derivatives import hessian as hessian
from .interpreters.transformations.derivatives import jacfwd as jacfwd
from .interpreters.transformations.derivatives import jacobian as jacobian
from .interpreters.transformations.derivatives import jacrev as jacrev
from .interpreters.transformations.derivatives import jvp as jvp
from .interpreters.transformations.derivatives import linear_transpose as linear_transpose
from .interpreters.transformations.derivatives import linearize as linearize
from .interpreters.transformations.derivatives import value_and_grad as value_and_grad
from .interpreters.transformations.derivatives import vjp as vjp
from .interpreters.transformations.make_program import closure_convert as closure_convert
from .interpreters.transformations.make_program import effects_of as effects_of
from .interpreters.transformations.make_program import make_program as make_program
from .interpreters.transformations.named_scopes import named_call as named_call
from .interpreters.transformations.named_scopes import named_scope as named_scope
from .interpreters.transformations.saved_arguments import NotNeeded as NotNeeded
from .interpreters.transformations.saved_arguments import NotSaveable as NotSaveable
from .interpreters.transformations.vmap import vmap as vmap
from .late_operations import LATE_OPERATION_NAMES as _LATE_NAMES
from .lowering.arrays.device_put import device_put as device_put
from .lowering.arrays.device_put import device_put_replicated as device_put_replicated
from .lowering.arrays.device_put import device_put_sharded as device_put_sharded
from .lowering.arrays.imported_arrays import imported as _imported
from .lowering.compile import eager_compilation as _eager
from .lowering.jit.compile_options import CompilerEffortLevel as CompilerEffortLevel
from .lowering.jit.compile_options import Inline as Inline
from .lowering.jit.devices import block_until_ready as block_until_ready
from .lowering.jit.devices import check_tracer_leaks as check_tracer_leaks
from .lowering.jit.devices import checking_leaks as checking_leaks
from .lowering.jit.devices import copy_to_host_async as copy_to_host_async
from .lowering.jit.devices import debug_infs as debug_infs
from .lowering.jit.devices import debug_nans as debug_nans
from .lowering.jit.devices import default_backend as default_backend
from .lowering.jit.devices import default_device as default_device
from .lowering.jit.devices import device_count as device_count
from .lowering.jit.devices import device_get as device_get
from .lowering.jit.devices import devices as devices
from .lowering.jit.devices import disable_jit as disable_jit
from .lowering.jit.devices import local_device_count as local_device_count
from .lowering.jit.devices import local_devices as local_devices
from .lowering.jit.devices import process_count as process_count
from .lowering.jit.devices import process_index as process_index
from .lowering.jit.devices import process_indices as process_indices
from .lowering.jit.jit import jit as jit
from .lowering.xla.array_backend import XlaBackend as _XlaBackend
from .lowering.xla.host_callbacks import effects_barrier as effects_barrier

host_count, host_id, host_ids = process_count, process_index, process_indices
make_jaxpr = make_program
remat = checkpoint

# what earlier layers ask of later ones
_BASE.answer, _BASE.inline = _evaluate.answer, _evaluate.inline
_Later.backend, _Later.imported, _Later.numpy, _Later.devices = _XlaBackend(), _imported, _numpy, devices
_Later.record, _Later.jvp_program, _Later.batch_program = _record, jvp_program, batch_program
_Later.answer_by_default = _answer_by_default
_harvest = lambda: _late_module(f"{__name__}.interpreters.library.effectful.harvest")
_assembled = lambda: _late_module(f"{__name__}.lowering.arrays.assembled_arrays")
_Later.assembled = lambda sharding, x: _assembled().make_array_from_process_local_data(sharding, x)
_Later.own_part = lambda sharding, x: _assembled().own_part(sharding, x)
_Later.log = lambda value, name: _harvest().log(value, name)
_Later.collect_logs = lambda pull: _harvest().collect_logs(pull)
_pages = lambda: _late_module(f"{__name__}.lowering.notebook.pages")
_Later.page = lambda x: _pages().page(x)
_Later.treescope_node = lambda x, path: _pages().treescope_node(x, path)
_RAGGED.load = lambda: [
    _late_module(f"{__name__}.interpreters.ragged.{part}_rules")
    for part in ("indexing", "loop", "mixing", "part", "random", "row")
]
_SPARSE.load = lambda: _late_module(f"{__name__}.experimental.sparse.sparse_rules")
_eager.install()
_LATE_OPERATIONS.update(_LATE_NAMES)

__version__ = "0.2.0"

# Most programs need few of these names, so each is imported when first asked for (PEP 562).
if _typing.TYPE_CHECKING:
    from . import ad as ad
    from . import ad_checkpoint as ad_checkpoint
    from . import api_util as api_util
    from . import checkpoint_policies as checkpoint_policies
    from . import checkpoints as checkpoints
    from . import core as core
    from . import custom_batching as custom_batching
    from . import custom_derivatives as custom_derivatives
    from . import data as data
    from . import debug as debug
    from . import distributed as distributed
    from . import dlpack as dlpack
    from . import dtypes as dtypes
    from . import errors as errors
    from . import example_libraries as example_libraries
    from . import experimental as experimental
    from . import export as export
    from . import extend as extend
    from . import ffi as ffi
    from . import flatten_util as flatten_util
    from . import image as image
    from . import interop as interop
    from . import lax as lax
    from . import library as library
    from . import memory as memory
    from . import monitoring as monitoring
    from . import nn as nn
    from . import numpy as numpy
    from . import operations as operations
    from . import ops as ops
    from . import probability as probability
    from . import profiler as profiler
    from . import random as random
    from . import ref as ref
    from . import scipy as scipy
    from . import sharding as sharding
    from . import stages as stages
    from . import test_util as test_util
    from . import testing as testing
    from . import tree as tree
    from . import tree_util as tree_util
    from . import typing as typing
    from .effects.core import columns as columns
    from .effects.programs.parse_result import parse_program as parse_program
    from .interpreters.analysis.typecheck import check_program as check_program
    from .interpreters.analysis.typecheck import typecheck as typecheck
    from .interpreters.direct.install import direct as direct
    from .interpreters.direct.install import loop as loop
    from .interpreters.direct.steps import Done as Done
    from .interpreters.direct.steps import Step as Step
    from .interpreters.direct.steps import steps as steps
    from .interpreters.handlers.handle import compose as compose
    from .interpreters.handlers.handle import handle as handle
    from .interpreters.handlers.handle import handlers as handlers
    from .interpreters.inspection.draw import Drawing as Drawing
    from .interpreters.inspection.draw import draw as draw
    from .interpreters.inspection.explain_handlers import explain_handlers as explain_handlers
    from .interpreters.inspection.rule_overview import explain_rules as explain_rules
    from .interpreters.inspection.stepper import Stepper as Stepper
    from .interpreters.inspection.stepper import step as step
    from .interpreters.ragged.ragged_array import Ragged as Ragged
    from .interpreters.ragged.ragged_array import ragged_axis as ragged_axis
    from .interpreters.transformations.shard_map import shard_map as shard_map
    from .interpreters.transformations.smap import smap as smap
    from .interpreters.transformations.vtile import vtile as vtile
    from .library import ask as ask
    from .library import call_and_reap as call_and_reap
    from .library import check as check
    from .library import check_bounds as check_bounds
    from .library import check_finite as check_finite
    from .library import checkify as checkify
    from .library import costs as costs
    from .library import get as get
    from .library import harvest as harvest
    from .library import local as local
    from .library import modify as modify
    from .library import nest as nest
    from .library import plant as plant
    from .library import put as put
    from .library import raise_ as raise_
    from .library import reap as reap
    from .library import sow as sow
    from .library import tell as tell
    from .lowering.arrays.assembled_arrays import make_array_from_callback as make_array_from_callback
    from .lowering.arrays.assembled_arrays import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from .lowering.arrays.assembled_arrays import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from .lowering.arrays.live_arrays import live_arrays as live_arrays
    from .lowering.arrays.prefetch import prefetch as prefetch
    from .lowering.clients.runtime_classes import Device as Device
    from .lowering.clients.runtime_classes import array_garbage_collection_guard as array_garbage_collection_guard
    from .lowering.inspection.environment_info import print_environment_info as print_environment_info
    from .lowering.inspection.profile import profile as profile
    from .lowering.jit.ahead_of_time import ShapeDtypeStruct as ShapeDtypeStruct
    from .lowering.jit.ahead_of_time import compile_all as compile_all
    from .lowering.jit.ahead_of_time import eval_shape as eval_shape
    from .lowering.jit.explain_retrace import explain as explain
    from .lowering.jit.two_passes import fwd_and_bwd as fwd_and_bwd
    from .lowering.maps.pmap import pmap as pmap
    from .lowering.maps.xmap import xmap as xmap
    from .sharding import NamedSharding as NamedSharding
    from .sharding import P as P
    from .sharding import get_abstract_mesh as get_abstract_mesh
    from .sharding import get_mesh as get_mesh
    from .sharding import make_mesh as make_mesh
    from .sharding import reshard as reshard
    from .sharding import set_mesh as set_mesh
    from .sharding import use_abstract_mesh as use_abstract_mesh
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
