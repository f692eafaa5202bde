"""Random numbers without keys: each call draws with a key of its own, from the nearest ``seed``.

    seed(f, key)(*args)          f, whose calls of  keyless.normal(shape)  mean  random.normal(fresh_key(), shape)

A key is named by the calls that lead to its draw, and by the number of the run in loops and lanes: a new draw changes
no other, and all are distinct in ``scan``, ``while_loop``, ``cond``, ``jit`` and ``vmap``.

>>> from handlax import lax, random
>>> from handlax.random import keyless
>>> def walk(n): return lax.scan(lambda x, _: (x + keyless.normal(), x), 0.0, None, n)[1]
>>> keyless.seed(walk, random.key(0))(3).shape
(3,)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..interpreters.library.streams import fresh_key as fresh_key
from ..interpreters.library.streams import seed as seed
from . import choices, draws, rejections


def _keyless(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a key as one of fresh keys."""

    @functools.wraps(f)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        return f(fresh_key(), *args, **kwargs)

    signature = inspect.signature(f)
    parameters = list(signature.parameters.values())[1:]
    drawn.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    drawn.__doc__ = f"``random.{f.__name__}`` with a fresh key."
    drawn.__module__ = __name__
    return drawn


bernoulli = _keyless(draws.bernoulli)
beta = _keyless(rejections.beta)
bits = _keyless(draws.bits)
categorical = _keyless(choices.categorical)
cauchy = _keyless(draws.cauchy)
chisquare = _keyless(rejections.chisquare)
choice = _keyless(choices.choice)
dirichlet = _keyless(rejections.dirichlet)
exponential = _keyless(draws.exponential)
gamma = _keyless(rejections.gamma)
gumbel = _keyless(draws.gumbel)
laplace = _keyless(draws.laplace)
logistic = _keyless(draws.logistic)
multivariate_normal = _keyless(draws.multivariate_normal)
normal = _keyless(draws.normal)
permutation = _keyless(choices.permutation)
poisson = _keyless(rejections.poisson)
rademacher = _keyless(draws.rademacher)
randint = _keyless(draws.randint)
t = _keyless(rejections.t)
truncated_normal = _keyless(draws.truncated_normal)
uniform = _keyless(draws.uniform)
