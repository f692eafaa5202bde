"""``handlax.extend.core``: primitives, and the state of tracing, under JAX's names."""

from ...effects.programs.primitives import Primitive as Primitive
from . import primitives as primitives
from .trace_state import OpaqueTraceState as OpaqueTraceState
from .trace_state import get_opaque_trace_state as get_opaque_trace_state
from .trace_state import mapped_aval as mapped_aval
from .trace_state import unmapped_aval as unmapped_aval
