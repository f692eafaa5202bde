"""A neural ODE of lynxes and hares, fitted to 21 years of furs, that says what its solver costs.

The field is a small network of both populations and of one hidden number (an augmented neural ODE, Dupont et al. 2019),
fitted to longer and longer windows of the record. ``odeint`` chooses its steps, and its derivative is the adjoint
equation, solved backwards. What a neural ODE costs is how often both solvers evaluate the network, which no result of
``odeint`` tells. Here the network performs an effect and a handler counts it, in each step of the compiled loop that
trains: through the solver's loop of unknown length, the derivative rule and the lanes of ``vmap``. Without effects the
solver is rewritten to return its count, and that of the adjoint leaves a backward rule only in the guise of a gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import BLUE, GREEN, ORANGE, RED, pyplot, run, save

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.example_libraries import optimizers
from handlax.experimental.ode import odeint

# thousands of furs that the Hudson's Bay Company bought from 1900 to 1920 (Elton & Nicholson 1942)
HARES = "30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
LYNXES = "4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
FURS = np.array([HARES.split(), LYNXES.split()], "float32").T
CENTRE, SPREAD = np.log(FURS).mean(0), np.log(FURS).std(0)
SEEN = (np.log(FURS) - CENTRE) / SPREAD
STAGES = {3: 400, 7: 400, 12: 400, 21: 2000}  # the length of the windows, and the steps that fit them
WIDTH, RATE = 32, 3e-3


@hx.effect(vmap="per_lane")
class Evaluation:
    """The network is evaluated."""

    def result_type(op):
        return None


counting = hx.handler({Evaluation: lambda n, op: (n + 1, None)}, moves=hx.merge(hnp.add, 0))


def initial(key: Any) -> Any:
    """Weights of three layers, and for each year the state from which a window starts."""
    sizes = [(3, WIDTH), (WIDTH, WIDTH), (WIDTH, 3)]
    scales = [0.5, WIDTH**-0.5, 0.1]
    keys = random.split(key, 3)
    layers = [(random.normal(k, s) * scale, hnp.zeros(s[1])) for k, s, scale in zip(keys, sizes, scales)]
    return {"layers": layers, "starts": hnp.pad(SEEN, [(0, 0), (0, 1)])}


def field(y: Any, t: Any, layers: Any) -> Any:
    """dy/dt."""
    hx.perform(Evaluation())
    *hidden, (w, b) = layers
    for v, c in hidden:
        y = hnp.tanh(y @ v + c)
    return y @ w + b


def solve(params: Any, start: Any, times: Any) -> Any:
    """Both populations at these times, on the scale of ``SEEN``."""
    return odeint(field, start, times, params["layers"], rtol=1e-4, atol=1e-4)[:, :2]


def loss(params: Any, length: int) -> Any:
    """The mean squared error over all windows of this length."""

    def window(first: Any, start: Any) -> Any:
        seen = lax.dynamic_slice_in_dim(SEEN, first, length)
        return hnp.mean((solve(params, start, hnp.arange(float(length))) - seen) ** 2)

    windows = len(SEEN) - length + 1
    return hx.vmap(window)(hnp.arange(windows), params["starts"][:windows]).mean()


def fit(params: Any, length: int, steps: int) -> Any:
    """Adam in one loop; also gives the losses, and how often each step evaluated the network."""
    init, update, params_of = optimizers.adam(optimizers.polynomial_decay(RATE, steps, RATE / 10))

    def step(state: Any, number: Any) -> Any:
        forward, (value, pull) = hx.handle(counting, 0)(hx.vjp)(lambda p: loss(p, length), params_of(state))
        adjoint, (slopes,) = hx.handle(counting, 0)(pull)(1.0)
        return update(number, slopes, state), (value, forward, adjoint)

    state, seen = lax.scan(step, init(params), hnp.arange(steps))
    return params_of(state), seen


def draw(params: Any, rows: np.ndarray, picture: str) -> None:
    times = np.linspace(0, 30, 301, dtype="float32")
    _, curves = hx.handle(counting, 0)(solve)(params, params["starts"][0], times)
    furs = np.exp(np.asarray(curves) * SPREAD + CENTRE)
    figure = pyplot.figure()
    axes = figure.subplot_mosaic([["furs", "losses"], ["furs", "evaluations"]], width_ratios=(1.7, 1))
    for i, (name, color) in enumerate([("hares", BLUE), ("lynxes", ORANGE)]):
        axes["furs"].plot(range(1900, 1921), FURS[:, i], "o", markersize=4, color=color, label=f"{name}, record")
        axes["furs"].plot(1900 + times[:201], furs[:201, i], color=color, label=f"{name}, neural ODE")
        axes["furs"].plot(1900 + times[200:], furs[200:, i], "--", color=color)
    axes["furs"].set(title="One solution from 1900 on, and beyond the record", xlabel="year", ylabel="furs / 1000")
    axes["furs"].legend(ncols=2, loc="upper center")
    axes["furs"].set_ylim(0, 105)
    axes["losses"].semilogy(rows[:, 0])
    axes["losses"].set(title="Longer and longer windows", ylabel="squared error")
    axes["evaluations"].plot(rows[:, 1], color=GREEN, label="forward")
    axes["evaluations"].plot(rows[:, 2], color=RED, label="adjoint")
    axes["evaluations"].set(xlabel="step", ylabel="evaluations\nper window")
    axes["evaluations"].legend()
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, float]:
    params, stages = initial(random.key(0)), []
    for length, steps in ({3: 60} if small else STAGES).items():
        params, rows = hx.jit(fit, static_argnums=(1, 2))(params, length, steps)
        stages.append(np.stack(rows, 1) / [1, len(SEEN) - length + 1, len(SEEN) - length + 1])
        value, forward, adjoint = stages[-1][-1]
        print(f"windows of {length} years: loss {value:.4f}, evaluations {forward:.0f}, by the adjoint {adjoint:.0f}")
    rows = np.concatenate(stages)
    if picture:
        draw(params, rows, picture)
    return {"first loss": rows[0, 0], "loss": rows[-1, 0], "forward": rows[-1, 1], "adjoint": rows[-1, 2]}


if __name__ == "__main__":
    run(main)
