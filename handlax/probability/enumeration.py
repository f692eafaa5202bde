"""Exact enumeration of the values of all sample sites, with the rest of the program evaluated for each.

    worlds = enumerate_values(f)(*args)
    worlds.values[i], worlds.log_prob[i]       the result of f in world i, and the log-probability of that world
    log_evidence(f)(*args)                     the log-probability of the observations in all worlds, by tables

A world is one combination of values of all sample sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import nn
from .. import numpy as hnp
from ..effects.base.errors import CannotCross
from ..effects.base.tracebacks import unnamed_boundary
from ..effects.base.wrapping import wraps
from ..effects.core.arrays import perform
from ..effects.core.operation import effect
from ..effects.operations.foundations.shapes import reshape
from ..effects.trees import pytrees
from ..effects.trees.registration import frozen_node
from ..effects.types.array_type import ArrayType
from ..interpreters.handlers.handle import handle
from ..interpreters.handlers.handler import ctl, handler
from ..interpreters.transformations.vmap import vmap_leaves
from .sites import DRAWN, Sample, need_open_sites

__all__ = ["Worlds", "enumerate_values", "log_evidence"]


@frozen_node
class Worlds:
    """All worlds (combinations of sample sites' values) of a program along a first axis: results and joint
    log-probabilities.
    """

    values: Any
    log_prob: Any

    @property
    def log_evidence(self) -> Any:
        """The log-probability of the observations: logsumexp over all worlds."""
        return nn.logsumexp(self.log_prob)

    @property
    def probabilities(self) -> Any:
        """The probability of each world given the observations."""
        return nn.softmax(self.log_prob)

    def expectation(self, g: Callable[[Any], Any] = lambda y: y) -> Any:
        """The mean of ``g(y)`` over the results ``y`` of the program, given the observations."""
        weights = self.probabilities
        return pytrees.map(lambda y: hnp.tensordot(weights, y, 1), vmap_leaves(g)(self.values))


def _enumerate(resume: Any, s: Any, op: Any, *leaves: Any) -> Worlds:
    """The worlds of the rest of the program for all values of a sample site; ``s`` is the log-probability so far."""
    parts = op.parts(leaves)
    if op.kind != DRAWN:
        return resume(s + parts.log_prob(parts.value).sum(), parts.value)
    choices = _values_of("enumerate_values", op, parts)
    worlds = vmap_leaves(lambda value: resume(s + parts.log_prob(value).sum(), value))(choices)
    return pytrees.map(lambda x: reshape(x, (x.type.shape[0] * x.type.shape[1], *x.type.shape[2:])), worlds)


def _values_of(who: str, op: Any, parts: Any) -> Any:
    """All values of a sample site, along a first axis. Raises: CannotCross: there are infinitely many."""
    if parts.dist.values is None:
        raise CannotCross(
            f"{who}: the site {op.label!r} has no finite list of values, it is {type(parts.dist).__name__}.",
            hint="give it a value: condition or substitute.",
        )
    return _combinations(parts.dist.values, math.prod(op.shape), op.shape)


def _combinations(values: Any, copies: int, shape: tuple[int, ...]) -> Any:
    """All arrays of shape (*shape, *batch) with elements from ``values``, along a first axis."""
    count, *batch = values.type.shape
    numbers = copies * math.prod(batch)
    rows = hnp.broadcast_to(values.reshape(count, 1, -1), (count, copies, math.prod(batch))).reshape(count, numbers)
    at = hnp.stack(hnp.meshgrid(*[hnp.arange(count)] * numbers, indexing="ij"), -1).reshape(-1, numbers)
    return rows[at, hnp.arange(numbers)].reshape(-1, *shape, *batch)


WORLDS = handler(
    {Sample: ctl(_enumerate)},
    returns=lambda s, y: Worlds(pytrees.map(lambda x: hnp.expand_dims(x, 0), y), hnp.expand_dims(s, 0)),
)


def enumerate_values(f: Callable[..., Any], *, unroll: bool = False) -> Callable[..., Worlds]:
    """``f`` in all its worlds, one for every combination of values of its sample sites.

        enumerate_values(f)(*args).expectation() == the mean of f(*args), given its observations

    The sites must be ``Bernoulli`` or ``Categorical``, or have a value. The rest of the program is vectorised over the
    values of a site: the work grows with the number of worlds, the size of the program does not.

    Args:
        unroll: loops of known length are unrolled; else sites in them are refused. ``log_evidence`` sums over them
            without enumeration.

    Raises: CannotCross: a site has infinitely many values, or is inside a loop or a plate.

    >>> from handlax import probability as hp
    >>> def two():
    ...     a, b = hp.sample("a", hp.Bernoulli(0.5)), hp.sample("b", hp.Bernoulli(0.25))
    ...     return a + b
    >>> float(enumerate_values(two)().expectation())
    0.75
    """
    need_open_sites("enumerate_values", f)

    @wraps(f)
    @unnamed_boundary
    def enumerated(*args: Any, **kwargs: Any) -> Worlds:
        return handle(WORLDS, hnp.asarray(0.0), unroll=unroll)(f)(*args, **kwargs)

    enumerated.answers_sites = True
    return enumerated


# k = the number of one of the values of a site, which have these log-probabilities
@effect(vmap="per_lane")
class Alternative:
    """The effect of a sample site whose values are known: which of them it has."""

    def result_type(op, log_probs):
        return ArrayType((), "int32")


# the log-probability of the program is greater by a number
@effect(vmap="per_lane")
class Likelihood:
    """The effect of an observation: its log-probability."""

    def result_type(op, log_prob):
        return None


def _alternatives(op: Any, *leaves: Any) -> Any:
    """A sample site as a choice among its values, an observation as its log-probability."""
    parts = op.parts(leaves)
    if op.kind != DRAWN:
        perform(Likelihood(), parts.log_prob(parts.value).sum())
        return parts.value
    choices = _values_of("log_evidence", op, parts)
    log_probs = vmap_leaves(lambda value: parts.log_prob(value).sum())(choices)
    return choices[perform(Alternative(), log_probs)]


SITES = handler({Sample: _alternatives})
EVIDENCE = handler(
    {
        Alternative: ctl(
            lambda resume, op, log_probs: nn.logsumexp(log_probs + vmap_leaves(resume)(hnp.arange(log_probs.shape[0]))),
            support=lambda op, log_probs: log_probs.shape[0],
        ),
        Likelihood: ctl(lambda resume, op, log_prob: log_prob + resume(None)),
    },
    returns=lambda y: 0.0,
)


def log_evidence(f: Callable[..., Any]) -> Callable[..., Any]:
    """The logarithm of the probability of the observations of ``f``, summed over all values of its other sites.

        log_evidence(f)(*args) == enumerate_values(f, unroll=True)(*args).log_evidence

    The result of ``f`` does not matter. A ``scan`` is summed out in the order of the chain, as by the forward
    algorithm: its carry may depend on the values of the last iterations, not on all of them, and the body is evaluated
    for all combinations of these.

    Raises: CannotCross: a site has infinitely many values, or is in a plate; the carry of a loop depends on all values
    that were drawn.
    Source: Rabiner, "A tutorial on hidden Markov models" (1989), section III.

    >>> from handlax import lax, probability as hp
    >>> def coins(seen):
    ...     def step(previous, y):
    ...         state = hp.sample("state", hp.Bernoulli(hnp.where(previous == 1, 0.9, 0.2)))
    ...         hp.observe("y", hp.Bernoulli(hnp.where(state == 1, 0.7, 0.4)), y)
    ...         return state, None
    ...     lax.scan(step, 0, seen)
    >>> round(float(log_evidence(coins)(hnp.array([1, 1, 0]))), 4)
    -2.2807
    """
    need_open_sites("log_evidence", f)

    @wraps(f)
    @unnamed_boundary
    def summed(*args: Any, **kwargs: Any) -> Any:
        return handle(EVIDENCE)(handle(SITES)(f))(*args, **kwargs)

    summed.answers_sites = True
    return summed
