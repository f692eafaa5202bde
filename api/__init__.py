"""handlax: a functional-effects interpreter for array programs.

Operations are what a program performs; handlers say what they mean: evaluate, batch, differentiate, record, compile.
"""

from __future__ import annotations

from . import ad_checkpoint as ad_checkpoint
from . import checkpoint_policies as checkpoint_policies
from . import custom_batching as custom_batching
from . import custom_derivatives as custom_derivatives
from . import debug as debug
from . import dtypes as dtypes
from . import errors as errors
from . import experimental as experimental
from . import lax as lax
from . import library as library
from . import nn as nn
from . import numpy as numpy
from . import probability as probability
from . import random as random
from . import tree as tree
from . import tree_util as tree_util
from .effects import columns as columns
from .effects import infix as _infix  # attaches the operators
from .effects import modes as _modes  # what the ways of running mean
from .effects.arrays import Array as Array
from .effects.arrays import install_backend
from .effects.arrays import perform as perform
from .effects.caches import cache_info as cache_info
from .effects.caches import clear_caches as clear_caches
from .effects.callbacks import IoCallback as IoCallback
from .effects.callbacks import PureCallback as PureCallback
from .effects.callbacks import pure_callback as pure_callback
from .effects.config import config as config
from .effects.config import configure as configure
from .effects.config import default_matmul_precision as default_matmul_precision
from .effects.control import Bodies, install_bodies
from .effects.frozen import Frozen as Frozen
from .effects.operations import Operation as Operation
from .effects.operations import effect as effect
from .effects.operations import explain_rules as explain_rules
from .effects.operations import is_pure as is_pure
from .effects.operations import operation as operation
from .effects.operations import rules as rules
from .effects.parsing import parse_program as parse_program
from .effects.programs import Program as Program
from .effects.programs import install_page
from .effects.rematerialise import checkpoint_name as checkpoint_name
from .effects.stack import BASE
from .interpreters import evaluate
from .interpreters.batch import batch_program as batch_program
from .interpreters.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from .interpreters.custom_jvp import custom_jvp as custom_jvp
from .interpreters.custom_vjp import custom_gradient as custom_gradient
from .interpreters.custom_vjp import custom_vjp as custom_vjp
from .interpreters.derivatives import grad as grad
from .interpreters.derivatives import hessian as hessian
from .interpreters.derivatives import jacfwd as jacfwd
from .interpreters.derivatives import jacobian as jacobian
from .interpreters.derivatives import jacrev as jacrev
from .interpreters.derivatives import jvp as jvp
from .interpreters.derivatives import linear_transpose as linear_transpose
from .interpreters.derivatives import linearize as linearize
from .interpreters.derivatives import value_and_grad as value_and_grad
from .interpreters.derivatives import vjp as vjp
from .interpreters.draw import Drawing as Drawing
from .interpreters.draw import draw as draw
from .interpreters.draw import page_of
from .interpreters.handle import handle as handle
from .interpreters.handle import handlers as handlers
from .interpreters.handler import Handler as Handler
from .interpreters.handler import ctl as ctl
from .interpreters.handler import final as final
from .interpreters.handler import handler as handler
from .interpreters.jvp import jvp_program as jvp_program
from .interpreters.mapping import vmap as vmap
from .interpreters.movements import When as When
from .interpreters.movements import append as append
from .interpreters.movements import carry as carry
from .interpreters.movements import merge as merge
from .interpreters.movements import split as split
from .interpreters.movements import tally as tally
from .interpreters.partial_eval import partial_eval_program as partial_eval_program
from .interpreters.record import record
from .interpreters.simplify import common_subexpressions as common_subexpressions
from .interpreters.simplify import dead_code_elimination as dead_code_elimination
from .interpreters.staging import closure_convert as closure_convert
from .interpreters.staging import effects_of as effects_of
from .interpreters.staging import make_program as make_program
from .interpreters.staging import named_call as named_call
from .interpreters.staging import named_scope as named_scope
from .interpreters.step import Stepper as Stepper
from .interpreters.step import step as step
from .interpreters.transpose import transpose_program as transpose_program
from .interpreters.typecheck import check_program as check_program
from .interpreters.typecheck import typecheck as typecheck
from .library import ask as ask
from .library import call_and_reap as call_and_reap
from .library import check as check
from .library import check_bounds as check_bounds
from .library import check_finite as check_finite
from .library import checkify as checkify
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
from .lowering import eager
from .lowering.backend import XlaBackend
from .lowering.callbacks import effects_barrier as effects_barrier
from .lowering.devices import block_until_ready as block_until_ready
from .lowering.devices import checking_leaks as checking_leaks
from .lowering.devices import copy_to_host_async as copy_to_host_async
from .lowering.devices import debug_infs as debug_infs
from .lowering.devices import debug_nans as debug_nans
from .lowering.devices import default_backend as default_backend
from .lowering.devices import default_device as default_device
from .lowering.devices import device_count as device_count
from .lowering.devices import device_get as device_get
from .lowering.devices import device_put as device_put
from .lowering.devices import devices as devices
from .lowering.devices import disable_jit as disable_jit
from .lowering.devices import local_device_count as local_device_count
from .lowering.devices import local_devices as local_devices
from .lowering.devices import process_count as process_count
from .lowering.devices import process_index as process_index
from .lowering.explain import explain as explain
from .lowering.jit import jit as jit
from .lowering.rematerialise import checkpoint as checkpoint
from .lowering.stages import ShapeDtypeStruct as ShapeDtypeStruct
from .lowering.stages import eval_shape as eval_shape

make_jaxpr = make_program
remat = checkpoint

# what effects leave to others, the base interpretation, the array backend and programs of bodies, is installed here
BASE.answer = evaluate.answer
install_backend(XlaBackend(), numpy)
install_bodies(Bodies(record, jvp_program, batch_program))
install_page(page_of)
eager.install()

__version__ = "0.1.0"
