"""Costs of programs, in multiplications and additions."""

from __future__ import annotations

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.analysis.flops import program_flops

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 8))
W = RNG.normal(size=(8, 8)) / 3


def test_costs_count_products_elements_and_runs():
    count = lambda f, *xs: program_flops(hx.make_program(f)(*xs))
    assert count(lambda x, w: x @ w, X, W) == 2 * 16 * 8 * 8
    assert count(lambda x: hnp.sin(x).T.reshape(-1), X) == X.size
    assert count(lambda x: hnp.sum(x), X) == X.size
    looped = lambda x: lax.scan(lambda c, _: (hnp.sin(c), None), x, None, length=7)[0]
    assert count(looped, X) == 7 * X.size
    assert count(lambda x: lax.cond(x[0, 0] > 0, lambda x: hnp.sin(hnp.sin(x)), hnp.sin, x), X) >= 2 * X.size
