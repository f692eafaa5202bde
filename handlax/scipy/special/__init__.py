"""``handlax.scipy.special``: special functions of arrays, under JAX's names.

Those that are in ``lax``, too, are operations; the others are formulas, each compiled as a whole, with analytic
derivatives. Errors in units in the last place are in the tests.
"""

from . import elementary, error_functions, exponential_integrals, gamma_functions, hypergeometric, oscillating
from .elementary import *
from .error_functions import *
from .exponential_integrals import *
from .gamma_functions import *
from .hypergeometric import *
from .oscillating import *

__all__ = [
    *elementary.__all__, *error_functions.__all__, *exponential_integrals.__all__, *gamma_functions.__all__,
    *hypergeometric.__all__, *oscillating.__all__,
]
