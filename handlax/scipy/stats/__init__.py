"""``handlax.scipy.stats``: densities and distribution functions, and statistics of samples, under JAX's names.

A distribution is a module: ``from handlax.scipy.stats import norm``.
"""

from . import continuous, discrete, samples
from . import dirichlet as dirichlet
from . import multinomial as multinomial
from . import multivariate_normal as multivariate_normal
from .continuous import *
from .discrete import *
from .kernel_density import gaussian_kde as gaussian_kde
from .samples import *

__all__ = ["dirichlet", "gaussian_kde", "multinomial", "multivariate_normal"]
__all__ += continuous.__all__
__all__ += discrete.__all__
__all__ += samples.__all__
