"""``handlax.probability``: programs with random choices, and handlers that draw, observe, record or enumerate them.

    def model():
        x = sample("x", Normal(0.0, 1.0))
        observe("y", Normal(x, 0.5), 0.3)
        return x

    seed(model, key)()                     a draw
    seed(trace(model), key)()              all draws and observations by name, and the result
    log_density(model, {"x": 0.2})()       the logarithm of their joint density
    enumerate_values(model)()              all combinations of values, if they are finitely many

Sample sites may be inside ``scan``, ``cond``, ``jit`` and ``vmap``: each iteration and each lane has a value of its
own.

Source: Bingham et al., Pyro (2019); Phan, Pradhan & Jankowiak, Composable effects for flexible and accelerated
probabilistic programming in NumPyro (2019); Gordon, Henzinger, Nori & Rajamani, Probabilistic programming (2014).
"""

from .changes import block as block
from .changes import mask as mask
from .changes import scale as scale
from .changes import seed as seed
from .distribution import Distribution as Distribution
from .distribution import Support as Support
from .enumeration import Worlds as Worlds
from .enumeration import enumerate_values as enumerate_values
from .multivariate import Dirichlet as Dirichlet
from .multivariate import MultivariateNormal as MultivariateNormal
from .plates import plate as plate
from .sites import Sample as Sample
from .sites import factor as factor
from .sites import observe as observe
from .sites import sample as sample
from .traces import SampleSite as SampleSite
from .traces import log_density as log_density
from .traces import trace as trace
from .univariate import Bernoulli as Bernoulli
from .univariate import Beta as Beta
from .univariate import Categorical as Categorical
from .univariate import Factor as Factor
from .univariate import Gamma as Gamma
from .univariate import Normal as Normal
from .univariate import Poisson as Poisson
from .univariate import Uniform as Uniform
from .values import condition as condition
from .values import do as do
from .values import replay as replay
from .values import substitute as substitute
