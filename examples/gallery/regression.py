"""Bayesian regression on 442 patients by Hamiltonian Monte Carlo, beside least squares.

``model`` draws coefficients, their scale and the noise, and from them how a disease goes on (Efron et al. 2004). The
log-density, its Hessian, which scales the chains, and the predictions come from this one function, by handlers. Neither
the model nor the sampler takes a key: ``seed`` has one for each chain, and gives each state draws of its own through
the ``scan``; the program counts that they are distinct. In JAX keys are split and passed through model and sampler by
hand, and one that is used twice gives draws that agree wrongly, without an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import pyplot, run, save
from sklearn.datasets import load_diabetes

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax import probability as hp
from handlax.flatten_util import ravel_pytree
from handlax.random import keyless

CHAINS, LEAPS, STEP = 4, 5, 0.4


def model(x: Any) -> Any:
    """How the disease of each patient goes on, in standard deviations."""
    scale = hnp.exp(hp.sample("log scale", hp.Normal(-1.0, 1.0)))
    noise = hnp.exp(hp.sample("log noise", hp.Normal(0.0, 1.0)))
    weights = hp.sample("weights", hp.Normal(0.0, scale), shape=(x.shape[1],))
    return hp.sample("progression", hp.Normal(x @ weights, noise))


def hamiltonian(score: Any, start: Any, count: int) -> tuple[Any, Any, Any]:
    """A chain that leaves the density ``exp(score)`` invariant: its states, its momenta, and which were accepted.

    Source: Neal, MCMC using Hamiltonian dynamics (2011), section 5.3.
    """
    slope = hx.grad(score)

    def leap(state: Any, _: Any) -> Any:
        z, p = state
        p = p + 0.5 * STEP * slope(z)
        z = z + STEP * p
        return (z, p + 0.5 * STEP * slope(z)), None

    def transition(z: Any, _: Any) -> Any:
        p = keyless.normal(z.shape)
        (moved, q), _ = lax.scan(leap, (z, p), None, LEAPS)
        gain = score(moved) - score(z) - 0.5 * (q @ q - p @ p)
        accepted = hnp.log(keyless.uniform()) < gain
        z = hnp.where(accepted, moved, z)
        return z, (z, p, accepted)

    return lax.scan(transition, start, None, count)[1]


def posterior(x: Any, y: Any, start: dict[str, Any], count: int) -> Any:
    """Draws of the parameters, of each chain, in coordinates in which the posterior is about a standard normal one."""
    centre, values_of = ravel_pytree(start)
    observed = hp.condition(model, {"progression": y})
    score = lambda flat: hp.log_density(observed, values_of(flat))(x)[0]
    root = hnp.linalg.cholesky(hnp.linalg.inv(-hx.hessian(score)(centre)))

    def chain(key: Any) -> Any:
        whitened = lambda z: score(centre + root @ z)
        begin = lambda: hamiltonian(whitened, 2.0 * keyless.normal(centre.shape), count)    # wider than the posterior
        states, momenta, accepted = keyless.seed(begin, key)()
        return hx.vmap(lambda z: values_of(centre + root @ z))(states), momenta, accepted

    return hx.vmap(chain)(random.split(random.key(0), CHAINS))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """How much wider all chains together are than one, for draws of shape (chains, draws, ...); 1 if they agree.

    Source: Gelman et al., Bayesian Data Analysis (2013), section 11.4, with each chain divided in two.
    """
    halves = np.concatenate(np.split(draws, 2, axis=1))
    within, between = halves.var(1, ddof=1).mean(0), halves.mean(1).var(0, ddof=1)
    return np.sqrt((halves.shape[1] - 1) / halves.shape[1] + between / within)


def draw(picture: str, names: list[str], weights: np.ndarray, least: np.ndarray, error: np.ndarray, r: float) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, width_ratios=(3, 2))
    at, flat = np.arange(len(names)), weights.reshape(-1, len(names))
    low, middle, high = np.quantile(flat, (0.05, 0.5, 0.95), axis=0)
    left.errorbar(at - 0.12, middle, (middle - low, high - middle), fmt="o", markersize=4, label="posterior, 90 %")
    left.errorbar(at + 0.12, least, 1.645 * error, fmt="s", markersize=4, label="least squares, 90 %")
    left.axhline(0.0, color="black", linewidth=0.8)
    left.set_xticks(at, names)
    left.set(title="Coefficients of ten measurements, standardised", ylabel="effect on the disease (deviations)")
    left.legend()
    bins = np.linspace(*np.quantile(flat[:, 4], (0.001, 0.999)), 30)
    for i, chain in enumerate(weights[..., 4]):
        right.hist(chain, bins, density=True, histtype="step", linewidth=1.2, label=f"chain {i + 1}")
    right.axvline(least[4], color="black", linestyle="--", linewidth=1, label="least squares")
    right.set(title=f"{names[4]} in each chain, R-hat at most {r:.3f}", xlabel="coefficient", ylabel="density",
              xlim=(-0.65, 0.65))
    right.legend(loc="upper right")
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, Any]:
    data = load_diabetes()
    standard = lambda a: ((a - a.mean(0)) / a.std(0)).astype(np.float32)
    x, y = standard(data.data), standard(data.target)
    least = np.linalg.lstsq(x, y)[0]
    noise = np.std(y - x @ least)
    start = {"weights": least, "log noise": np.log(noise), "log scale": np.log(least.std())}
    start = hx.tree.map(hnp.float32, start)

    values, momenta, accepted = hx.jit(lambda: posterior(x, y, start, 300 if small else 4000))()
    values, momenta = hx.tree.map(lambda a: np.asarray(a)[:, 100:], values), np.asarray(momenta)
    weights = values["weights"]
    distinct = len(np.unique(momenta.reshape(-1, momenta.shape[-1]), axis=0))
    r = max(float(r_hat(a).max()) for a in values.values())

    some = hx.tree.map(lambda a: a[:, ::10].reshape(-1, *a.shape[2:]), values)
    predicted = hx.jit(hx.vmap(lambda v, key: hp.seed(hp.substitute(model, v), key)(x)))(
        some, random.split(random.key(1), len(some["log noise"])))
    low, high = np.quantile(predicted, (0.05, 0.95), axis=0)
    covered = float(np.mean((low <= y) & (y <= high)))
    print(f"{distinct} of {momenta[..., 0].size} draws are distinct, {np.mean(accepted):.0%} accepted")
    print(f"R-hat is at most {r:.4f}; {covered:.1%} of the patients are within their predicted 90 %")
    for name, ours, theirs in zip(data.feature_names, weights.mean((0, 1)), least):
        print(f"{name}: {ours:+.3f} expected, {theirs:+.3f} by least squares")
    if picture:
        error = noise * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
        draw(picture, data.feature_names, weights, least, error, r)
    return {"r_hat": r, "distinct": distinct / momenta[..., 0].size, "covered": covered,
            "accepted": float(np.mean(accepted)), "weights": weights.mean((0, 1)), "least squares": least}


if __name__ == "__main__":
    run(main)
