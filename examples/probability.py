"""A small probabilistic program, and three ways to learn from it: sampling, variational inference, exact answers.

    python examples/probability.py

Eight schools (Rubin 1981): how much does coaching help, in each school and in general? The model is a Python function
with a plate; prior draws, log-density, Hamiltonian Monte Carlo in one ``scan`` and a variational approximation all come
from that one function, by handlers. Where the answer is known in closed form, it is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax import probability as hp
from handlax.random import keyless

EFFECTS = hnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = hnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SPREAD = 10.0  # standard deviation between schools, taken as known: the posterior is then normal, in closed form

Values = dict[str, Any]


def schools() -> Any:
    """The effect of coaching at each school, given the effect measured there."""
    mean = hp.sample("mean", hp.Normal(0.0, 5.0))

    @hp.plate("school")
    def school(measured: Any, error: Any) -> Any:
        off = hp.sample("off", hp.Normal(0.0, 1.0))
        effect = mean + SPREAD * off
        hp.observe("measured", hp.Normal(effect, error), measured)
        return effect

    return school(EFFECTS, ERRORS)


def exact_mean() -> tuple[float, float]:
    """The posterior of ``mean`` in closed form: its mean and deviation."""
    precision = 1.0 / (np.asarray(ERRORS) ** 2 + SPREAD**2)
    total = precision.sum() + 1.0 / 25.0
    return float((precision * np.asarray(EFFECTS)).sum() / total), float(total**-0.5)


def score(values: Values) -> Any:
    """The logarithm of the joint density of the latent values and the measurements."""
    return hp.log_density(schools, values)()[0]


def hamiltonian(
    log_density: Callable[[Values], Any], start: Values, count: int, step: float = 0.25, leaps: int = 8
) -> Values:
    """Hamiltonian Monte Carlo: ``count`` states of a chain that leaves the density invariant.

    It samples without keys: call it under ``seed``, also inside ``scan``, ``jit`` and ``vmap``.
    Source: Neal, MCMC using Hamiltonian dynamics (2011).
    """
    slope = hx.grad(log_density)
    moved = lambda x, dx, h: hx.tree.map(lambda a, b: a + h * b, x, dx)
    energy = lambda x, p: -log_density(x) + 0.5 * sum((m * m).sum() for m in hx.tree.leaves(p))

    def leap(state: Any, _: Any) -> Any:
        x, p = state
        p = moved(p, slope(x), 0.5 * step)
        x = moved(x, p, step)
        return (x, moved(p, slope(x), 0.5 * step)), None

    def transition(x: Values, _: Any) -> Any:
        p = hx.tree.map(lambda a: keyless.normal(a.shape), x)
        (y, q), _ = lax.scan(leap, (x, p), None, leaps)
        accepted = hnp.log(keyless.uniform()) < energy(x, p) - energy(y, q)
        x = hx.tree.map(lambda a, b: hnp.where(accepted, b, a), x, y)
        return x, x

    return lax.scan(transition, start, None, count)[1]


def guide(params: Values) -> None:
    """Independent normal distributions of the latent values."""
    hp.sample("mean", hp.Normal(params["mean"], hnp.exp(params["log_scale"])))
    hp.sample("off", hp.Normal(params["off"], hnp.exp(params["off_log_scale"])))


def elbo(params: Values) -> Any:
    """A one-sample estimate of the evidence lower bound: log-density of the model less that of the guide."""
    sites, _ = hp.trace(lambda: guide(params))()
    values = {name: site.value for name, site in sites.items()}
    return score(values) - sum(site.log_prob.sum() for site in sites.values())


def variational(key: Any, steps: int = 1500) -> Values:
    """Stochastic gradient ascent on the bound, in one loop with decreasing step sizes."""
    params = {"mean": 0.0, "log_scale": 0.0, "off": hnp.zeros(8), "off_log_scale": hnp.zeros(8)}
    params = hx.tree.map(hnp.asarray, params)

    def bound(params: Values, key: Any) -> Any:
        return hx.vmap(lambda k: hp.seed(elbo, k)(params))(random.split(key, 8)).mean()

    def step(params: Values, now: Any) -> Any:
        key, rate = now
        slopes = hx.grad(bound)(params, key)
        return hx.tree.map(lambda p, s: p + rate * s / (1.0 + hnp.abs(s)), params, slopes), None

    return lax.scan(step, params, (random.split(key, steps), hnp.linspace(0.1, 0.001, steps)))[0]


def main() -> None:
    key = random.key(0)
    expected, deviation = exact_mean()

    sites, effects = hp.seed(hp.trace(schools), key)()
    print("one draw of the prior:", np.asarray(effects).round(1))
    assert effects.shape == (8,) and sites["off"].value.shape == (8,) and sites["measured"].observed

    start = {"mean": hnp.asarray(0.0), "off": hnp.zeros(8)}
    chains = hx.jit(hx.vmap(lambda k: hp.seed(hamiltonian, k)(score, start, 600)))(random.split(key, 4))
    drawn = np.asarray(chains["mean"])[:, 100:]
    print(f"mean effect by sampling: {drawn.mean():.2f} +- {drawn.std():.2f}")
    print(f"mean effect exactly: {expected:.2f} +- {deviation:.2f}")
    assert len(np.unique(drawn[:, -1])) == 4  # the chains are independent
    assert abs(drawn.mean() - expected) < 0.6 and abs(drawn.std() - deviation) < 0.6

    params = hx.jit(variational)(key)
    print(f"mean effect by approximation: {float(params['mean']):.2f}")  # of a normal density it is exact
    assert abs(float(params["mean"]) - expected) < 0.5

    intervened = hp.seed(hp.do(schools, {"mean": 30.0}), key)()
    assert float(intervened.mean()) > 15.0  # what if coaching were worth 30 points in general


if __name__ == "__main__":
    main()
