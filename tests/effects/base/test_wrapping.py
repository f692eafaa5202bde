"""Functions made of functions."""

import functools
import sys

import pytest

import handlax as hx
from handlax.effects.base.wrapping import name_of, renamed, with_methods, wraps


def test_name_signature_documentation_and_attributes_are_taken_over():
    def f(x: float) -> float:
        """The documentation."""
        return x

    f.version = 2

    @wraps(f)
    def g(*args):
        return f(*args)

    assert (g.__name__, g.__doc__, g.__wrapped__, g.version) == ("f", "The documentation.", f, 2)


@pytest.mark.parametrize("wrap", [hx.grad, hx.vmap, hx.checkpoint, hx.custom_jvp, hx.make_jaxpr])
def test_methods_are_those_of_the_function_alone(wrap):
    def f(x):
        return x

    f.version = 2
    jitted = hx.jit(f)
    jitted.author = "a"
    made = wrap(jitted)
    assert (made.version, made.author) == (2, "a")
    assert jitted.version == 2 and hasattr(jitted, "lower") and not hasattr(made, "lower")
    again = wraps(with_methods(lambda x: x, {"own": 1}))(lambda x: x)
    assert not hasattr(again, "own")


class Odd:
    """An object."""

    __name__ = None

    def __init__(self):
        self.lower = 1

    def __call__(self, x):
        return x

    def __getattr__(self, name):
        raise ValueError(name)


def test_callables_without_a_name_have_that_of_their_class():
    odd = Odd()
    assert name_of(odd) == name_of(functools.partial(functools.partial(odd))) == "Odd"
    assert (name_of(name_of), name_of(len), name_of(Odd)) == ("name_of", "len", "Odd")
    g = wraps(odd)(lambda x: x)
    assert (g.__name__, g.__qualname__, g.__doc__, g.__wrapped__) == ("Odd", "Odd", "An object.", odd)
    assert g.lower == hx.vmap(odd).lower == 1


def test_a_renamed_function_has_its_name_in_tracebacks():
    def function():
        return sys._getframe().f_code

    code = renamed(function, "other")()
    assert (function.__name__, code.co_name, code.co_qualname) == ("other",) * 3
