"""Random tangents, and difference quotients, of whatever size slopes and numbers are."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Log
from handlax.testing import OPERATION_LAWS, Inapplicable
from handlax.testing.tangents import assert_quotients, drawn_tangents, pairing

LAWS = {law.name: law for law in OPERATION_LAWS}
DIFFERENCES, ADJOINT = LAWS["finite_differences"], LAWS["adjoint"]


def operation(evaluate, slope, **cells):
    """An operation of one operand ``x``, of which ``jvp`` multiplies the tangent by ``slope(x)``."""
    def jvp(op, primals, tangents):
        return hx.perform(op, *primals), slope(*primals) * tangents[0]

    own = {"result_type": lambda op, x: x, "evaluate": lambda op, x: np.asarray(evaluate(x)), "jvp": jvp}
    return hx.operation(type("Smooth", (), {**own, **cells}))()


def scaled_sine(factor, slope):
    """``factor * sin(x)``, of which ``jvp`` multiplies the slope by ``slope``."""
    return operation(lambda x: factor * np.sin(x), lambda x: factor * slope * hnp.cos(x))


@pytest.mark.parametrize("factor", [1e-5, 1.0, 1e7])
def test_a_slope_is_checked_whatever_its_size(factor):
    draws = [[np.array([0.5, -2.0, 3.0])]]
    DIFFERENCES.check(scaled_sine(factor, 1.0), draws)
    for slope in (-1.0, 1.001):
        with pytest.raises(AssertionError, match="derivative by operand 0"):
            DIFFERENCES.check(scaled_sine(factor, slope), draws)


def test_where_there_is_no_quotient_nothing_is_asked_of_the_slope():
    DIFFERENCES.check(Log(), [[np.array([-1.0, 2.0])]])
    with pytest.raises(Inapplicable, match="no result has a difference quotient"):
        DIFFERENCES.check(Log(), [[np.array([-1.0])]])


@pytest.mark.parametrize("x", [np.array([2e-9, 7e-9]), np.array(1e-12)], ids=["1e-9", "1e-12"])
def test_slopes_at_tiny_operands_are_checked(x):
    """Where a pole is nearer than the first distance."""
    DIFFERENCES.check(operation(np.log, lambda x: 1 / x), [[x]])
    with pytest.raises(AssertionError, match="derivative by operand 0"):
        DIFFERENCES.check(operation(np.log, lambda x: -1 / x), [[x]])


def test_slopes_that_are_small_beside_results_are_checked():
    """Where a result is rounded by more than the slope times the first distance."""
    for x in (np.array(0.3), np.array([-0.7, 0.2, 0.9])):
        DIFFERENCES.check(doubled_minus(-1.7e9), [[x]])
        with pytest.raises(AssertionError, match="derivative by operand 0"):
            DIFFERENCES.check(doubled_minus(-1.7e9, -2.0), [[x]])
    with pytest.raises(Inapplicable, match="lost in rounding"):
        DIFFERENCES.check(doubled_minus(-1e15, -2.0), [[x]])


def test_nothing_is_asked_of_the_slope_at_a_kink():
    relu = operation(lambda x: np.maximum(x, 0), lambda x: hnp.where(x > 0, 1.0, 0.0))
    DIFFERENCES.check(relu, [[np.array([0.0, 1.0, -2.0])]])
    with pytest.raises(Inapplicable, match="bends"):
        DIFFERENCES.check(relu, [[np.array(0.0)]])


def test_bodies_are_evaluated_in_their_own_precision():
    (scan,) = hx.make_program(lambda v: hx.lax.scan(lambda c, y: (c * y, c + y), np.float32(1), v))(
        np.ones(3, "float32")).eqns
    DIFFERENCES.check(scan.op, [[np.float32(2), np.array([0.5, 1.5, -1.0], "float32")]])


def test_what_is_not_finite_has_no_adjoint():
    """Of an operation of elements, and where an element that is not finite is summed with others."""
    root = lambda x: 0.5 / hnp.sqrt(x)
    ADJOINT.check(operation(np.sqrt, root), [[np.array([-1.0, 0.0, 4.0])]])
    total = operation(
        lambda x: np.sqrt(x).sum(-1), None, result_type=lambda op, x: hx.ArrayType(x.shape[:-1], x.dtype),
        jvp=lambda op, xs, dxs: (hx.perform(op, *xs), (root(xs[0]) * dxs[0]).sum(-1)))
    ADJOINT.check(total, [[np.array([[-1.0, 4.0], [1.0, 9.0]])]])
    with pytest.raises(Inapplicable, match="no derivative is finite"):
        ADJOINT.check(operation(np.sqrt, root), [[np.array(-1.0)]])


def scaled(factor, transpose):
    """``factor * x``, with a transpose."""
    return operation(
        lambda x: factor * x, None, jvp=lambda op, xs, dxs: (hx.perform(op, *xs), hx.perform(op, *dxs)),
        transpose=lambda op, ct, x: transpose(ct))


@pytest.mark.parametrize("factor", [1e-200, 1e-11, 1e11])
def test_a_transpose_is_checked_whatever_its_size(factor):
    for x in (np.array(2.0), np.array([1.0, -3.0])):
        ADJOINT.check(scaled(factor, lambda ct: factor * ct), [[x]])
        for wrong in (-factor, 1.001 * factor):
            with pytest.raises(AssertionError, match="<u, Jv> ="):
                ADJOINT.check(scaled(factor, lambda ct, wrong=wrong: wrong * ct), [[x]])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_transpose_that_is_not_linear_is_found(sign):
    with pytest.raises(AssertionError, match="<u, Jv> ="):
        ADJOINT.check(scaled(2.0, lambda ct: sign * 2 * abs(ct)), [[np.array(1.0)]])


def doubled_minus(offset, slope=2.0):
    """``2 x - offset``, of which ``jvp`` has another slope."""
    return operation(lambda x: 2 * x - offset, lambda x: slope)


@pytest.mark.parametrize("offset", [0.0, 3.4e9], ids=["large results", "small results"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_at_large_numbers_are_checked(offset, dtype):
    """Where rounding an operand, or a result, is more than a step of fixed length."""
    draws = [[np.array([1.7e9, -1.3e9, 1.1e9], dtype)], [np.array(1.7e9, dtype)]]
    DIFFERENCES.check(doubled_minus(offset), draws)
    with pytest.raises(AssertionError, match="derivative by operand 0"):
        DIFFERENCES.check(doubled_minus(offset, 2.01), draws)


def test_half_the_distance_is_evaluated_only_where_a_quotient_is_another_one():
    distances = []

    def moved(distance, jump=0.0):
        distances.append(distance)
        return [np.array([2.0, jump * (distance > 0)]) * (1 + distance)]

    assert_quotients([np.array([2.0, 0.0])], moved)
    assert distances == [1e-6, -1e-6]
    distances.clear()
    assert_quotients([np.array([2.0, 0.0])], lambda distance: moved(distance, 1.0))  # nothing is asked where it jumps
    assert distances == [1e-6, -1e-6, 5e-7, 0.0, -5e-7]
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        assert_quotients([np.array([2.1, 0.0])], moved)
    with pytest.raises(Inapplicable, match="no result has a difference quotient"):
        assert_quotients([np.array([0.0])], lambda distance: [np.array([float(distance > 0)])])


def test_a_quotient_of_infinite_results_is_none():
    """And no warning."""
    with pytest.raises(Inapplicable):
        assert_quotients([np.array([1.0])], lambda distance: [np.array([np.inf])])


def scaled_by(x, factor):
    return x * x.dtype.type(factor)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_derivatives_in_16_bits_are_as_exact_as_operands_of_16_bits(dtype):
    draws = [[np.array([2.9, -1.7, 0.4, 1.1]).astype(hx.dtypes.canonical(dtype))]]
    wave = lambda slope: operation(
        lambda x: np.sin(scaled_by(x, 100)), lambda x: slope(x) * hnp.cos(100 * x), exempt={"transpose": "none"})
    LAWS["narrow_derivatives"].check(wave(lambda x: 100), draws)
    with pytest.raises(AssertionError, match="in 16 bits"):
        LAWS["narrow_derivatives"].check(wave(lambda x: 3000 if x.dtype == dtype else 100), draws)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_compiled_is_as_exact_as_operands_are(dtype):
    """Near a root, where all digits are lost; and at a jump, which explains no difference."""
    near_root = lambda offset: operation(
        lambda x: x * x - 2, None, decompose=lambda op, x: (x - 2**0.5) * (x + 2**0.5) + offset)
    x = np.asarray(2**0.5, dtype)
    LAWS["compiled"].check(near_root(0), [[x]])
    with pytest.raises(AssertionError, match="compiled, against NumPy"):
        LAWS["compiled"].check(near_root(1e-4), [[x]])
    with pytest.raises(AssertionError, match="compiled, against NumPy"):
        LAWS["compiled"].check(operation(np.floor, None, decompose=lambda op, x: hnp.floor(x) - 1), [[np.ones_like(x)]])


def test_tangents_have_the_dtypes_of_their_arrays():
    xs = [np.ones((2, 3), dtype) for dtype in ("float64", "float16", "complex64", "int32", "bool")]
    tangents = drawn_tangents(3, *xs)
    assert [(dx.shape, dx.dtype) for dx in tangents] == [
        ((2, 3), x.dtype if x.dtype.kind in "fc" else hx.dtypes.float0) for x in xs]
    assert np.all(tangents[2].imag != 0) and all(np.abs(dx).max() <= 2**0.5 for dx in tangents[:3])
    assert np.array_equal(drawn_tangents(3, xs[0])[0], tangents[0])
    assert not np.array_equal(drawn_tangents(4, xs[0])[0], tangents[0])


def test_a_pairing_is_the_real_part_of_a_sum_in_64_bits():
    u, v = np.array([1 + 2j, 3j], "complex64"), np.array([2j, 1.0], "complex64")
    integers = np.zeros(2, hx.dtypes.float0)
    assert pairing([u, integers], [v, integers]) == -4.0
    assert pairing([np.array([1.0, 1.0], "float16")], [np.array([2048.0, 1.0], "float16")]) == 2049.0
