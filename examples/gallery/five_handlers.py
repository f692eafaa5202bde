"""Five questions about a trained network, each answered by a handler of a few lines around it.

The network is a compiled function with its blocks in a ``scan``, and nothing in it prepares for what is asked
afterwards: how many multiplications each layer performs, how large its activations are, how few bits its products need,
how much noise they bear, which layer can be left out. Each handler has one clause, for one kind of operation, which
crosses ``jit``, the loop and ``vmap``; bits, noise and layer are values, so that ``vmap`` gives a whole curve. In JAX
each is an edit of the model, or an interpreter of jaxprs with rules of its own for calls and loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import pyplot, run, save
from sklearn.datasets import load_digits

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.operations import DotGeneral, Tanh
from handlax.random import keyless

WIDTH, BLOCKS = 48, 4
LAYERS = ["first", *map(str, range(1, BLOCKS + 1)), "last"]  # the blocks by number

Params = dict[str, Any]


def initial(key: Any) -> Params:
    shapes = {"first": (64, WIDTH), "blocks": (BLOCKS, WIDTH, WIDTH), "last": (WIDTH, 10)}
    keys = random.split(key, len(shapes))
    return {name: random.normal(k, shape) / shape[-2] ** 0.5 for k, (name, shape) in zip(keys, shapes.items())}


@hx.jit
def logits(params: Params, x: Any) -> Any:
    """A residual network."""
    x = hnp.tanh(x @ params["first"])
    x, _ = lax.scan(lambda x, w: (x + hnp.tanh(x @ w), None), x, params["blocks"])
    return x @ params["last"]


def loss(params: Params, x: Any, y: Any) -> Any:
    """Mean cross entropy."""
    return -hnp.mean(hnp.sum(nn.log_softmax(logits(params, x)) * nn.one_hot(y, 10), axis=-1))


@hx.jit
def train(params: Params, x: Any, y: Any, rates: Any) -> tuple[Params, Any]:
    """Gradient descent with these rates; gives the losses too."""
    def step(params: Params, rate: Any) -> tuple[Params, Any]:
        value, gradient = hx.value_and_grad(loss)(params, x, y)
        return hx.tree.map(lambda p, g: p - rate * g, params, gradient), value
    return lax.scan(step, params, rates)


def accuracy(params: Params, x: Any, y: Any) -> Any:
    return hnp.mean(hnp.argmax(logits(params, x), axis=-1) == y)


def multiplications(log: tuple[Any, ...], op: Any, x: Any, w: Any) -> Any:
    """``x @ w`` adds to the log how many multiplications it performs: for each element of the result, the rows of w."""
    y = hx.perform(op, x, w)
    return (*log, hnp.array(y.size * w.shape[0])), y


def activations(log: tuple[Any, ...], op: Any, x: Any) -> Any:
    """A tanh adds its result to the log."""
    y = hx.perform(op, x)
    return (*log, y), y


counting = hx.handler({DotGeneral: multiplications}, moves=hx.append)
recording = hx.handler({Tanh: activations}, moves=hx.append)


def quantised(bits: Any) -> hx.Handler:
    """Products of operands that are rounded to so many bits."""
    def rounded(x: Any) -> Any:
        scale = (2.0 ** (bits - 1) - 1) / hnp.abs(x).max()
        return hnp.round(x * scale) / scale
    return hx.handler({DotGeneral: lambda op, x, w: hx.perform(op, rounded(x), rounded(w))})


def noisy(level: Any) -> hx.Handler:
    """Products with normal noise, as a multiple of their own deviation."""
    def product(op: Any, x: Any, w: Any) -> Any:
        y = hx.perform(op, x, w)
        return y + level * y.std() * keyless.normal(y.shape)
    return hx.handler({DotGeneral: product})


def without(layer: Any) -> hx.Handler:
    """A handler under which the tanh of one layer gives zeros; its state counts the layers, from 0."""
    return hx.handler({Tanh: lambda i, op, x: (i + 1, hnp.where(i == layer, 0.0, hx.perform(op, x)))})


def draw(picture: str, found: dict[str, Any]) -> None:
    figure, ((a, b, c), (d, e, f)) = pyplot.subplots(2, 3, figsize=(8.5, 4.4))
    a.semilogy(found["losses"])
    a.set(title="The network is trained as it is", xlabel="step", ylabel="cross entropy")
    b.bar(LAYERS, found["multiplications"] / 1000)
    b.set(title="1. Count: multiplications per image", xlabel="layer", ylabel="thousands")
    c.bar(LAYERS[:-1], found["activations"])
    c.set(title="2. Record: size of activations", xlabel="layer", ylabel="root mean square")
    d.plot(found["bits"], 100 * found["by bits"], marker="o", markersize=4)
    d.set(title="3. Replace: products of few bits", xlabel="bits of each operand", ylabel="test accuracy (%)")
    accuracies = 100 * found["by noise"]
    e.plot(found["noise"], accuracies.mean(1), label="mean of draws")
    e.fill_between(found["noise"], accuracies.min(1), accuracies.max(1), alpha=0.25, label="all draws")
    e.set(title="4. Inject: noise in products", xlabel="noise / deviation of the product", ylabel="test accuracy (%)")
    e.set_ylim(0, 104)
    e.legend(loc="lower left", borderpad=0)
    f.bar(LAYERS[:-1], 100 * found["without"])
    f.axhline(100 * found["accuracy"], color="black", linestyle="--", linewidth=1, label="no layer left out")
    f.set(title="5. Leave out: one layer", xlabel="layer", ylabel="test accuracy (%)", ylim=(0, 125))
    f.set_yticks(range(0, 101, 20))
    f.legend()
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, Any]:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = (x[order] / 16.0).astype(np.float32), y[order].astype(np.int32)
    params, losses = train(initial(random.key(0)), x[:1400], y[:1400], hnp.linspace(0.1, 0.01, 100 if small else 1000))
    test = params, x[1400:], y[1400:]
    counts, _ = hx.handle(counting, ())(logits)(params, x[0])
    tanhs, _ = hx.handle(recording, ())(logits)(*test[:2])
    bits, noise, keys = hnp.arange(2.0, 11.0), hnp.linspace(0.0, 1.0, 17), random.split(random.key(1), 16)
    draws = lambda level: hx.vmap(lambda key: keyless.seed(hx.handle(noisy(level))(accuracy), key)(*test))(keys)
    curve = lambda f, values: np.asarray(hx.jit(hx.vmap(f))(values))
    found = {
        "losses": np.asarray(losses), "accuracy": float(accuracy(*test)), "multiplications": np.hstack(counts),
        "activations": np.hstack([hnp.sqrt(hnp.mean(y * y, (-2, -1))) for y in tanhs]),
        "bits": bits, "by bits": curve(lambda n: hx.handle(quantised(n))(accuracy)(*test), bits),
        "noise": noise, "by noise": curve(draws, noise),
        "without": curve(lambda i: hx.handle(without(i), 0)(accuracy)(*test)[1], hnp.arange(BLOCKS + 1)),
    }
    for name in ("accuracy", "multiplications", "activations", "by bits", "without"):
        print(f"{name}: {np.array2string(np.asarray(found[name]), precision=3)}")
    if picture:
        draw(picture, found)
    return found


if __name__ == "__main__":
    run(main)
