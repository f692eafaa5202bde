"""``handlax.probability``: programs with random choices, and handlers that draw, observe, record or enumerate them.

    def model():
        x = sample("x", Normal(0.0, 1.0))
        observe("y", Normal(x, 0.5), 0.3)
        return x

    seed(model, key)()                     a draw
    seed(trace(model), key)()              all draws and observations by name, and the result
    log_density(model, {"x": 0.2})()       the logarithm of their joint density
    enumerate_values(model)()              all combinations of values, if they are finitely many
    log_evidence(model)()                  the log-probability of the observations, loops in the order of the chain

Sample sites may be inside ``scan``, ``cond``, ``jit`` and ``vmap``: each iteration and each lane has a value of its
own.

Source: Bingham et al., Pyro (2019); Phan, Pradhan & Jankowiak, Composable effects for flexible and accelerated
probabilistic programming in NumPyro (2019); Gordon, Henzinger, Nori & Rajamani, Probabilistic programming (2014).
"""

from .changes import *
from .distribution import *
from .enumeration import *
from .multivariate import *
from .plates import *
from .sites import *
from .traces import *
from .univariate import *
from .values import *
