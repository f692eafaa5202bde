"""Domains: values lie in them, drawn by Hypothesis or by a random generator."""

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import handlax as hx
from handlax.operations import Add, Log, SelectN
from handlax.testing.strategies import Domain, Operands, arrays

KINK = Domain(-2.0, 3.0, apart=(0.0, 1.0), margin=0.25)
DTYPES = ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]


def check(domain, x):
    """All elements lie in the domain, rounded to their dtype."""
    wide = np.asarray(x).astype(np.float64).ravel()
    if hx.dtypes.is_floating(x.dtype):
        near = 4 * float(hx.dtypes.finfo(x.dtype).eps)
        for point in domain.apart:
            assert (np.abs(wide - point) >= domain.margin - near).all()
        assert ((wide >= domain.low - near) & (wide <= domain.high + near)).all()
    elif x.dtype != bool:
        for point in domain.apart:
            assert (np.abs(wide - point) >= domain.margin).all()
        assert ((wide >= domain.low) & (wide <= domain.high)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_values_lie_in_their_domain(dtype, data):
    x = data.draw(arrays(dtype, domain=KINK))
    assert x.dtype == dtype
    check(KINK, x)
    check(KINK, KINK.draw(dtype, (4, 3), np.random.default_rng(0)))


@pytest.mark.parametrize(("domain", "dtype"), [
    (Domain(0.2, 0.8), "int32"), (Domain(-0.5, 0.5, apart=(0.0,)), "int32"), (Domain(-3, -1), "uint8"),
    (Domain(-0.05, 0.05, apart=(0.0,)), "float64"),
])
def test_a_domain_without_values_is_refused(domain, dtype):
    for draw in (lambda: domain.draw(dtype, (3,), np.random.default_rng(0)), lambda: domain.elements(dtype)):
        with pytest.raises(hx.errors.BadArgument, match=f"there must be a value of {dtype} between"):
            draw()
    assert np.dtype(dtype) not in Operands(Add(), (domain, Domain())).dtypes


def test_overlapping_margins_and_negative_ends():
    domain = Domain(-2.5, 2.5, apart=(0.3, 0.0), margin=1.0)
    for dtype in ("int32", "float64"):
        check(domain, domain.draw(dtype, (99,), np.random.default_rng(0)))
    assert set(Domain(-1.0, -0.5).draw("int32", (9,), np.random.default_rng(0)).tolist()) == {-1}


def test_both_sides_of_a_kink_are_reached():
    for kind in (lambda x: x == -0.25, lambda x: x == 0.25, lambda x: 1.25 < x < 3):
        assert kind(find(KINK.elements("float32"), kind))


def test_imaginary_parts_have_a_domain_of_their_own():
    domain = Domain(0.0, 1.0, imaginary=(5.0, 6.0))
    assert find(domain.elements("complex64"), lambda z: True).imag >= 5
    z = domain.draw("complex64", (9,), np.random.default_rng(0))
    assert (z.imag >= 5).all() and (z.real <= 1).all()


def test_a_domain_may_fix_the_dtype_and_has_extremes_that_the_dtype_can_hold():
    rng = np.random.default_rng(0)
    assert find(arrays("float32", (1,), domain=Domain(dtype="int32")), lambda x: True).dtype == "int32"
    x = Domain(extremes=(300.0, 7.0)).with_extremes(np.zeros(99, "uint8"), rng)
    assert {*x.tolist()} == {0, 7}


def test_the_operands_of_an_operation_have_the_shapes_and_dtypes_of_elementwise_ones_by_default():
    logarithm, addition = Operands(Log(), (Domain(0.1, 3.0),)), Operands(Add(), (Domain(), Domain()))
    assert logarithm.dtypes == Log.dtypes and ((0, 2),) in logarithm.shapes
    assert ((), (2, 3)) in addition.shapes and ((3,), (3,)) in addition.shapes
    assert Operands(Add(), (Domain(), Domain()), (((2,), (2,)),)).shapes == (((2,), (2,)),)


def test_operands_are_drawn_each_from_its_domain():
    rng = np.random.default_rng(0)
    chosen = Operands(SelectN(), (Domain(dtype=bool), Domain(1.0, 2.0), Domain(-2.0, -1.0, extremes=(np.inf,))))
    which, low, high = chosen.draw("float32", ((), (90,), (90,)), rng, extremes=True)
    assert (which.dtype, low.dtype) == (bool, np.float32) and low.min() >= 1.0
    assert np.isinf(high).any() and high[np.isfinite(high)].max() <= -1.0
