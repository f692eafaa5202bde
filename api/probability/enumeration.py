"""Exact enumeration: every site takes each of its values, and the rest of the program runs for each.

    worlds = enumerate_values(f)(*args)
    worlds.values[i], worlds.log_prob[i]       what f gives in the i-th world, and how probable that world is
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import nn
from .. import numpy as hnp
from ..effects import trees
from ..effects.errors import CannotCross
from ..effects.shapes import reshape
from ..effects.treenodes import register_dataclass
from ..effects.wrapping import wraps
from ..interpreters.handle import handle
from ..interpreters.handler import ctl, handler
from ..interpreters.mapping import vmap
from .sites import DRAWN, Sample, unanswered


@register_dataclass
@dataclass(frozen=True, eq=False)
class Worlds:
    """All worlds of a program along a first axis: what it gives in each, and the logarithm of its probability."""

    values: Any
    log_prob: Any

    @property
    def log_evidence(self) -> Any:
        """The logarithm of the probability of what was observed: of all worlds together."""
        return nn.logsumexp(self.log_prob)

    @property
    def probabilities(self) -> Any:
        """The probability of each world, given what was observed."""
        return nn.softmax(self.log_prob)

    def expectation(self, g: Callable[[Any], Any] = lambda y: y) -> Any:
        """The mean of ``g(y)`` over what the program gives, given what was observed."""
        weights = self.probabilities
        return trees.map(lambda y: hnp.tensordot(weights, y, 1), vmap(g)(self.values))


def _each(resume: Any, s: Any, op: Any, *leaves: Any) -> Worlds:
    parts = op.parts(leaves)
    if op.kind != DRAWN:
        return resume(s + parts.log_prob(parts.value).sum(), parts.value)
    if parts.dist.values is None:
        raise CannotCross(
            f"enumerate_values: the site {op.label!r} has no finite list of values, it is {type(parts.dist).__name__}.",
            hint="give it a value: condition or substitute.",
        )
    choices = _all(parts.dist.values, math.prod(op.shape), op.shape)
    worlds = vmap(lambda value: resume(s + parts.log_prob(value).sum(), value))(choices)
    return trees.map(lambda x: reshape(x, (x.type.shape[0] * x.type.shape[1], *x.type.shape[2:])), worlds)


def _all(values: Any, copies: int, shape: tuple[int, ...]) -> Any:
    """All arrays of values: each number of a site takes each of its values."""
    count, *batch = values.type.shape
    numbers = copies * math.prod(batch)
    rows = hnp.broadcast_to(values.reshape(count, 1, -1), (count, copies, math.prod(batch))).reshape(count, numbers)
    at = hnp.stack(hnp.meshgrid(*[hnp.arange(count)] * numbers, indexing="ij"), -1).reshape(-1, numbers)
    return rows[at, hnp.arange(numbers)].reshape(-1, *shape, *batch)


WORLDS = handler(
    {Sample: ctl(_each)},
    returns=lambda s, y: Worlds(trees.map(lambda x: hnp.expand_dims(x, 0), y), hnp.expand_dims(s, 0)),
)


def enumerate_values(f: Callable[..., Any]) -> Callable[..., Worlds]:
    """``f`` in all its worlds: one for every combination of values of its sites.

        enumerate_values(f)(*args).expectation() == the mean of f(*args), given what it observes

    The sites must be ``Bernoulli`` or ``Categorical``, or have their value. The rest of the program runs for all values
    of a site at once, so the work grows with the number of worlds, and the program does not.

    Raises: CannotCross: a site has infinitely many values, or stands in a loop or a plate: unroll it in Python.

    >>> from handlax import probability as hp
    >>> def two():
    ...     a, b = hp.sample("a", hp.Bernoulli(0.5)), hp.sample("b", hp.Bernoulli(0.25))
    ...     return a + b
    >>> float(enumerate_values(two)().expectation())
    0.75
    """
    unanswered("enumerate_values", f)

    @wraps(f)
    def enumerated(*args: Any, **kwargs: Any) -> Worlds:
        return handle(WORLDS, hnp.asarray(0.0))(f)(*args, **kwargs)

    enumerated.answers_sites = True
    return enumerated
