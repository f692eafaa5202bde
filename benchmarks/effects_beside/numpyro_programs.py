"""The programs in numpyro: sites and handlers, and loops by its ``scan``.

A handler of one's own is a ``Messenger``, which sees a message for each site. What a loop should tell is a site
``deterministic`` in numpyro's ``scan``, whose values are stacked.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import random
from numpyro.contrib.control_flow import scan
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.handlers import seed, substitute, trace
from numpyro.infer.util import log_density
from numpyro.primitives import Messenger

VERSION = f"{numpyro.__version__} on JAX {jax.__version__}"
NOTES = {
    "counter": "by the size of the stacked value of a site",
    "enumeration": "as one array; by funsor",
    "two_handlers": "the function is compiled for the first one",
}
WITHOUT = {
    "early_exit": "no clause ends a program",
    "array_primitive": "handlers see sites, not primitives",
    "generator": "no clause takes the rest of a program",
    "scheduler": "no clause takes the rest of a program",
}


class Counter(Messenger):
    """Counts the values of a site: a loop has one message, with the values of all iterations."""

    def __init__(self, fn):
        super().__init__(fn)
        self.count = 0

    def postprocess_message(self, msg):
        if msg.get("name") == "tick":
            self.count += jnp.size(msg["value"])


def counter():
    def loop(x):
        def step(x, _):
            numpyro.deterministic("tick", x)
            return 2 * x, None

        return scan(step, x, None, length=5)[0]

    counting = Counter(loop)
    with counting:
        y = jax.jit(loop)(1.0)
    return [counting.count, float(y)]


def enumeration():
    def walk():
        flips = [numpyro.sample(f"flip{i}", dist.Bernoulli(0.5), infer={"enumerate": "parallel"}) for i in range(3)]
        return sum([jnp.where(flip == 1, 2.0, -1.0) for flip in flips]) ** 2

    with enum(first_available_dim=-1):
        return sorted(jnp.ravel(config_enumerate(walk)()).tolist())


def walk(x):
    def step(x, _):
        x = numpyro.sample("x", dist.Normal(x, 1.0))
        return x, x

    return scan(step, x, None, length=3)[1]


def draws():
    steps = jnp.diff(seed(jax.jit(lambda x: walk(x)), random.key(0))(0.0), prepend=0.0)
    return len({round(step, 4) for step in steps.tolist()})


def density():
    return round(float(log_density(jax.jit(lambda x: walk(x)), (0.0,), {}, {"x": jnp.array([1.0, 1.0, 2.0])})[0]), 3)


def density_inside():
    scored = jax.jit(lambda xs: log_density(walk, (0.0,), {}, {"x": xs})[0])
    return round(float(scored(jnp.array([1.0, 1.0, 2.0]))), 3)


def logged_in_grad():
    def loss(x):
        y = numpyro.deterministic("y", x * x)
        return y * x

    tracing = trace(loss)
    with tracing as sites:
        slope = jax.jit(jax.grad(loss))(2.0)
    return [float(sites["y"]["value"]), float(slope)]


def two_handlers():
    f = jax.jit(lambda x: x * numpyro.sample("setting", dist.Normal(0.0, 1.0)))
    return [float(substitute(f, {"setting": by})(1.0)) for by in (2.0, 3.0)]
