"""The forward and the backward pass as two functions."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

X, W = hnp.array([[1.0, 2.0]]), hnp.array([[3.0], [0.5]])


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("argnums", [0, (1, 0)])
def test_the_passes_are_those_of_vjp_and_are_traced_once(argnums, jitted):
    fwd, bwd = hx.fwd_and_bwd(lambda x, w, scale=1.0: (scale * hnp.sin(x) @ w, scale), argnums, True, jitted)
    assert hasattr(fwd, "lower") is hasattr(bwd, "lower") is jitted
    for times in (1.0, 2.0):
        with hx.no_tracing(times > 1):
            y, residuals, aux = fwd(times * X, W, scale=2.0)
            cts = bwd(residuals, hnp.array([[1.0]]))
        x = times * np.asarray(X)
        assert float(aux) == 2.0
        np.testing.assert_allclose(y, 2 * np.sin(x) @ np.asarray(W), rtol=1e-6)
        d_x, d_w = 2 * np.cos(x) * np.asarray(W).T, 2 * np.sin(x).T
        for got, expected in zip((cts,) if argnums == 0 else cts, (d_x,) if argnums == 0 else (d_w, d_x), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6)
