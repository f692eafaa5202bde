"""handlax: a functional-effects interpreter for array programs.

Operations are what a program performs; handlers say what they mean: evaluate, batch, differentiate, record, compile.
"""

import sys as _sys
import typing as _typing
from importlib import import_module as _import_module

from . import dtypes as dtypes
from . import errors as errors
from . import numpy as numpy
from . import tree as tree
from . import tree_util as tree_util
from .effects import columns as columns
from .effects import infix as _infix  # attaches the operators
from .effects import modes as _modes  # what the ways of running mean
from .effects.arrays import Array as Array
from .effects.arrays import install_backend as _install_backend
from .effects.arrays import perform as perform
from .effects.caches import cache_info as cache_info
from .effects.caches import clear_caches as clear_caches
from .effects.callbacks import IoCallback as IoCallback
from .effects.callbacks import PureCallback as PureCallback
from .effects.callbacks import pure_callback as pure_callback
from .effects.config import config as config
from .effects.config import configure as configure
from .effects.config import default_matmul_precision as default_matmul_precision
from .effects.control import Bodies as _Bodies
from .effects.control import install_bodies as _install_bodies
from .effects.frozen import Frozen as Frozen
from .effects.naming import declare as _declare
from .effects.operations import Operation as Operation
from .effects.operations import effect as effect
from .effects.operations import explain_rules as explain_rules
from .effects.operations import is_pure as is_pure
from .effects.operations import operation as operation
from .effects.operations import rules as rules
from .effects.programs import Program as Program
from .effects.programs import install_page as _install_page
from .effects.rematerialise import checkpoint_name as checkpoint_name
from .effects.stack import BASE as _BASE
from .interpreters import custom_vmap as _custom_vmap  # its rules
from .interpreters import evaluate as _evaluate
from .interpreters import solves as _solves  # its rules
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
from .interpreters.record import record as _record
from .interpreters.simplify import common_subexpressions as common_subexpressions
from .interpreters.simplify import dead_code_elimination as dead_code_elimination
from .interpreters.staging import closure_convert as closure_convert
from .interpreters.staging import effects_of as effects_of
from .interpreters.staging import make_program as make_program
from .interpreters.staging import named_call as named_call
from .interpreters.staging import named_scope as named_scope
from .interpreters.transpose import transpose_program as transpose_program
from .lowering import eager as _eager
from .lowering.backend import XlaBackend as _XlaBackend
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

if _typing.TYPE_CHECKING:
    from . import ad_checkpoint as ad_checkpoint
    from . import checkpoint_policies as checkpoint_policies
    from . import custom_batching as custom_batching
    from . import custom_derivatives as custom_derivatives
    from . import debug as debug
    from . import experimental as experimental
    from . import lax as lax
    from . import library as library
    from . import nn as nn
    from . import probability as probability
    from . import random as random
    from .effects.parsing import parse_program as parse_program
    from .interpreters.draw import Drawing as Drawing
    from .interpreters.draw import draw as draw
    from .interpreters.step import Stepper as Stepper
    from .interpreters.step import step as step
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

# Most programs need few of these names, so each is loaded when first asked for (PEP 562); nowhere else in the package:
# imports stand at the top of a file. To load them installs nothing that a program would miss before.
_LATER = {
    name: module
    for module, names in {
        ".": "ad_checkpoint checkpoint_policies custom_batching custom_derivatives debug experimental lax library nn "
        "probability random",
        ".effects.parsing": "parse_program",
        ".interpreters.draw": "Drawing draw",
        ".interpreters.step": "Stepper step",
        ".interpreters.typecheck": "check_program typecheck",
        ".library": "ask call_and_reap check check_bounds check_finite checkify get harvest local modify nest plant "
        "put raise_ reap sow tell",
    }.items()
    for name in names.split()
}
# Operations of modules that are loaded later: their names in the texts of programs are theirs from the start.
_DECLARED = {
    "effects.debugging": "DebugCallback DebugPrint",
    "effects.collectives": "Psum Pmax Pmin Ppermute AllGather AxisIndex",
    "effects.folding": "Reduce",
    "effects.threefry": "Threefry2x32 RandomBits RandomSplit RandomFoldIn RandomSeed RandomWrap RandomUnwrap",
    "interpreters.library.failures": "Check",
    "interpreters.library.harvest": "Sow",
    "interpreters.library.progress": "ProgressTick ProgressReport",
    "interpreters.library.readers": "Ask",
    "interpreters.library.states": "Get Put Modify",
    "interpreters.library.stopping": "Stop",
    "interpreters.library.streams": "FreshKey",
    "interpreters.library.writers": "Tell",
    "probability.plates": "Plate",
    "probability.sites": "Sample",
}


def _later(name: str) -> _typing.Any:
    """What the name stands for; kept from then on."""
    module = _LATER[name]
    found = _import_module(module + name if module == "." else module, __name__)
    found = globals()[name] = found if module == "." else getattr(found, name)
    return found


if not _typing.TYPE_CHECKING:  # where types are checked, the block above says all names that there are

    def __getattr__(name: str) -> _typing.Any:
        if name in _LATER:
            return _later(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


make_jaxpr = make_program
remat = checkpoint

# what effects leave to others, the base interpretation, the array backend and programs of bodies, is installed here
_BASE.answer, _BASE.take = _evaluate.answer, _evaluate.take
_install_backend(_XlaBackend(), numpy)
_install_bodies(_Bodies(_record, jvp_program, batch_program))
_install_page(lambda program: _import_module(".interpreters.draw", __name__).page_of(program))
_eager.install()
for _module, _names in _DECLARED.items():
    _declare(f"{__name__}.{_module}", _names.split())

__version__ = "0.1.0"
__all__ = [
    _name for _name in (*globals(), *_LATER) if _name[0] != "_" and _name not in ("effects", "interpreters", "lowering")
]
