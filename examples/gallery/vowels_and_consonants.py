"""A hidden Markov model that finds the vowels of English by itself, written once and read by its handlers.

Each letter is drawn from a hidden state, and each state from the one before, in an ordinary ``scan`` that performs
``sample`` (Cave & Neuwirth 1980). ``hp.seed`` draws text from it. ``hp.condition`` makes the letters of Python's
documentation its observations, and ``hp.log_evidence`` sums over the states in time linear in the length of the text,
so that ``grad`` trains the model. ``hp.enumerate_values`` goes through all paths of a word one by one, and finds the
same evidence, which averages over drawn paths approach. In NumPyro the chain is a scan of the library's own, whose
sites are marked for enumeration, and in a plain ``scan`` all iterations share one draw.
"""

from __future__ import annotations

import pydoc_data.topics
import re
import string
from collections.abc import Callable
from typing import Any

import numpy as np
from command_line import pyplot, run, save

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax import probability as hp

LETTERS = " " + string.ascii_lowercase
STATES = 2

Params = dict[str, Any]


def text(params: Params, length: int) -> Any:
    """Letters, each drawn from a hidden state, which is drawn from the state before."""

    def letter(state: Any, _: Any) -> tuple[Any, Any]:
        state = hp.sample("state", hp.Categorical(logits=params["move"][state]))
        return state, hp.sample("letter", hp.Categorical(logits=params["show"][state]))

    return lax.scan(letter, 0, None, length)[1]


def given(params: Params, letters: Any) -> Callable[[], Any]:
    """``text`` with these letters as its observations."""
    return hp.condition(lambda: text(params, len(letters)), {"letter": letters})


def evidence(params: Params, letters: Any) -> Any:
    """The log-probability of these letters, summed over all paths of hidden states."""
    return hp.log_evidence(given(params, letters))()


def step(state: Any, letters: Any) -> tuple[Any, Any]:
    """One step of Adam on the mean evidence of some lines; the loss is in nats per letter."""
    params, first, second, n = state
    loss = lambda params: -hx.vmap(evidence, in_axes=(None, 0))(params, letters).mean() / letters.shape[1]
    value, gradient = hx.value_and_grad(loss)(params)
    first = hx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = hx.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradient)
    moved = lambda p, m, v: p - 0.1 * (m / (1 - 0.9**n)) / (hnp.sqrt(v / (1 - 0.99**n)) + 1e-8)
    return (hx.tree.map(moved, params, first, second), first, second, n + 1.0), value


def train(lines: np.ndarray, steps: int) -> tuple[Params, Any]:
    keys = random.split(random.key(3))
    params = {
        "move": random.normal(keys[0], (STATES, STATES)),
        "show": random.normal(keys[1], (STATES, len(LETTERS))),
    }
    zeros = hx.tree.map(hnp.zeros_like, params)
    start = (params, zeros, zeros, 1.0)
    (params, *_), losses = hx.jit(lambda start: lax.scan(lambda s, _: step(s, lines), start, None, steps))(start)
    return params, losses


def every_path(params: Params, letters: np.ndarray) -> Any:
    """The evidence, by the probability of each path of states."""
    return hp.enumerate_values(given(params, letters), unroll=True)().log_evidence


def by_drawing(params: Params, letters: np.ndarray, count: int) -> Any:
    """Estimates of the evidence from 1, 2, ..., ``count`` drawn paths: the mean probability of the letters on them."""

    def one(key: Any) -> Any:
        sites, _ = hp.seed(hp.trace(given(params, letters)), key)()
        return hnp.exp(sites["letter"].log_prob.sum())

    drawn = hx.jit(hx.vmap(one))(random.split(random.key(1), count))
    return hnp.log(hnp.cumsum(drawn) / hnp.arange(1, count + 1))


def documentation(count: int, length: int = 64) -> np.ndarray:
    """Lines of ``length`` letters of the documentation that Python ships, as numbers, with a blank between words."""
    words = re.findall("[a-z]+", "".join(pydoc_data.topics.topics.values()).lower())
    numbers = np.array([LETTERS.index(c) for c in " ".join(words)], "int32")
    return numbers[: count * length].reshape(count, length)


def draw(picture: str, show: np.ndarray, estimates: np.ndarray, exact: float, word: str) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), width_ratios=(3, 2))
    order = np.argsort(show[0] - show[1])
    names = [LETTERS[i].replace(" ", "\u2423") for i in order]
    for state, sign in enumerate((1, -1)):
        left.bar(names, sign * 100 * show[state, order], color=f"C{state}", label=f"hidden state {state}")
    left.axhline(0, color="black", linewidth=0.8)
    left.set(title="What each hidden state shows, as learned", xlabel="letter", ylabel="probability (%)")
    left.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
    left.legend()
    right.semilogx(np.arange(1, len(estimates) + 1), estimates, label="by drawing paths")
    right.axhline(exact, color="black", linestyle="--", linewidth=1, label=f"by all {STATES ** len(word):,} paths")
    right.set(title=f'Evidence of "{word}"', xlabel="drawn paths", ylabel="log-probability")
    right.legend()
    save(figure, picture)


def main(small: bool = False, picture: str | None = None) -> dict[str, Any]:
    params, losses = train(documentation(300 if small else 1500), 120 if small else 400)
    show = np.asarray(nn.softmax(params["show"], -1))
    vowels = show[:, [LETTERS.index(c) for c in "aeiou"]]
    print(f"bits per letter: {losses[0] / np.log(2):.2f} at first, {losses[-1] / np.log(2):.2f} at the end")
    print("shown more by one state:", "".join(c for c, p in zip(LETTERS, show.T) if p[0] > p[1]).replace(" ", "_"))
    drawn = hp.seed(lambda: text(params, 60), random.key(5))()
    print("drawn from the model:", "".join(LETTERS[i] for i in drawn))

    word = "interpreter"
    letters = np.array([LETTERS.index(c) for c in word], "int32")
    exact, summed = float(every_path(params, letters)), float(evidence(params, letters))
    estimates = np.asarray(by_drawing(params, letters, 1000 if small else 20000))
    print(f"evidence of {word!r}: {summed:.4f} summed, {exact:.4f} by all paths, {estimates[-1]:.4f} by drawing")
    if picture:
        draw(picture, show, estimates, exact, word)
    return {"bits": float(losses[-1] / np.log(2)), "summed": summed, "exact": exact, "drawn": float(estimates[-1]),
            "vowels apart": bool((vowels[0] > vowels[1]).all() or (vowels[0] < vowels[1]).all())}


if __name__ == "__main__":
    run(main)
