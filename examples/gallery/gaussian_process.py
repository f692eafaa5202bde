"""A Gaussian process of the carbon dioxide at Mauna Loa, trained on 33 years and asked about the 10 that follow.

The kernel is a function of two times, which asks for a hyperparameter where it uses it and for the weight of each term
(Rasmussen & Williams 2006, section 5.4.3). Nobody lists the hyperparameters: ``effects_of`` reads them off the type of
the program, with their first values. One handler answers from a dictionary by which the evidence is differentiated,
through two ``vmap`` and a Cholesky factorisation; another gives all terms but one the weight zero, which splits the
prediction into its causes. Without effects the kernel is an object of a library of kernels, or its parameters are
handed to every term and listed a second time, and the split is one more version of the kernel.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
from command_line import BLUE, GREEN, GREY, ORANGE, pyplot, run, save

import handlax as hx
from handlax import numpy as hnp
from handlax.flatten_util import ravel_pytree
from handlax.scipy import linalg, optimize

LAST = 1992.0  # what follows is not trained on


@hx.effect(vmap="once", default=lambda op: hnp.float64(op.start))
class Hyper:
    """Ask for a positive hyperparameter."""

    label: str
    start: float

    def result_type(op):
        return hx.ArrayType((), "float64")


@hx.effect(vmap="once", default=lambda op: hnp.float64(1.0))
class Weight:
    """Ask for the weight of a term of the kernel, by default one."""

    term: str

    def result_type(op):
        return hx.ArrayType((), "float64")


def hyper(label: str, start: float) -> Any:
    return hx.perform(Hyper(label, start))


def given(logs: dict[str, Any]) -> hx.Handler:
    return hx.handler({Hyper: lambda op: hnp.exp(logs[op.label])})


def only(term: str) -> hx.Handler:
    return hx.handler({Weight: lambda op: hnp.float64(op.term == term)})


def kernel(s: Any, t: Any) -> Any:
    """The covariance of the concentrations at times ``s`` and ``t``, in years."""
    d = s - t
    bell = lambda years: hnp.exp(-0.5 * (d / years) ** 2)
    wave = hnp.exp(-2 * (hnp.sin(np.pi * d) / hyper("season, shape", 1.3)) ** 2)
    terms = {
        "trend": hyper("trend, ppm", 60.0) ** 2 * bell(hyper("trend, years", 60.0)),
        "season": hyper("season, ppm", 2.5) ** 2 * bell(hyper("season, years", 90.0)) * wave,
        "drift": hyper("drift, ppm", 0.7) ** 2 * bell(hyper("drift, years", 1.2)),
        "weather": hyper("weather, ppm", 0.2) ** 2 * bell(hyper("weather, years", 0.1)),
    }
    return sum(hx.perform(Weight(term)) * k for term, k in terms.items())


def gram(s: Any, t: Any) -> Any:
    return hx.vmap(hx.vmap(kernel, (None, 0)), (0, None))(s, t)


def factor(t: Any) -> Any:
    """The Cholesky factor of the covariance of what is measured."""
    return linalg.cholesky(gram(t, t) + hyper("noise, ppm", 0.2) ** 2 * hnp.eye(len(t)), lower=True)


def loss(t: Any, y: Any) -> Any:
    """The negative logarithm of the evidence."""
    lower = factor(t)
    white = linalg.solve_triangular(lower, y, lower=True)
    return 0.5 * white @ white + hnp.log(hnp.diag(lower)).sum() + 0.5 * len(t) * np.log(2 * np.pi)


def predict(t: Any, y: Any, new: Any) -> Any:
    """At new times the mean, the standard deviation of a measurement, and the mean of each term alone."""
    lower = factor(t)
    weights = linalg.cho_solve((lower, True), y)
    white = linalg.solve_triangular(lower, gram(t, new), lower=True)
    variance = hx.vmap(kernel)(new, new) + hyper("noise, ppm", 0.2) ** 2 - (white**2).sum(0)
    terms = {term: hx.handle(only(term))(gram)(new, t) @ weights for term in ("trend", "season", "drift")}
    return gram(new, t) @ weights, hnp.sqrt(variance), terms


def fit(t: Any, y: Any, steps: int) -> Any:
    """The logarithms of all hyperparameters, and the loss before and after."""
    starts = {op.label: hnp.log(hnp.float64(op.start)) for op in hx.effects_of(loss)(t, y) if isinstance(op, Hyper)}
    flat, tree_of = ravel_pytree(starts)
    of_flat = lambda flat: hx.handle(given(tree_of(flat)))(loss)(t, y)
    found = optimize.minimize(of_flat, flat, method="BFGS", options={"maxiter": steps})
    return tree_of(found.x), of_flat(flat), found.fun


def measured() -> tuple[np.ndarray, np.ndarray]:
    """Times in years, and concentrations in ppm, of the months that have one."""
    rows = np.loadtxt(pathlib.Path(__file__).with_name("co2.txt"))
    t, y = (rows[:, :1] + (np.arange(12) + 0.5) / 12).ravel(), rows[:, 1:].ravel()
    return t[~np.isnan(y)], y[~np.isnan(y)]


def draw(t: Any, y: Any, new: Any, mean: Any, deviation: Any, terms: Any, picture: str) -> None:
    figure = pyplot.figure()
    colors = {"trend": BLUE, "season": GREEN, "drift": ORANGE}
    axes = figure.subplot_mosaic([["all", term] for term in colors], width_ratios=(1.7, 1))
    axes["all"].fill_between(new, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, label="two deviations")
    axes["all"].plot(new, mean, linewidth=0.8, label="prediction")
    for color, name, chosen in [(GREY, "trained on", t < LAST), (ORANGE, "kept back", t >= LAST)]:
        axes["all"].plot(t[chosen], y[chosen], ".", markersize=3, color=color, label=name)
    axes["all"].set(title="Carbon dioxide at Mauna Loa", xlabel="year", ylabel="ppm")
    axes["all"].set(xlim=(1980, 2010), ylim=(333, 394))
    axes["all"].legend(loc="upper left")
    for term, color in colors.items():
        axes[term].plot(new, terms[term], color=color, linewidth=0.8)
        axes[term].set(title=f"The {term} alone", ylabel="ppm")
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, float]:
    t, y = measured()
    train = (t < LAST) & ((t > 1984) | (not small))
    centre = y[train].mean()
    logs, first, last = hx.jit(fit, static_argnums=2)(t[train], y[train] - centre, 5 if small else 40)
    new = np.concatenate([t, np.arange(2002, 2010, 1 / 24)])
    predicted = hx.jit(lambda logs, *args: hx.handle(given(logs))(predict)(*args))
    mean, deviation, terms = hx.tree.map(np.asarray, predicted(logs, t[train], y[train] - centre, new))
    errors = (mean[: len(t)] + centre - y)[t >= LAST]
    for label, value in sorted(logs.items()):
        print(f"{label:>16}: {np.exp(value):7.2f}")
    found = {
        "first loss": float(first), "loss": float(last), "error": float(np.sqrt((errors**2).mean())),
        "within two deviations": float((abs(errors) < 2 * deviation[: len(t)][t >= LAST]).mean()),
    }
    print(", ".join(f"{name} {x:.4g}" for name, x in found.items()))
    if picture:
        draw(t, y, new, mean + centre, deviation, terms, picture)
    return found


if __name__ == "__main__":
    run(main)
