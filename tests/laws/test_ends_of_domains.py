"""Derivatives at the ends of domains: numbers or infinities, where the value is one and so are the slopes beside it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import numpy as hnp
from handlax.scipy import special, stats

# end -> points beside it; a function of which the slopes there are no NaN has one at the end
BESIDE = {
    -np.inf: (-1e30, -1e15), 0.0: (1e-30, 1e-15), 1.0: (1 - 2.0**-53, 1 - 2.0**-50), 2.0: (2 - 2.0**-52, 2 - 2.0**-48),
    np.inf: (1e30, 1e15),
}
# a name -> the function of the swept argument
ONE = """dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit gamma gammaln i0e i1e log_ndtr logit ndtr
ndtri spence"""
FUNCTIONS = {name: getattr(special, name) for name in ONE.split()} | {
    "gammainc(1, x)": lambda x: special.gammainc(1.0, x), "gammainc(2.5, x)": lambda x: special.gammainc(2.5, x),
    "gammaincc(1, x)": lambda x: special.gammaincc(1.0, x), "owens_t(1, a)": lambda a: special.owens_t(1.0, a),
    "owens_t(h, 1)": lambda h: special.owens_t(h, 1.0), "owens_t(0, a)": lambda a: special.owens_t(0.0, a),
    "poch(2.5, m)": lambda m: special.poch(2.5, m), "rel_entr(0, q)": lambda q: special.rel_entr(0.0, q),
    "kl_div(0, q)": lambda q: special.kl_div(0.0, q), "betainc(1, 2, x)": lambda x: special.betainc(1.0, 2.0, x),
    "xlogy(1, y)": lambda y: special.xlogy(1.0, y), "expn(2, x)": lambda x: special.expn(2, x),
    "vonmises.logpdf(1, kappa)": lambda kappa: stats.vonmises.logpdf(1.0, kappa),
}
SHAPES = {
    "beta": (1.0, 2.0), "cauchy": (), "chi2": (2.0,), "expon": (), "gamma": (1.0,), "gennorm": (1.5,), "gumbel_l": (),
    "gumbel_r": (), "laplace": (), "logistic": (), "norm": (), "pareto": (2.0,), "t": (3.0,), "uniform": (),
}
KINDS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
FUNCTIONS |= {
    f"{name}.{kind}": lambda x, name=name, kind=kind: getattr(getattr(stats, name), kind)(x, *SHAPES[name])
    for name in SHAPES for kind in KINDS if hasattr(getattr(stats, name), kind)
}
# products of 0 and infinity in a chain of functions, of which each has its derivatives
FACTORS = {
    "beta.pdf": [0.0, 1.0], "beta.logsf": [1.0], "cauchy.logcdf": [-np.inf], "cauchy.logsf": [np.inf],
    "norm.pdf": [-np.inf, np.inf], "gennorm.pdf": [-np.inf, np.inf], "gennorm.cdf": [-np.inf, 0.0, np.inf],
    "gumbel_l.ppf": [1.0], "gumbel_r.ppf": [0.0],
}
QUICK = ("erfcx", "ndtr", "ndtri", "gammainc(1, x)", "owens_t(1, a)", "cauchy.ppf", "gumbel_l.logcdf")


@pytest.mark.parametrize("name", rest_in_sweep(FUNCTIONS, QUICK))
def test_a_slope_at_an_end_is_a_number_where_those_beside_it_are(name):
    f = FUNCTIONS[name]
    ends, beside = np.array([*BESIDE]), np.array([*BESIDE.values()])
    forward = lambda x: hx.jvp(f, (x,), (hnp.ones_like(x),))[1]
    backward = hx.vmap(hx.grad(f))
    known = ~np.isnan(f(ends)) & ~np.isnan(forward(beside)).any(1)
    for slope in (forward, backward, hx.jit(backward)):
        assert set(ends[known & np.isnan(slope(ends))]) <= set(FACTORS.get(name, []))
