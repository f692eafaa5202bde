"""Inference of numpyro."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

KEY = jax.random.PRNGKey(0)
X = jnp.linspace(-1, 1, 10)
Y = 2 * X + 0.5


def model(x, y=None):
    slope, offset = numpyro.sample("slope", dist.Normal(0, 2)), numpyro.sample("offset", dist.Normal(0, 2))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(slope * x + offset, scale), obs=y)


def densities():
    values = {"slope": 1.0, "offset": 0.0, "scale": 0.5}
    density, _ = numpyro.infer.util.log_density(model, (X, Y), {}, values)
    return density, handlers.trace(handlers.seed(model, KEY)).get_trace(X)["y"]["value"]


def the_sampler_without_turns():
    sampler = MCMC(NUTS(model), num_warmup=20, num_samples=10, progress_bar=False)
    sampler.run(KEY, X, Y)
    return {name: values.shape for name, values in sampler.get_samples().items()}


def variational_inference():
    guide = AutoNormal(model)
    inference = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    result = inference.run(KEY, 50, X, Y, progress_bar=False)
    return result.losses, result.params


def predictions():
    samples = {"slope": jnp.ones(3), "offset": jnp.zeros(3), "scale": jnp.full(3, 0.1)}
    return Predictive(model, samples)(KEY, X)


def distributions():
    kinds = (dist.Gamma(2.0, 1.0), dist.Beta(2.0, 3.0), dist.StudentT(3.0), dist.Dirichlet(jnp.ones(3)),
             dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)), dist.Poisson(3.0), dist.VonMises(0.0, 1.0))
    return [(kind.sample(KEY), kind.log_prob(kind.sample(KEY))) for kind in kinds]
