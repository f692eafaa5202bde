"""Samplers without a key argument: each call uses a fresh key, which the nearest ``seed`` gives.

    seed(f, key)(*args)          f, whose calls of  keyless.normal(shape)  mean  random.normal(fresh_key(), shape)

A fresh key is derived from the names of the functions that lead to it, or from the name given to ``fresh_key``, and
from the indices of loops and of lanes of ``vmap``. Draws of one name are numbered in order. All keys are distinct, also
in ``scan``, ``while_loop``, ``cond``, ``jit`` and ``vmap``.

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

from ..interpreters.library.effectful.random_streams import fresh_key as fresh_key
from ..interpreters.library.effectful.random_streams import seed as seed
from . import basic_samplers, choices, rejection_samplers, transformed_samplers, truncated_normals


def _keyless(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function ``f(key, ...)`` without its first parameter, for which each call gives a fresh key."""

    @functools.wraps(f)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        return f(fresh_key(), *args, **kwargs)

    signature = inspect.signature(f)
    parameters = list(signature.parameters.values())[1:]
    drawn.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    drawn.__doc__ = f"``random.{f.__name__}`` with a fresh key."
    drawn.__module__ = __name__
    return drawn


bernoulli = _keyless(basic_samplers.bernoulli)
beta = _keyless(rejection_samplers.beta)
bits = _keyless(basic_samplers.bits)
categorical = _keyless(choices.categorical)
cauchy = _keyless(transformed_samplers.cauchy)
chisquare = _keyless(rejection_samplers.chisquare)
choice = _keyless(choices.choice)
dirichlet = _keyless(rejection_samplers.dirichlet)
exponential = _keyless(transformed_samplers.exponential)
gamma = _keyless(rejection_samplers.gamma)
gumbel = _keyless(transformed_samplers.gumbel)
laplace = _keyless(transformed_samplers.laplace)
logistic = _keyless(transformed_samplers.logistic)
multivariate_normal = _keyless(transformed_samplers.multivariate_normal)
normal = _keyless(basic_samplers.normal)
permutation = _keyless(choices.permutation)
poisson = _keyless(rejection_samplers.poisson)
rademacher = _keyless(basic_samplers.rademacher)
randint = _keyless(basic_samplers.randint)
t = _keyless(rejection_samplers.t)
truncated_normal = _keyless(truncated_normals.truncated_normal)
uniform = _keyless(basic_samplers.uniform)
