"""``handlax.scipy.stats``: densities and distribution functions, and statistics of samples, under JAX's names.

A distribution is a module: ``from handlax.scipy.stats import norm``.
"""

from . import dirichlet as dirichlet
from . import distributions, samples
from . import multinomial as multinomial
from . import multivariate_normal as multivariate_normal
from .distributions import *
from .kernel_density import gaussian_kde as gaussian_kde
from .samples import *

__all__ = ["dirichlet", "gaussian_kde", "multinomial", "multivariate_normal"]
__all__ += distributions.__all__
__all__ += samples.__all__
