"""Derivatives that are right pass, and those that are wrong are found, in every mode and order."""

from functools import partial

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax.test_util import check_grads, check_jvp, check_vjp


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (hnp.sin, (0.5,)),
        (hnp.sin, (np.array([0.5], "bfloat16"),)),
        (lambda x, y: hnp.sum(hnp.tanh(x @ y)), (np.full((2, 3), 0.3, "float32"), np.full((3, 2), 0.2, "float32"))),
        (lambda z: z * z * hnp.exp(z), (np.full(3, 0.3 + 0.4j),)),
        (lambda x: hnp.exp(1j * x), (np.array([0.3]),)),
        (lambda t: {"a": t["x"] ** 3, "b": hnp.sum(t["x"]) * t["n"]}, ({"x": np.array([1.0, 2.0]), "n": 3},)),
    ],
)
def test_right_derivatives_pass(f, args):
    check_grads(f, args, order=2)
    check_grads(hx.jit(f), args, order=1)


@pytest.mark.parametrize("f", [hnp.conj, hnp.abs, hnp.real, hnp.imag])
def test_functions_that_are_not_holomorphic_pass(f):
    check_grads(f, (np.array([0.3 + 0.4j, -1 - 2j]),), order=1)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_wrong_derivatives_are_found(mode, dtype):
    f = hx.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], 2.1 * p[0] * t[0]))
    x = (np.array([2.0, 0.5]) * (1j if "c" in dtype else 1)).astype(dtype)
    with pytest.raises(AssertionError, match={"fwd": "JVP", "rev": "VJP"}[mode]):
        check_grads(f, (x,), order=1, modes=(mode,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_second_derivative_is_found(mode):
    twice = hx.custom_jvp(lambda x: 2 * x)
    twice.defjvp(lambda p, t: (2 * p[0], 3 * t[0]))
    f = hx.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (f(p[0]), twice(p[0]) * t[0]))
    check_grads(f, (1.5,), order=1, modes=(mode,))
    with pytest.raises(AssertionError):
        check_grads(f, (1.5,), order=2, modes=(mode,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_limits_that_are_given_replace_those_of_the_dtype(mode):
    steep, kinked = hx.custom_jvp(lambda x: x), lambda x: hnp.where(x < 1.05, x, 2 * x - 1.05)
    steep.defjvp(lambda p, t: (p[0], 1.05 * t[0]))
    check = partial(check_grads, args=(1.0,), order=1, modes=(mode,))
    check(steep, atol=0.2)
    check(steep, rtol=0.2)
    check(kinked)
    for f, limits in ((steep, {}), (kinked, {"eps": 0.4})):
        with pytest.raises(AssertionError):
            check(f, **limits)


def test_derivatives_that_are_given_are_checked():
    check_jvp(hnp.sin, lambda xs, dxs: (hnp.sin(xs[0]), hnp.cos(xs[0]) * dxs[0]), (0.5,))
    check_vjp(hnp.sin, lambda x: (hnp.sin(x), lambda ct: (hnp.cos(x) * ct,)), (0.5,))
    with pytest.raises(AssertionError, match="mine in JVP: value"):
        check_jvp(hnp.sin, lambda xs, dxs: (hnp.cos(xs[0]), hnp.cos(xs[0]) * dxs[0]), (0.5,), err_msg="mine")
    with pytest.raises(hx.errors.BadArgument, match="modes"):
        check_grads(hnp.sin, (0.5,), 1, modes=("forward",))
