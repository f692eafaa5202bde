"""Arguments of JAX's that have no meaning here are refused, never ignored."""

import pytest

import handlax as hx
from handlax import lax, nn, random
from handlax import numpy as hnp
from handlax.errors import BadArgument

KEY = random.key(0)
X = hnp.ones((2, 3))


@pytest.mark.parametrize("call", [
    lambda s: lax.broadcast(X, (2,), out_sharding=s),
    lambda s: lax.reshape(X, (6,), out_sharding=s),
    lambda s: lax.broadcasted_iota("int32", (2,), 0, out_sharding=s),
    lambda s: lax.reduce(X, 0.0, lax.add, (0,), out_sharding=s),
    lambda s: lax.reduce_max(X, (0,), out_sharding=s),
    lambda s: hnp.zeros(2, out_sharding=s),
    lambda s: hnp.full_like(X, 1, out_sharding=s),
    lambda s: hnp.asarray(X, out_sharding=s),
    lambda s: hnp.arange(3, out_sharding=s),
    lambda s: hnp.reshape(X, 6, out_sharding=s),
    lambda s: hnp.repeat(X, 2, out_sharding=s),
    lambda s: hnp.einsum("ij->j", X, out_sharding=s),
    lambda s: X.reshape(6, out_sharding=s),
    lambda s: X.flatten(out_sharding=s),
    lambda s: X.at[0].get(out_sharding=s),
    lambda s: X.at[0].set(1.0, out_sharding=s),
    lambda s: random.normal(KEY, (2,), out_sharding=s),
    lambda s: random.randint(KEY, (2,), 0, 3, out_sharding=s),
    lambda s: random.permutation(KEY, 3, out_sharding=s),
    lambda s: nn.initializers.glorot_uniform()(KEY, (2, 3), out_sharding=s),
])
def test_a_sharding_of_the_result_is_refused_and_none_is_not(call):
    call(None)
    call(hx.typeof(X).sharding)
    with pytest.raises(BadArgument, match=r"sharding of the result must be None, .* got 'x'"):
        call("x")


@pytest.mark.parametrize("make", [
    lambda axes: hx.grad(lambda x: x, reduce_axes=axes),
    lambda axes: hx.value_and_grad(lambda x: x, reduce_axes=axes),
    lambda axes: hx.vjp(lambda x: x, 1.0, reduce_axes=axes),
    lambda axes: hx.linear_transpose(lambda x: x, 1.0, reduce_axes=axes),
])
def test_derivatives_are_not_summed_over_axes_by_themselves(make):
    make(())
    with pytest.raises(BadArgument, match="reduce_axes must be left out, got"):
        make(("i",))


@pytest.mark.parametrize("given", [{"axis_env": [("i", 2)]}, {"abstracted_axes": {0: "n"}}])
def test_a_program_is_recorded_for_known_axes(given):
    with pytest.raises(BadArgument, match=r"make_program: .* must be left out"):
        hx.make_program(lambda x: x, **given)
