"""Functions made of functions."""

import functools
import sys

import handlax as hx
from handlax.effects.base.wrapping import name_of, renamed, wraps


def test_name_signature_and_documentation_are_taken_over_and_attributes_are_not():
    def f(x: float) -> float:
        """The documentation."""
        return x

    f.lower = "of f alone"

    @wraps(f)
    def g(*args):
        return f(*args)

    assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "The documentation.", f)
    assert not hasattr(g, "lower")
    assert hasattr(hx.jit(f), "lower") and not hasattr(hx.grad(hx.jit(f)), "lower")


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
    assert not hasattr(g, "lower") and wraps(odd, attributes=True)(lambda x: x).lower == 1


def test_a_renamed_function_has_its_name_in_tracebacks():
    def function():
        return sys._getframe().f_code

    code = renamed(function, "other")()
    assert (function.__name__, code.co_name, code.co_qualname) == ("other",) * 3
