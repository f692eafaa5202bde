"""Functions together with what is known of them."""

from handlax.extend.linear_util import wrap_init


def test_a_wrapped_function_is_called_with_its_parameters():
    wrapped = wrap_init(divmod)
    assert wrapped.call_wrapped(7, 2) == wrapped(7, 2) == (3, 1) and wrapped.__name__ == "divmod"
    assert wrap_init(int, {"base": 2}, debug_info="info").call_wrapped("11") == 3
