"""Train a small network in one compiled loop that reports metrics and failures.

    python examples/logged_training.py

All steps are one ``scan``, which one call runs on the device. Its body performs four kinds of effects, and handlers
around it say what becomes of them: metrics are a log, which the loop stacks; batches are drawn by keys that nobody
passes along; failed checks leave the loop as a value; ticks move a bar. ``step`` knows nothing of all that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.random import keyless

SIZES = (64, 32, 10)
BATCH = 64
STEPS = 400

Params = list[dict[str, Any]]


@hx.effect(vmap="per_lane", diff="stop")
class Metric:
    """Report a value."""

    label: str

    def result_type(op, x):
        return None


def metric(label: str, value: Any) -> None:
    hx.perform(Metric(label), value)


# a log of dictionaries, in which no label occurs twice; loops stack its entries
logging = hx.handler({Metric: lambda log, op, x: ((*log, {op.label: x}), None)}, moves=hx.append)


def initial(key: Any) -> Params:
    init = nn.initializers.he_normal()
    return [
        {"w": init(k, (m, n)), "b": hnp.zeros(n)}
        for k, m, n in zip(random.split(key, len(SIZES) - 1), SIZES, SIZES[1:])
    ]


def logits(params: Params, x: Any) -> Any:
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
        metric("dead units", hnp.mean(hnp.all(x == 0.0, axis=0)))
    return x @ last["w"] + last["b"]


def loss(params: Params, x: Any, y: Any) -> Any:
    """Mean cross entropy."""
    value = -hnp.mean(hnp.sum(nn.log_softmax(logits(params, x)) * nn.one_hot(y, SIZES[-1]), axis=-1))
    metric("loss", value)
    return value


def step(params: Params, x: Any, y: Any, rate: float, number: Any) -> Params:
    """One step of gradient descent on a random batch."""
    rows = random.choice(keyless.fresh_key(), len(y), (BATCH,))
    value, gradient = hx.value_and_grad(loss)(params, x[rows], y[rows])
    hx.check(value < 10.0, "step {}: the loss is {}", number, value)
    hx.debug.tick()
    return hx.tree.map(lambda p, g: p - rate * g, params, gradient)


def train(params: Params, x: Any, y: Any, rate: float) -> Params:
    body = lambda params, number: (step(params, x, y, rate, number), None)
    return lax.scan(body, params, hnp.arange(STEPS))[0]


def observed(params: Params, x: Any, y: Any, rate: float) -> Any:
    """``train`` with all its effects handled; returns the failure, the metrics and the parameters."""
    shown = hx.debug.progress(STEPS, label=f"rate {rate}")(train)
    handled = hx.handle(logging, ())(keyless.seed(shown, random.key(1)))
    error, (log, trained) = hx.checkify(handled)(params, x, y, rate)
    return error, {name: values for entry in log for name, values in entry.items()}, trained


def accuracy(params: Params, x: Any, y: Any) -> Any:
    _, scores = hx.handle(logging, ())(logits)(params, x)
    return hnp.mean(hnp.argmax(scores, axis=-1) == y)


def digits() -> tuple[np.ndarray, ...]:
    """Images in [0, 1] and labels, shuffled, four fifths for training."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = (data.data[order] / 16.0).astype(np.float32), data.target[order].astype(np.int32)
    split = len(y) * 4 // 5
    return x[:split], y[:split], x[split:], y[split:]


def main() -> None:
    x, y, x_test, y_test = digits()
    compiled = hx.jit(observed, static_argnames="rate")
    params = initial(random.key(0))

    error, log, trained = compiled(params, x, y, rate=0.3)
    losses = np.asarray(log["loss"])
    error.throw()
    reached = float(hx.jit(accuracy)(trained, x_test, y_test))
    assert losses.shape == log["dead units"].shape == (STEPS,)
    assert losses[-20:].mean() < 0.15 * losses[0] and reached > 0.92
    every = ", ".join(f"{value:.3f}" for value in losses[:: STEPS // 8])
    print(f"loss at every {STEPS // 8}th step: {every}")
    print(f"dead units at the end: {float(log['dead units'][-1]):.0%}, test accuracy {reached:.4f}")

    error, log, _ = compiled(params, x, y, rate=300.0)
    first = int(np.flatnonzero(~(np.asarray(log["loss"]) < 10.0))[0])
    assert f"step {first}: the loss is" in error.get()
    print(f"a rate of 300: {error.get().splitlines()[0]}")


if __name__ == "__main__":
    main()
