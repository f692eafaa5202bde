"""A residual network with batch normalisation, whose layers pass no running statistics along.

The network is written for one image and mapped over a batch. A normalisation tells the moments of the batch by an
effect, and asks which to use (Ioffe & Szegedy 2015). ``training`` answers with those, and has averages as its state;
``evaluating`` answers with the averages: there is no flag and no second path. The state goes through the ``vmap`` over
images, the scan over blocks and ``checkpoint``, none of which knows of it, and comes out beside the loss: ``train``
hands it from step to step, as it does the parameters. Lanes perform the effect once together, and a block that is
recomputed for the gradient does not perform it again: each layer has as many updates as there are steps. Without
effects every layer takes and returns statistics, or map, scan and checkpoint are those of a library that lifts them
over its own kind of state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import pyplot, run, save
from sklearn.datasets import load_digits

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.example_libraries import optimizers

CHANNELS, BLOCKS, BATCH, STEPS = 16, 3, 128, 400
LAYERS, LAYOUT = 1 + 2 * BLOCKS, ("NHWC", "HWIO", "NHWC")


@hx.effect(vmap="once")
class Moments:
    """Ask for the mean and variance to normalise by, in a layer that has these in its batch."""

    def result_type(op, layer, mean, variance):
        return mean, variance


def keep(running: Any, op: Moments, layer: Any, mean: Any, variance: Any) -> Any:
    """Answer what the batch has, and keep averages of it."""
    means, variances, updates = running
    mixed = lambda averages, x: averages.at[layer].set(0.95 * averages[layer] + 0.05 * x)
    return (mixed(means, mean), mixed(variances, variance), updates.at[layer].add(1)), (mean, variance)


training = hx.handler({Moments: keep})
of_the_batch = hx.handler({Moments: lambda op, layer, mean, variance: (mean, variance)})


def evaluating(running: Any) -> hx.Handler:
    return hx.handler({Moments: lambda op, layer, *_: (running[0][layer], running[1][layer])})


def initial(key: Any) -> tuple[Any, Any]:
    """Parameters, those of the blocks stacked, and the running statistics of all layers."""

    def convolution(key: Any, inputs: int = CHANNELS) -> dict[str, Any]:
        kernel = random.normal(key, (3, 3, inputs, CHANNELS)) * (2 / (9 * inputs)) ** 0.5
        return {"kernel": kernel, "scale": hnp.ones(CHANNELS), "shift": hnp.zeros(CHANNELS)}

    stem, first, second, head = random.split(key, 4)
    params = {
        "stem": convolution(stem, 1), "head": random.normal(head, (CHANNELS, 10)) / CHANNELS**0.5,
        "first": hx.vmap(convolution)(random.split(first, BLOCKS)),
        "second": hx.vmap(convolution)(random.split(second, BLOCKS)),
    }
    return params, (hnp.zeros((LAYERS, CHANNELS)), hnp.ones((LAYERS, CHANNELS)), hnp.zeros(LAYERS, "int32"))


def normalised(layer: Any, params: Any, x: Any) -> Any:
    """A convolution and a normalisation over all images of the batch."""
    x = lax.conv_general_dilated(x[None], params["kernel"], (1, 1), "SAME", dimension_numbers=LAYOUT)[0]
    mean = lax.pmean(x.mean((0, 1)), "batch")
    variance = lax.pmean(((x - mean) ** 2).mean((0, 1)), "batch")
    mean, variance = hx.perform(Moments(), layer, mean, variance)
    return params["scale"] * (x - mean) * lax.rsqrt(variance + 1e-5) + params["shift"]


def logits(params: Any, image: Any) -> Any:
    """The network, for one image."""

    @hx.checkpoint
    def block(x: Any, each: Any) -> Any:
        layer, first, second = each
        inner = nn.relu(normalised(layer, first, x))
        return nn.relu(x + normalised(layer + 1, second, inner)), None

    x = nn.relu(normalised(0, params["stem"], image[..., None]))
    x, _ = lax.scan(block, x, (hnp.arange(1, LAYERS, 2), params["first"], params["second"]))
    return x.max((0, 1)) @ params["head"]


classify = hx.vmap(logits, in_axes=(None, 0), axis_name="batch")


def loss(params: Any, images: Any, labels: Any) -> Any:
    return -hnp.take_along_axis(nn.log_softmax(classify(params, images)), labels[:, None], 1).mean()


def train(params: Any, running: Any, images: Any, labels: Any, order: Any) -> Any:
    init, update, params_of = optimizers.adam(optimizers.polynomial_decay(5e-3, len(order), 1e-4))

    def step(carry: Any, each: Any) -> Any:
        (state, running), (number, rows) = carry, each
        # (state, result) of handle, the other way round: the state is what value_and_grad hands out beside the loss
        handled = lambda params: hx.handle(training, running)(loss)(params, images[rows], labels[rows])[::-1]
        (value, running), slopes = hx.value_and_grad(handled, has_aux=True)(params_of(state))
        return (update(number, slopes, state), running), value

    (state, running), losses = lax.scan(step, (init(params), running), (hnp.arange(len(order)), order))
    return params_of(state), running, losses


def accuracies(handler: hx.Handler, params: Any, batches: Any, labels: Any) -> np.ndarray:
    """The accuracies of batches, each of which is classified by itself."""
    scores = hx.jit(hx.vmap(hx.handle(handler)(classify), in_axes=(None, 0)))(params, batches)
    return np.asarray((scores.argmax(-1) == labels).mean(-1))


def draw(losses: Any, alone: dict[str, Any], picture: str) -> None:
    figure, (left, right) = pyplot.subplots(1, 2)
    left.semilogy(losses, linewidth=0.8)
    left.set(title="Training on 1,437 handwritten digits", xlabel="step", ylabel="cross entropy")
    for shift, (name, values) in zip((-0.2, 0.2), alone.items()):
        right.bar(np.arange(10) + shift, values, 0.38, label=name)
    right.set(title="Batches of one digit, by two handlers", xlabel="digit", ylabel="accuracy", xticks=range(10))
    right.set(ylim=(0, 1.19), yticks=np.linspace(0, 1, 6))
    right.legend(ncols=2, loc="upper center")
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, float]:
    images, labels = load_digits(return_X_y=True)
    shuffle, seen = np.random.default_rng(0), len(labels) * 4 // 5
    order = shuffle.permutation(len(labels))
    images, labels = (images[order] / 16).astype("float32").reshape(-1, 8, 8), labels[order].astype("int32")
    rows = np.stack([shuffle.permutation(seen)[:BATCH] for _ in range(20 if small else STEPS)])
    params, running, losses = hx.jit(train)(*initial(random.key(0)), images[:seen], labels[:seen], rows)
    test = accuracies(evaluating(running), params, images[None, seen:], labels[None, seen:])[0]
    one = np.stack([seen + np.flatnonzero(labels[seen:] == digit)[:25] for digit in range(10)])
    handlers = {"running statistics": evaluating(running), "those of the batch": of_the_batch}
    alone = {name: accuracies(handler, params, images[one], labels[one]) for name, handler in handlers.items()}
    found = {"first loss": losses[0], "loss": losses[-10:].mean(), "accuracy": test}
    found |= {f"one digit, {name}": values.mean() for name, values in alone.items()}
    found |= {"fewest updates": running[2].min(), "most updates": running[2].max()}
    print(", ".join(f"{name} {float(x):.4g}" for name, x in found.items()))
    if picture:
        draw(losses, alone, picture)
    return {name: float(x) for name, x in found.items()}


if __name__ == "__main__":
    run(main)
