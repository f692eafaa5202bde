"""``handlax.custom_derivatives``: functions with derivative rules that the user writes."""

from .effects.base.lazy_module import primitives_of as _primitives_of
from .interpreters.custom.custom_jvp import custom_jvp as custom_jvp
from .interpreters.custom.custom_vjp import custom_gradient as custom_gradient
from .interpreters.custom.custom_vjp import custom_vjp as custom_vjp
from .interpreters.custom.custom_vjp import linear_call as linear_call
from .interpreters.custom.derivative_rules import CustomVJPPrimal as CustomVJPPrimal
from .interpreters.custom.derivative_rules import SymbolicZero as SymbolicZero
from .interpreters.custom.derivative_rules import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from .interpreters.custom.derivative_rules import zero_from_primal as zero_from_primal
from .interpreters.transformations.make_program import closure_convert as closure_convert

__getattr__ = _primitives_of(__name__)
