"""Probabilistic programs with sites in straight code, loops, branches and plates, and their densities by hand."""

from __future__ import annotations

import numpy as np
from scipy import stats

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import probability as hp

XS = hnp.array([0.5, -1.0, 2.0])


def straight():
    a = hp.sample("a", hp.Normal(0.0, 1.0))
    b = hp.sample("b", hp.Normal(a, 2.0), shape=(2,))
    hp.observe("y", hp.Normal(b.sum(), 0.5), 0.3)
    return a + b.sum()


def straight_density(v):
    return (
        stats.norm.logpdf(v["a"]) + stats.norm.logpdf(v["b"], v["a"], 2).sum()
        + stats.norm.logpdf(0.3, v["b"].sum(), 0.5)
    )


def chain(xs=XS):
    def step(z, x):
        z = hp.sample("z", hp.Normal(0.5 * z, 1.0))
        hp.observe("y", hp.Normal(z, 0.3), x)
        return z, z

    return lax.scan(step, hp.sample("start", hp.Normal()), xs)[1]


def chain_density(v):
    before = np.concatenate([[v["start"]], v["z"][:-1]])
    return (
        stats.norm.logpdf(v["start"]) + stats.norm.logpdf(v["z"], 0.5 * before, 1).sum()
        + stats.norm.logpdf(np.asarray(XS), v["z"], 0.3).sum()
    )


def forked():
    a = hp.sample("a", hp.Normal())

    def up():
        return hp.sample("b", hp.Normal(3.0, 1.0)) + hp.sample("up", hp.Normal(0.0, 1.0))

    return lax.cond(a > 0, up, lambda: hp.sample("b", hp.Normal(-3.0, 2.0)))


def forked_density(v):
    base = stats.norm.logpdf(v["a"])
    if v["a"] > 0:
        return base + stats.norm.logpdf(v["b"], 3, 1) + stats.norm.logpdf(v["up"])
    return base + stats.norm.logpdf(v["b"], -3, 2)


def plated():
    a = hp.sample("a", hp.Normal())

    @hp.plate("rows")
    def row(x):
        slope = hp.sample("slope", hp.Normal(a, 1.0))
        hp.observe("y", hp.Normal(slope * x, 0.1), 1.0)
        return slope

    return row(XS)


def plated_density(v):
    return (
        stats.norm.logpdf(v["a"]) + stats.norm.logpdf(v["slope"], v["a"], 1).sum()
        + stats.norm.logpdf(1.0, v["slope"] * np.asarray(XS), 0.1).sum()
    )


def deep():
    """A plate of chains with a branch in each step."""

    def step(z, x):
        z = lax.cond(x > 0, lambda: hp.sample("z", hp.Normal(z, 1.0)), lambda: hp.sample("z", hp.Normal(-z, 2.0)))
        return z, z

    return hp.plate("chains", 2)(lambda: hx.jit(lambda: lax.scan(step, 0.0, XS)[1])())()


def deep_density(v):
    total = 0.0
    for row in v["z"]:
        z = 0.0
        for x, new in zip(np.asarray(XS), row):
            total += stats.norm.logpdf(new, z, 1) if x > 0 else stats.norm.logpdf(new, -z, 2)
            z = new
    return total


MODELS = {
    "straight": (straight, straight_density), "chain": (chain, chain_density), "forked": (forked, forked_density),
    "plated": (plated, plated_density), "deep": (deep, deep_density),
}


def values_of(sites):
    """The latent values of a trace."""
    latent = {}
    for name, site in sites.items():
        site = site.value if isinstance(site, hx.When) else site
        if not site.observed:
            latent[name] = site.value
    return latent
