"""``handlax.extend.core``: primitives, programs and their parts, traces and their state, under JAX's names."""

from ...effects.base.errors import JaxprTypeError as JaxprTypeError
from ...effects.core.operation import EMPTY_ROW
from ...effects.programs.equation_views import DropVar as DropVar
from ...effects.programs.equation_views import Literal as Literal
from ...effects.programs.primitives import Primitive as Primitive
from . import primitives as primitives
from . import trace_state
from .jaxprs import ClosedJaxpr as ClosedJaxpr
from .jaxprs import Effect as Effect
from .jaxprs import Effects as Effects
from .jaxprs import Jaxpr as Jaxpr
from .jaxprs import JaxprEqn as JaxprEqn
from .jaxprs import Var as Var
from .jaxprs import check_jaxpr as check_jaxpr
from .jaxprs import gensym as gensym
from .jaxprs import jaxpr_as_fun as jaxpr_as_fun
from .jaxprs import jaxprs_in_params as jaxprs_in_params
from .jaxprs import new_jaxpr_eqn as new_jaxpr_eqn
from .jaxprs import subjaxprs as subjaxprs
from .primitive_traces import PrimitiveTrace as PrimitiveTrace
from .primitive_traces import TraceTag as TraceTag
from .primitive_traces import find_top_trace as find_top_trace
from .primitive_traces import set_current_trace as set_current_trace
from .primitive_traces import take_current_trace as take_current_trace
from .trace_state import OpaqueTraceState as OpaqueTraceState
from .trace_state import concrete_or_error as concrete_or_error
from .trace_state import get_opaque_trace_state as get_opaque_trace_state
from .trace_state import mapped_aval as mapped_aval
from .trace_state import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from .trace_state import unmapped_aval as unmapped_aval

no_effects = EMPTY_ROW
"""The effect row of a pure program."""
nonempty_axis_env_DO_NOT_USE = trace_state.nonempty_axis_env
unsafe_am_i_under_a_jit_DO_NOT_USE = trace_state.unsafe_am_i_under_a_jit
unsafe_am_i_under_a_vmap_DO_NOT_USE = trace_state.unsafe_am_i_under_a_vmap
unsafe_get_axis_names_DO_NOT_USE = trace_state.unsafe_get_axis_names
