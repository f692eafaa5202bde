"""Functions made of functions."""

import handlax as hx
from handlax.effects.base.wrapping import wraps


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
