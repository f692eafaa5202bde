"""Both passes of a function as one program: drawn, and smaller in memory where less is kept."""

from __future__ import annotations

import numpy as np

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.analysis.liveness import liveness
from handlax.interpreters.inspection.forward_backward import both_passes

X = np.linspace(0.0, 1.0, 64, dtype="float32")


def layers(wrap):
    layer = wrap(lambda x: hnp.sin(hnp.cos(hnp.sin(x)) * x))

    def f(x, n):
        for _ in range(6):
            x = layer(x)
        return hnp.sum(x), n + 1

    return f


def test_it_gives_results_and_cotangents_of_what_has_a_tangent():
    f = layers(hx.checkpoint)
    program = both_passes(f, (X, 3), {})
    value, gradient = program(X, 3, 1.0)
    np.testing.assert_allclose(value, f(X, 3)[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, hx.grad(lambda x: f(x, 3)[0])(X), rtol=1e-5)


def test_less_is_held_where_less_is_kept():
    whole, less = [both_passes(layers(wrap), (X, 3), {}) for wrap in (lambda f: f, hx.checkpoint)]
    assert liveness(less).peak < 0.7 * liveness(whole).peak


def test_the_picture_is_of_both_passes():
    f = layers(hx.checkpoint)
    picture = hx.ad_checkpoint.draw(f)(X, 3)
    assert picture.program == both_passes(f, (X, 3), {})
    assert picture.svg.count("checkpoint") >= 12
    assert "<svg" in picture.svg
