"""Random tangents, and difference quotients, of whatever size slopes and numbers are."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Log
from handlax.testing import OPERATION_LAWS, Inapplicable
from handlax.testing.tangents import assert_quotients, drawn_tangents, pairing

(DIFFERENCES,) = [law for law in OPERATION_LAWS if law.name == "finite_differences"]


def scaled_sine(factor, slope):
    """``factor * sin(x)``, of which ``jvp`` multiplies the slope by ``slope``."""
    @hx.operation
    class ScaledSine:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return np.asarray(factor * np.sin(x))

        def jvp(op, primals, tangents):
            (x,), (dx,) = primals, tangents
            return hx.perform(op, x), factor * slope * hnp.cos(x) * dx

    return ScaledSine()


@pytest.mark.parametrize("factor", [1e-5, 1.0, 1e7])
def test_a_slope_is_checked_whatever_its_size(factor):
    draws = [[np.array([0.5, -2.0, 3.0])]]
    DIFFERENCES.check(scaled_sine(factor, 1.0), draws)
    for slope in (-1.0, 1.001):
        with pytest.raises(AssertionError, match="derivative by operand 0"):
            DIFFERENCES.check(scaled_sine(factor, slope), draws)


def test_where_there_is_no_quotient_nothing_is_asked_of_the_slope():
    DIFFERENCES.check(Log(), [[np.array([-1.0, 2.0])], [np.array(1e-7)]])


def doubled_minus(offset, slope=2.0):
    """``2 x - offset``, of which ``jvp`` has another slope."""
    @hx.operation
    class DoubledMinus:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return np.asarray(2 * x - offset)

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), slope * tangents[0]

    return DoubledMinus()


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
    assert distances == [1e-6, -1e-6, 5e-7, -5e-7]
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        assert_quotients([np.array([2.1, 0.0])], moved)
    with pytest.raises(Inapplicable, match="no result has a difference quotient"):
        assert_quotients([np.array([0.0])], lambda distance: [np.array([float(distance > 0)])])


def test_a_quotient_of_infinite_results_is_none():
    """And no warning."""
    with pytest.raises(Inapplicable):
        assert_quotients([np.array([1.0])], lambda distance: [np.array([np.inf])])


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
