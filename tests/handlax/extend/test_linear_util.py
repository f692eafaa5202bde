"""Functions together with what is known of them."""

import pytest

from handlax.extend.linear_util import transformation, wrap_init


def test_a_wrapped_function_is_called_with_its_parameters():
    wrapped = wrap_init(divmod)
    assert wrapped.call_wrapped(7, 2) == wrapped(7, 2) == (3, 1) and wrapped.__name__ == "divmod"
    assert wrap_init(int, {"base": 2}, debug_info="info").call_wrapped("11") == 3


def test_a_transformation_stands_around_each_call_and_ends_with_it():
    open_calls = []

    @transformation
    def scaled(by, x, *, power=1):
        open_calls.append(x)
        try:
            y = yield (by * x,), {"power": power}
            yield y, by
        finally:
            open_calls.remove(x)

    def f(x, power):
        assert len(open_calls) == 1
        return (x + 1) ** power

    transformed = scaled(wrap_init(f), 3)
    assert transformed.call_wrapped(2, power=2) == (49, 3) and transformed.__name__ == "f"
    assert scaled(scaled(wrap_init(lambda x, power: x), 2), 3).call_wrapped(5) == ((30, 2), 3)
    with pytest.raises(TypeError):
        transformed.call_wrapped(2, power="no power")
    assert not open_calls
