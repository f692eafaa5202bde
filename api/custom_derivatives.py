"""handlax.custom_derivatives: functions whose derivatives the user writes."""

from .interpreters.custom_jvp import custom_jvp as custom_jvp
from .interpreters.custom_rules import CustomVJPPrimal as CustomVJPPrimal
from .interpreters.custom_rules import SymbolicZero as SymbolicZero
from .interpreters.custom_rules import zero_from_primal as zero_from_primal
from .interpreters.custom_vjp import custom_gradient as custom_gradient
from .interpreters.custom_vjp import custom_vjp as custom_vjp
from .interpreters.custom_vjp import linear_call as linear_call
from .interpreters.staging import closure_convert as closure_convert
