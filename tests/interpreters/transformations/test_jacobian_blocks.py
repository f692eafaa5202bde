"""Jacobians with respect to values with a ragged axis: those of each lane, values and derivatives."""

import pytest
from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import numpy as hnp


def energy(x):
    return (x**3).sum() + hx.nn.logsumexp(hnp.append(x, 1.0))


def both(x, v):
    return hnp.cumsum(hnp.sin(x)) * v[0] + v[1], (x * v[2]).sum()


CASES = {
    "jacrev": (lambda x: hx.jacrev(lambda y: hnp.cumsum(hnp.sin(y)))(x[:, 0]) @ x, "rows", R),
    "jacfwd": (lambda x: hx.jacfwd(lambda y: hnp.cumsum(hnp.sin(y)))(x[:, 0]).T @ x, "rows", R),
    "one number": (lambda x: hx.jacfwd(lambda y: hnp.sin(y).sum() ** 2)(x[:, 0]), "rows", R),
    "two numbers": (
        lambda x: hx.jacrev(lambda y: hnp.stack([y.sum(), (y * y).sum()]))(x[:, 0]) @ x, "rows", 0),
    "by a vector": (lambda x, v: hx.jacfwd(lambda v: hnp.cos(x @ v))(v) + hx.jacrev(lambda v: hnp.sin(x @ v))(v),
                    "rows vector", R),
    "hessian": (lambda x: hx.hessian(energy)(x[:, 0]) @ x, "rows", R),
    "forward twice": (lambda x: hnp.diagonal(hx.jacfwd(hx.jacfwd(energy))(x[:, 0])), "rows", R),
    "several": (lambda x, v: [j.sum() for j in hx.tree.leaves(hx.jacrev(both, (0, 1))(x[:, 0], v))], "rows vector", 0),
    "several, forward": (
        lambda x, v: [j.sum() for j in hx.tree.leaves(hx.jacfwd(both, (0, 1))(x[:, 0], v))], "rows vector", 0),
}
test_eager_lanes, _ = law_of_lanes(CASES)
_, test_compiled_lanes = law_of_lanes({"jacrev": CASES["jacrev"]})


@pytest.mark.parametrize("jacobian", [hx.jacfwd, hx.jacrev, hx.hessian])
@pytest.mark.parametrize("out", [0, R])
def test_blocks_have_no_lanes(jacobian, out):
    f = hx.vmap(lambda x: x.sum() if out == 0 else x * x, R, out)
    x = hx.Ragged(hnp.arange(4.0), (2, 2))
    with pytest.raises(hx.errors.BadArgument, match=r"no lanes(.|\n)*x\.data"):
        jacobian(f)(x)
    if out == 0:
        blocks = jacobian(lambda data: f(hx.Ragged(data, (2, 2))))(x.data)
        assert blocks.shape == (2, 4) + (4,) * (jacobian is hx.hessian)
