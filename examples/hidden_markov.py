"""Exact inference in a hidden Markov model: by enumeration of all paths, and by the forward algorithm.

    python examples/hidden_markov.py

The model is one function. ``enumerate_values`` runs it in all its worlds at once, one for each path of hidden states,
by a handler whose clause resumes the program for every value of a site. The forward algorithm knows the structure, and
sums in the order of the chain. Both give the same numbers, and the same gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax import probability as hp

Params = dict[str, Any]

PARAMS: Params = {
    "start": hnp.log(hnp.array([0.6, 0.3, 0.1])),
    "move": hnp.log(hnp.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])),
    "level": hnp.array([-1.0, 0.0, 2.0]),
}
SEEN = hnp.array([-0.8, 0.1, 1.7, 2.2, 0.3, -1.1])


def model(params: Params, seen: Any) -> list[Any]:
    """A path of hidden states, each observed as a level with noise. Returns the states."""
    states: list[Any] = []
    for t, y in enumerate(seen):
        logits = params["start"] if t == 0 else params["move"][states[-1]]
        states.append(hp.sample(f"state{t}", hp.Categorical(logits=logits)))
        hp.observe(f"seen{t}", hp.Normal(params["level"][states[-1]], 0.5), y)
    return states


def looped(params: Params, seen: Any) -> Any:
    """``model`` as a scan, with one site for all states and one for all observations: for sampling and scoring."""

    def step(logits: Any, y: Any) -> Any:
        state = hp.sample("state", hp.Categorical(logits=logits))
        hp.observe("seen", hp.Normal(params["level"][state], 0.5), y)
        return params["move"][state], state

    return lax.scan(step, params["start"], seen)[1]


def forward(params: Params, seen: Any) -> Any:
    """The logarithm of the probability of the observations.

    Source: Rabiner, A tutorial on hidden Markov models (1989), section III.
    """
    move = nn.log_softmax(params["move"], -1)
    shown = hp.Normal(params["level"], 0.5).log_prob(seen[:, None])

    def step(alpha: Any, row: Any) -> Any:
        return nn.logsumexp(alpha[:, None] + move, 0) + row, None

    return nn.logsumexp(lax.scan(step, nn.log_softmax(params["start"], -1) + shown[0], shown[1:])[0])


def posterior(params: Params, seen: Any) -> Any:
    """The probability of each state at each time, as a derivative of the forward algorithm by the evidence."""
    shown = hp.Normal(params["level"], 0.5).log_prob(seen[:, None])
    move, start = nn.log_softmax(params["move"], -1), nn.log_softmax(params["start"], -1)

    def evidence(shown: Any) -> Any:
        step = lambda alpha, row: (nn.logsumexp(alpha[:, None] + move, 0) + row, None)
        return nn.logsumexp(lax.scan(step, start + shown[0], shown[1:])[0])

    return hx.grad(evidence)(shown)


def main() -> None:
    worlds = hx.jit(lambda params: hp.enumerate_values(model)(params, SEEN))(PARAMS)
    print(f"{worlds.log_prob.shape[0]} paths of {len(SEEN)} states")
    assert worlds.log_prob.shape == (3 ** len(SEEN),)

    exact, summed = float(worlds.log_evidence), float(forward(PARAMS, SEEN))
    print(f"log-evidence: {exact:.5f} by enumeration, {summed:.5f} by the forward algorithm")
    assert abs(exact - summed) < 1e-4

    marginals = np.stack(worlds.expectation(lambda states: [nn.one_hot(state, 3) for state in states]))
    assert np.allclose(marginals, np.asarray(posterior(PARAMS, SEEN)), atol=1e-4)
    print("most probable states:", marginals.argmax(-1))

    by_worlds = hx.jit(hx.grad(lambda p: hp.enumerate_values(model)(p, SEEN).log_evidence))(PARAMS)
    by_chain = hx.grad(forward)(PARAMS, SEEN)
    assert all(np.allclose(by_worlds[name], by_chain[name], atol=1e-4) for name in PARAMS)

    path = hp.seed(looped, random.key(1))(PARAMS, SEEN)
    score, _ = hp.log_density(looped, {"state": path})(PARAMS, SEEN)
    at = [i for i, states in enumerate(zip(*worlds.values)) if [int(s) for s in states] == np.asarray(path).tolist()]
    assert abs(float(score) - float(worlds.log_prob[at[0]])) < 1e-4  # one world's density, in the loop and unrolled


if __name__ == "__main__":
    main()
