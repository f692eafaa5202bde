"""ensure_compile_time_eval: what depends on no box is computed while tracing."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)) / 2


@hx.effect(vmap="per_lane", diff="stop")
class Draw:
    def result_type(op):
        return hnp.float64(0.0).type


draws = hx.handler({Draw: lambda n, op: (n + 1.0, hnp.sin(n))})


def test_what_depends_on_no_box_is_computed_while_tracing():
    @hx.jit
    def f(x):
        with hx.ensure_compile_time_eval():
            y = hx.jit(hnp.sin)(3.0)
            again = y * x  # depends on a box: it is recorded
            positive = bool(y > 0)
        return again if positive else x

    np.testing.assert_allclose(f(2.0), 2 * np.sin(3.0), rtol=1e-6)
    assert [op.name for op in f.trace(2.0).program.ops] == ["mul"]


@pytest.mark.parametrize("kind", [hx.custom_jvp, hx.custom_vjp, hx.custom_batching.custom_vmap])
def test_functions_with_rules_see_values_at_compile_time(kind):
    @kind
    def f(x):
        return x if x > 0 else -x  # concrete

    if kind is hx.custom_jvp:
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    elif kind is hx.custom_vjp:
        f.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    else:
        f.def_vmap(lambda size, in_batched, x: (x, True))

    @hx.jit
    def g(x):
        with hx.ensure_compile_time_eval():
            y = f(-3.0)
            assert y == 3.0
        return x * y

    assert g(2.0) == 6.0 and hx.grad(g)(2.0) == 3.0


def test_an_effect_at_compile_time_goes_to_its_handler():
    def f():
        with hx.ensure_compile_time_eval():
            return hx.perform(Draw())

    assert hx.handle(draws, 4.0)(f)()[0] == 5.0


def test_static_arguments_may_be_computed_with():
    @hx.checkpoint
    def f(x):
        with hx.ensure_compile_time_eval():
            if hnp.asarray(W)[0, 0] > 1e9:
                return x
        return -x

    assert f(1.0) == -1.0
