"""A transformer that learns to write Python's documentation, with a cache of which its layers know nothing.

A layer performs an effect, ``Attend``, with its queries, keys and values, and a handler says what they attend to. Under
``whole``, which trains, every letter of a text attends to those before it, all at once. Under ``cached``, which writes,
a state has the keys and values of all layers so far, and one new letter attends to them. The state goes through the
scan over layers, ``write`` hands it from letter to letter, and ``vmap`` writes several texts at once. The two handlers
give the same scores, which is compared, at a price that ``hx.costs`` counts. Batches and letters are drawn without
keys. Without effects the cache is an argument and a result of every function between the sampler and the attention, or
a library's, whose scan it needs, and a flag says whether there is one.
"""

from __future__ import annotations

import pydoc_data.topics
import textwrap
from typing import Any

import numpy as np
from command_line import GREEN, pyplot, run, save

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.example_libraries import optimizers
from handlax.random import keyless

CONTEXT, BATCH, STEPS = 64, 16, 1500
LAYERS, HEADS, WIDTH = 3, 4, 64
LINES = [" ".join(line.split()) for topic in pydoc_data.topics.topics.values() for line in topic.splitlines()]
TEXT = " ".join(dict.fromkeys(line for line in LINES if "|" not in line))  # once each: what is kept back is new
LETTERS = "".join(sorted(set(TEXT)))
TEMPERATURE = 0.5
SLOPES = 0.25 ** hnp.arange(1.0, HEADS + 1)  # how fast each head forgets, in place of positions (Press et al. 2022)


@hx.effect(vmap="per_lane")
class Attend:
    """Ask for the means of the values by the queries of some layer."""

    def result_type(op, layer, queries, keys, values):
        return queries


def attention(positions: Any, queries: Any, keys: Any, values: Any) -> Any:
    """Causal attention of queries at these positions."""
    distances = positions[:, None] - hnp.arange(len(keys))
    scores = hnp.einsum("qhd,khd->hqk", queries, keys) / queries.shape[-1] ** 0.5 - SLOPES[:, None, None] * distances
    return hnp.einsum("hqk,khd->qhd", nn.softmax(hnp.where(distances >= 0, scores, -hnp.inf)), values)


whole = hx.handler({Attend: lambda op, layer, q, k, v: attention(hnp.arange(len(q)), q, k, v)})


def cached(position: Any) -> hx.Handler:
    """The letter at this position attends to all that its state has, to which it adds itself."""

    def attend(cache: Any, op: Attend, layer: Any, queries: Any, *new: Any) -> Any:
        cache = [old.at[layer, position].set(x[0]) for old, x in zip(cache, new)]
        return cache, attention(position[None], queries, *[x[layer] for x in cache])

    return hx.handler({Attend: attend})


def initial() -> Any:
    draw = lambda *shape: keyless.normal(shape) * shape[-2] ** -0.5
    shapes = {"attend": (WIDTH, 3 * WIDTH), "mix": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    return {"letters": draw(len(LETTERS), WIDTH), "layers": {name: draw(LAYERS, *s) for name, s in shapes.items()}}


def logits(params: Any, text: Any) -> Any:
    """The scores of what follows each letter of one text."""

    def layer(x: Any, each: Any) -> Any:
        number, w = each
        q, k, v = (nn.standardize(x) @ w["attend"]).reshape(len(x), 3, HEADS, -1).swapaxes(0, 1)
        x = x + hx.perform(Attend(), number, q, k, v).reshape(x.shape) @ w["mix"]
        return x + nn.gelu(nn.standardize(x) @ w["up"]) @ w["down"], None

    x, _ = lax.scan(layer, params["letters"][text], (hnp.arange(LAYERS), params["layers"]))
    return nn.standardize(x) @ params["letters"].T


def loss(params: Any, text: Any) -> Any:
    """Bits per letter, given those before it."""
    scores = nn.log_softmax(hx.handle(whole)(logits)(params, text[:-1]))
    return -hnp.take_along_axis(scores, text[1:, None], 1).mean() / np.log(2)


def train(text: Any, steps: int) -> Any:
    init, update, params_of = optimizers.adam(optimizers.polynomial_decay(4e-3, steps, 1e-4))
    texts = lambda: text[keyless.randint((BATCH, 1), 0, len(text) - CONTEXT) + hnp.arange(CONTEXT + 1)]

    def step(state: Any, number: Any) -> Any:
        mean = lambda params, texts: hx.vmap(loss, in_axes=(None, 0))(params, texts).mean()
        value, slopes = hx.value_and_grad(mean)(params_of(state), texts())
        return update(number, slopes, state), value

    state, losses = lax.scan(step, init(initial()), hnp.arange(steps))
    return params_of(state), losses


def write(params: Any, first: Any, length: int) -> Any:
    """A text of this length, and the scores by which its letters were drawn."""
    cache = [hnp.zeros((LAYERS, length, HEADS, WIDTH // HEADS))] * 2

    def step(carry: Any, position: Any) -> Any:
        letter, cache = carry
        cache, scores = hx.handle(cached(position), cache)(logits)(params, letter[None])
        following = keyless.categorical(scores[0] / TEMPERATURE)
        return (following, cache), (letter, scores[0])

    return lax.scan(step, (first, cache), hnp.arange(length))[1]


def price(params: Any, text: Any) -> float:
    """The cost of writing with a cache, as a part of what it costs to read the whole text for each letter."""
    by_cache = hx.costs(lambda params: keyless.seed(write, random.key(0))(params, text[0], len(text)))(params)
    by_letter = hx.costs(hx.handle(whole)(logits))(params, text)
    return by_cache.flops / (by_letter.flops * len(text))


def draw(losses: Any, test: float, texts: list[str], picture: str) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1, 1.2))
    left.plot(losses, linewidth=0.4, alpha=0.5, label="one batch")
    left.plot(range(10, len(losses) - 9), np.convolve(losses, np.ones(20) / 20, "valid"), label="mean of 20 batches")
    left.axhline(test, color=GREEN, linestyle="--", label="text kept back, at the end")
    left.set(title="Learning from the topics of pydoc", xlabel="step", ylabel="bits per letter", ylim=(0, None))
    left.legend()
    written = "\n\n".join(textwrap.fill(text, 66) + "..." for text in texts)
    right.text(0, 0.98, written, family="monospace", size=7.7, va="top", linespacing=1.35, parse_math=False)
    right.set_title("What it writes", loc="left")
    right.axis("off")
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, float]:
    text = np.array([LETTERS.index(letter) for letter in TEXT], "int32")
    kept = len(text) * 19 // 20
    params, losses = hx.jit(keyless.seed(train, random.key(0)), static_argnums=1)(text[:kept], 40 if small else STEPS)
    test = text[kept : len(text) - (len(text) - kept) % CONTEXT].reshape(-1, CONTEXT)
    test = hx.jit(hx.vmap(loss, in_axes=(None, 0)))(params, test).mean()
    writing = hx.jit(keyless.seed(hx.vmap(write, in_axes=(None, 0, None)), random.key(1)), static_argnums=2)
    letters, scores = writing(params, np.full(3, LETTERS.index("."), "int32"), 60 if small else 280)
    again = hx.vmap(hx.handle(whole)(logits), in_axes=(None, 0))(params, letters)
    texts = ["".join(LETTERS[i] for i in row[1:]).strip() for row in np.asarray(letters)]
    found = {
        "first loss": losses[0], "loss": losses[-20:].mean(), "test loss": test,
        "difference": abs(scores - again).max(), "price": price(params, letters[0]),
    }
    print(*texts, ", ".join(f"{name} {float(x):.4g}" for name, x in found.items()), sep="\n\n")
    if picture:
        draw(np.asarray(losses), float(test), texts, picture)
    return {name: float(x) for name, x in found.items()}


if __name__ == "__main__":
    run(main)
