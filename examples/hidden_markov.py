"""Exact inference in a hidden Markov model: by enumeration of all paths, by tables, and by the forward algorithm.

    python examples/hidden_markov.py

The model is one function. ``enumerate_values`` runs it in all its worlds at once, one for each path of hidden states,
by a handler whose clause resumes the program for every value of a site. The forward algorithm knows the structure, and
sums in the order of the chain. Both give the same numbers, and the same gradient.

Where the model is written as a ``scan``, a handler finds the structure itself: ``log_evidence`` sums over one hundred
states, and ``most_probable``, a handler of four lines, gives the path that Viterbi's algorithm gives.
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


@hx.effect(vmap="per_lane")
class State:
    """The hidden state at time t, which has these log-probabilities."""

    def result_type(op: Any, t: Any, log_probs: Any) -> Any:
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane")
class Shown:
    """What is seen, which has this log-probability."""

    def result_type(op: Any, log_prob: Any) -> Any:
        return None


def by_effects(params: Params, seen: Any) -> Any:
    """``looped`` in effects of its own, which say no more than what its handlers need."""
    move, start = nn.log_softmax(params["move"], -1), nn.log_softmax(params["start"], -1)
    shown = hp.Normal(params["level"], 0.5).log_prob(seen[:, None])

    def step(row: Any, each: Any) -> Any:
        t, log_probs = each
        state = hx.perform(State(), t, row)
        hx.perform(Shown(), log_probs[state])
        return move[state], None

    return lax.scan(step, start, (hnp.arange(len(seen)), shown))


def most_probable(length: int) -> hx.Handler:
    """The greatest log-probability of a path, and that path: Viterbi's algorithm, if the program is a loop."""

    def greatest(resume: Any, op: Any, t: Any, log_probs: Any) -> Any:
        scores, paths = hx.vmap(resume)(hnp.arange(len(log_probs)))
        best = (scores + log_probs).argmax()
        return (scores + log_probs)[best], paths[best].at[t].set(best)

    def scored(resume: Any, op: Any, log_prob: Any) -> Any:
        score, path = resume(None)
        return score + log_prob, path

    return hx.handler(
        {State: hx.ctl(greatest, support=lambda op, t, log_probs: log_probs.shape[0]), Shown: hx.ctl(scored)},
        returns=lambda y: (0.0, hnp.zeros(length, "int32")),
    )


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

    tables = hx.value_and_grad(lambda p: hp.log_evidence(looped)(p, SEEN))(PARAMS)
    assert abs(float(tables[0]) - exact) < 1e-4
    assert all(np.allclose(tables[1][name], by_chain[name], atol=1e-4) for name in PARAMS)

    best, path = hx.jit(hx.handle(most_probable(len(SEEN)))(by_effects))(PARAMS, SEEN)
    at_best = worlds.log_prob.argmax()
    print(f"most probable path: {path}, log-probability {float(best):.5f}")
    assert abs(float(best) - float(worlds.log_prob[at_best])) < 1e-4
    assert np.asarray(path).tolist() == [int(states[at_best]) for states in worlds.values]

    long = random.normal(random.key(2), (100,))
    summed = float(forward(PARAMS, long))
    by_tables = float(hp.log_evidence(looped)(PARAMS, long))
    print(f"of 3**{len(long)} paths: {by_tables:.3f} by tables, {summed:.3f} by the forward algorithm")
    assert abs(by_tables - summed) < 1e-3 * abs(summed)


if __name__ == "__main__":
    main()
