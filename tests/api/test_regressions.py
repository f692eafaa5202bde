"""Cases that once gave a wrong answer or a misleading error."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.types import array_type


def test_types_take_scalar_types_and_names():
    assert array_type((), hnp.float32) is array_type((), "float32") is array_type((), np.dtype("float32"))


def test_effect_whose_answer_names_a_scalar_type_crosses_jit():
    @hx.effect(vmap="once")
    class Temperature:
        def result_type(op):
            return array_type((), hnp.float32)

    warm = hx.handler({Temperature: lambda op: hnp.float32(2.0)})
    softened = hx.jit(lambda x: x / hx.perform(Temperature()))
    assert hx.handle(warm)(softened)(1.0) == 0.5
    assert hx.handle(warm)(hx.grad(softened))(1.0) == 0.5


def test_heaviside_of_nan():
    x = np.array([-1.0, -0.0, 0.0, 2.0, np.nan, np.inf], "float32")
    for f in hnp.heaviside, hx.jit(hnp.heaviside):
        np.testing.assert_array_equal(f(x, np.float32(0.5)), np.heaviside(x, np.float32(0.5)))


def test_the_hint_at_vmap_does_not_ask_for_what_is_declared():
    @hx.effect(vmap="once")
    class Note:
        def result_type(op, x):
            return None

    with pytest.raises(hx.errors.CannotCross) as caught:
        hx.vmap(lambda x: hx.perform(Note(), x))(hnp.arange(3.0))
    assert caught.value.hint == "handle it inside: vmap(hx.handle(h)(f))."


def test_the_sign_of_a_negative_zero_is_a_negative_zero():
    for x in (hnp.float32(-0.0), hnp.bfloat16(-0.0)):
        assert np.signbit(np.asarray(hnp.sign(x)).astype(np.float32))
        assert np.signbit(np.asarray(hx.jit(hnp.sign)(x)).astype(np.float32))


@pytest.mark.parametrize(("x", "y"), [(1e-30, 1e-20), (1e30, 1e20), (1e-20, 1e-25), (3.0, -2.0)])
def test_the_derivative_of_a_quotient_squares_no_denominator(x, y):
    dx, dy = hx.grad(lambda x, y: x / y, (0, 1))(hnp.float32(x), hnp.float32(y))
    np.testing.assert_allclose([dx, dy], [1 / y, -x / y / y], rtol=1e-6)


def test_the_derivative_of_an_entry_of_a_weak_array_is_one_there():
    weak = hnp.full(3, 0.25)
    assert weak.weak_type
    np.testing.assert_array_equal(hx.grad(lambda x: x[0])(weak), [1, 0, 0])
    assert lax.pad(weak, 0, [(1, 0, 0)]).dtype == weak.dtype
