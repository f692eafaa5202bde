"""Attention over paragraphs of 1 to 256 words, by ragged arrays and by padding: equal losses, a third of the memory.

The network reads a paragraph of Python's documentation, without what follows its 256th word (19 of 2,608 are longer),
and guesses the page where it stands. ``logits`` is written for one paragraph, and ``vmap`` maps it over a ``Ragged``,
in which the paragraphs of a batch stand one after the other and their lengths are values. The usual way,
``padded_logits``, needs a mask in the softmax and another one in the mean, and computes the padding too. The program
trains by both, compares the losses, and reads arithmetic and memory off both gradients: the memory is a third beside
padding to the longest paragraph of the batch, and a tenth beside padding to 256 words. In JAX one writes the masks.
"""

from __future__ import annotations

import pydoc_data.topics
import re
import time
from collections import Counter
from typing import Any

import numpy as np
from command_line import BLUE, GREEN, ORANGE, pyplot, run, save

import handlax as hx
from handlax import nn, random
from handlax import numpy as hnp

VOCABULARY, WIDTH, LONGEST, BATCH = 1000, 32, 256, 64

Params = dict[str, Any]


def logits(params: Params, words: Any) -> Any:
    """The logit of each page, from the words of one paragraph."""
    x = params["embedding"][words]
    scores = (x @ params["query"]) @ x.T
    x = x + nn.softmax(scores, axis=-1) @ x
    return x.mean(0) @ params["head"]


def padded_logits(params: Params, words: Any, present: Any) -> Any:
    """The same for a paragraph that is padded."""
    x = params["embedding"][words]
    scores = hnp.where(present, (x @ params["query"]) @ x.T, -hnp.inf)
    x = x + nn.softmax(scores, axis=-1) @ x
    return hnp.where(present[:, None], x, 0.0).sum(0) / present.sum() @ params["head"]


def cross_entropy(logits: Any, page: Any) -> Any:
    return nn.logsumexp(logits, -1).mean() - hnp.take_along_axis(logits, page[:, None], -1).mean()


def ragged_loss(params: Params, words: hx.Ragged, page: Any) -> Any:
    return cross_entropy(hx.vmap(logits, in_axes=(None, hx.ragged_axis))(params, words), page)


def padded_loss(params: Params, words: Any, present: Any, page: Any) -> Any:
    return cross_entropy(hx.vmap(padded_logits, in_axes=(None, 0, 0))(params, words, present), page)


def padded(lanes: list[np.ndarray], length: int = LONGEST) -> tuple[np.ndarray, np.ndarray]:
    present = np.arange(length) < np.array([*map(len, lanes)])[:, None]
    words = np.zeros(present.shape, "int32")
    words[present] = np.concatenate(lanes)
    return words, present


def paragraphs() -> tuple[list[np.ndarray], np.ndarray]:
    """The words of each paragraph of Python's documentation as numbers, and its page, shuffled."""
    pages = [[re.findall(r"\w+|[^\w\s]", part)[:LONGEST] for part in re.split(r"\n\s*\n", page) if part.strip()]
             for page in pydoc_data.topics.topics.values()]
    counts = Counter(word for page in pages for part in page for word in part)
    numbers = {word: i for i, (word, _) in enumerate(counts.most_common(VOCABULARY - 1), 1)}
    words = [np.array([numbers.get(word, 0) for word in part], "int32") for page in pages for part in page]
    page = np.repeat(np.arange(len(pages), dtype="int32"), [*map(len, pages)])
    order = np.random.default_rng(0).permutation(len(words))
    return [words[i] for i in order], page[order]


def initial(key: Any, pages: int) -> Params:
    shapes = {"embedding": (VOCABULARY, WIDTH), "query": (WIDTH, WIDTH), "head": (WIDTH, pages)}
    keys = random.split(key, len(shapes))
    return {name: random.normal(k, shape) / WIDTH**0.5 for k, (name, shape) in zip(keys, shapes.items())}


def train(gradient: Any, batches: list[Any], params: Params) -> np.ndarray:
    """Gradient descent on one batch after the other: its losses."""
    losses = []
    for batch in batches:
        value, slopes = gradient(params, *batch)
        params = hx.tree.map(lambda p, g: p - 3.0 * g, params, slopes)
        losses.append(float(value))
    return np.array(losses)


def cost(gradient: Any, *arguments: Any) -> dict[str, float]:
    """Millions of floating point operations, temporary memory in MiB, and milliseconds of processor time."""
    memory = gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes / 2**20
    clock = []
    for _ in range(10):
        clock.append(time.process_time())
        hx.block_until_ready(gradient(*arguments))
    milliseconds = 1000 * float(np.median(np.diff(clock)))
    return {"Mflop": hx.costs(gradient)(*arguments).flops / 1e6, "MiB": memory, "ms": milliseconds}


def draw(picture: str, lengths: list[int], costs: dict[str, dict[str, float]], losses: dict[str, np.ndarray]) -> None:
    figure = pyplot.figure(figsize=(9, 3.2))
    axes = figure.subplot_mosaic([["words", "Mflop", "training"], ["words", "MiB", "training"]])
    axes["words"].hist(lengths, bins=np.arange(0, LONGEST + 8, 8))
    axes["words"].set(title="Paragraphs of Python's documentation", xlabel="words", ylabel="paragraphs")
    for unit, quantity in (("Mflop", "arithmetic"), ("MiB", "memory")):
        bars = axes[unit].barh([*costs], [each[unit] for each in costs.values()], color=[BLUE, ORANGE, GREEN])
        axes[unit].bar_label(bars, fmt="%.0f", fontsize=7, padding=2)
        axes[unit].set(xlabel=f"{quantity} ({unit})")
        axes[unit].margins(x=0.15)
        axes[unit].invert_yaxis()
    axes["Mflop"].set_title(f"Gradient of a batch of {BATCH}")
    axes["training"].plot(losses["padded"], label="padded", linewidth=4, alpha=0.4)
    axes["training"].plot(losses["ragged"], label="ragged", linewidth=1)
    axes["training"].set(title="Training", xlabel="step", ylabel="cross entropy")
    axes["training"].legend()
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, Any]:
    words, page = paragraphs()
    params = initial(random.key(0), int(page.max()) + 1)
    batches = [(words[i : i + BATCH], page[i : i + BATCH]) for i in range(0, BATCH * (2 if small else 36), BATCH)]
    by_rows = [(hx.Ragged.from_list(lanes, longest=LONGEST), pages) for lanes, pages in batches]
    by_mask = [(*padded(lanes), pages) for lanes, pages in batches]
    epochs = 1 if small else 6
    ragged, masked = hx.jit(hx.value_and_grad(ragged_loss)), hx.jit(hx.value_and_grad(padded_loss))
    losses, same = train(ragged, by_rows * epochs, params), train(masked, by_mask * epochs, params)
    difference = float(np.abs(losses - same).max())
    print(f"loss from {losses[0]:.3f} to {losses[-1]:.3f}; ragged and padded differ by at most {difference:.1e}")

    lanes, pages = batches[0]
    longest = max(map(len, lanes))
    costs = {
        f"padded to {LONGEST}": cost(masked, params, *by_mask[0]),
        f"to {longest}, the longest": cost(masked, params, *padded(lanes, longest), pages),
        "ragged": cost(ragged, params, *by_rows[0]),
    }
    for name, each in costs.items():
        print(f"{name}:", ", ".join(f"{value:.1f} {unit}" for unit, value in each.items()))
    if picture:
        draw(picture, [*map(len, words)], costs, {"ragged": losses, "padded": same})
    return {"losses": losses, "difference": difference, "costs": [*costs.values()]}


if __name__ == "__main__":
    run(main)
