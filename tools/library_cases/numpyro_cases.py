"""Inference of numpyro."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.contrib.control_flow
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


def chains_of_the_sampler():
    sampler = MCMC(NUTS(model), num_warmup=50, num_samples=20, num_chains=2, chain_method="vectorized",
                   progress_bar=False)
    sampler.run(KEY, X, Y, extra_fields=("diverging",))
    values = sampler.get_samples(group_by_chain=True)
    return {name: x.shape for name, x in values.items()}, jnp.abs(values["slope"].mean() - 2) < 0.3


def hierarchical_models():
    def grouped(groups, y=None):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("groups", 2):
            offset = numpyro.sample("offset", dist.Normal(mean, 0.5))
        with numpyro.plate("data", len(groups)):
            return numpyro.sample("y", dist.StudentT(4.0, offset[groups], 0.3), obs=y)

    groups = jnp.array([0, 1, 0])
    traced = handlers.trace(handlers.seed(handlers.substitute(grouped, {"mean": 0.7}), KEY)).get_trace(groups)
    reparametrised = handlers.reparam(grouped, config={"offset": numpyro.infer.reparam.LocScaleReparam(0.0)})
    centred = handlers.trace(handlers.seed(reparametrised, KEY)).get_trace(groups)
    return [(name, site["value"]) for t in (traced, centred) for name, site in t.items() if site["type"] == "sample"]


def where_values_come_from():
    found = numpyro.infer.inspect.get_dependencies(model, (X, Y))
    return sorted(found["prior_dependencies"]["y"]), sorted(found["posterior_dependencies"])


def recurrences():
    def walk(steps):
        step = lambda x, _: (lambda y: (y, y))(numpyro.sample("x", dist.Normal(0.9 * x, 0.1)))
        return numpyro.contrib.control_flow.scan(step, 1.0, None, length=steps)[1]

    return handlers.seed(walk, KEY)(5), handlers.trace(handlers.seed(walk, KEY)).get_trace(3)["x"]["value"]


def samplers():
    kinds = (numpyro.infer.HMC(model, num_steps=4), numpyro.infer.BarkerMH(model), numpyro.infer.SA(model))
    shapes = []
    for kind in kinds:
        sampler = MCMC(kind, num_warmup=10, num_samples=5, progress_bar=False)
        sampler.run(KEY, X, Y)
        shapes.append({name: x.shape for name, x in sampler.get_samples().items()})
    return shapes
