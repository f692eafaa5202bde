"""Train a small network on 1,797 handwritten digits, and count what one step performs.

    make demo

One program with ``jit``, ``grad``, per-example gradients by ``vmap``, minibatches, and a user's own handler that counts
the operations of the compiled step.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import handlax as hx
from handlax import nn, random
from handlax import numpy as hnp

matplotlib.use("Agg")  # there may be no screen
from matplotlib import pyplot  # the backend is chosen first: there may be no screen

SIZES = (64, 128, 64, 10)
BATCH = 64
RATE = 0.002

Params = list[dict[str, Any]]


def initial(key: Any) -> Params:
    """He-initialised weights, zero biases."""
    init = nn.initializers.he_normal()
    keys = random.split(key, len(SIZES) - 1)
    return [{"w": init(k, (m, n)), "b": hnp.zeros(n)} for k, m, n in zip(keys, SIZES, SIZES[1:])]


def logits(params: Params, x: Any) -> Any:
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params: Params, x: Any, y: Any) -> Any:
    """Mean cross entropy."""
    chosen = nn.one_hot(y, SIZES[-1])
    return -hnp.mean(hnp.sum(nn.log_softmax(logits(params, x)) * chosen, axis=-1))


def step(params: Params, moments: Any, n: Any, x: Any, y: Any) -> Any:
    """One step of Adam."""
    value, gradient = hx.value_and_grad(loss)(params, x, y)
    first, second = moments
    first = hx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = hx.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    scale = hnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
    params = hx.tree.map(lambda p, m, v: p - RATE * scale * m / (hnp.sqrt(v) + 1e-8), params, first, second)
    return params, (first, second), n + 1.0, value


def gradient_norms(params: Params, x: Any, y: Any) -> Any:
    """The norm of the gradient of each example."""

    def one(x: Any, y: Any) -> Any:
        gradient = hx.grad(loss)(params, x[None], y[None])
        return hnp.sqrt(sum(hnp.sum(g * g) for g in hx.tree.leaves(gradient)))

    return hx.vmap(one)(x, y)


def accuracy(params: Params, x: Any, y: Any) -> Any:
    return hnp.mean(hnp.argmax(logits(params, x), axis=-1) == y)


def count(counts: dict[str, int], op: Any, *operands: Any) -> Any:
    """A clause for every operation: count it, and forward it."""
    return {**counts, op.name: counts.get(op.name, 0) + 1}, hx.perform(op, *operands)


counting = hx.handler(otherwise=count, over=hx.is_pure)


def digits() -> tuple[np.ndarray, ...]:
    """Images in [0, 1] and labels, shuffled, four fifths for training."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = (data.data[order] / 16.0).astype(np.float32)
    y = data.target[order].astype(np.int32)
    split = len(y) * 4 // 5
    return x[:split], y[:split], x[split:], y[split:]


def train(epochs: int) -> tuple[Params, list[float], tuple[np.ndarray, ...]]:
    data = digits()
    x, y = data[:2]
    params = initial(random.key(0))
    zeros = hx.tree.map(hnp.zeros_like, params)
    state = (params, (zeros, zeros), hnp.float32(1.0))
    compiled = hx.jit(step)
    shuffle = np.random.default_rng(1)
    losses = []
    with tqdm(range(epochs), desc="training", unit="epoch") as bar:
        for _ in bar:
            order = shuffle.permutation(len(y))
            for start in range(0, len(y) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                *state, value = compiled(*state, x[rows], y[rows])
                losses.append(float(value))
            bar.set_postfix(loss=f"{np.mean(losses[-22:]):.4f}")
    return state[0], losses, data


def compare_counts(params: Params, x: Any, y: Any) -> dict[str, int]:
    """The operations of one step, counted around the plain step and around the compiled one."""
    zeros = hx.tree.map(hnp.zeros_like, params)
    arguments = (params, (zeros, zeros), hnp.float32(1.0), x, y)
    plain, _ = hx.handle(counting, {})(step)(*arguments)
    compiled, _ = hx.handle(counting, {})(hx.jit(step))(*arguments)
    assert plain == compiled, (plain, compiled)
    return plain


def draw(params: Params, losses: list[float], x: Any, y: Any, path: pathlib.Path) -> None:
    """The loss curve, and digits that are misclassified."""
    read = np.asarray(hnp.argmax(logits(params, x), axis=-1))
    wrong = np.flatnonzero(read != y)[:8]
    figure = pyplot.figure(figsize=(9, 5.5), layout="constrained")
    rows = figure.subfigures(2, 1, height_ratios=(2, 1))
    axes = rows[0].subplots()
    axes.semilogy(losses, linewidth=0.8, color="#2a6f97")
    axes.set(xlabel="step", ylabel="training loss", title="Handwritten digits: loss by step")
    pictures = rows[1].subplots(1, 8)
    for axis in pictures:
        axis.axis("off")
    for axis, i in zip(pictures, wrong):
        axis.imshow(np.asarray(x[i]).reshape(8, 8), cmap="gray_r")
        axis.set_title(f"{y[i]} read as {read[i]}", fontsize=9)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("demo.png"))
    options = parser.parse_args()
    begin = time.perf_counter()
    params, losses, (x, y, x_test, y_test) = train(options.epochs)
    measured = hx.jit(accuracy)
    train_accuracy, test_accuracy = float(measured(params, x, y)), float(measured(params, x_test, y_test))
    seconds = time.perf_counter() - begin
    norms = np.asarray(hx.jit(gradient_norms)(params, x_test, y_test))
    counts = compare_counts(params, x[:BATCH], y[:BATCH])
    draw(params, losses, x_test, y_test, options.picture)
    most = ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: -item[1])[:6])
    reached = f"train accuracy {train_accuracy:.4f}, test accuracy {test_accuracy:.4f}"
    print(f"{reached}, {seconds:.1f} s, {len(losses)} steps")
    print(f"gradient norm of single test images: median {np.median(norms):.2g}, largest {norms.max():.3g}")
    print(f"one step performs {sum(counts.values())} operations, compiled or not: {most}, ...")
    print(f"loss curve and misread digits: {options.picture}")


if __name__ == "__main__":
    main()
