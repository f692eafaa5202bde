"""Arguments of JAX's that have no meaning here are refused, never ignored."""

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument

X = hnp.ones((2, 3))


@pytest.mark.parametrize("call", [
    lambda s: hx.pure_callback(lambda x: x, X, X, sharding=s),
    lambda s: hx.experimental.io_callback(lambda x: x, X, X, sharding=s),
])
def test_a_sharding_of_what_the_host_gives_is_refused_and_none_is_not(call):
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
