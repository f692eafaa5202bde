"""The time in each named scope."""

import pytest

import handlax as hx
from handlax import errors, lax, profiler
from handlax import numpy as hnp

X = hnp.ones((256, 256))


def network(x):
    with hx.named_scope("products"):
        x = lax.scan(lambda c, _: (c @ x * 1e-3, None), x, None, length=8)[0]
    with hx.named_scope("small"):
        return hnp.sin(x[:2])


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, lambda f: hx.jit(hx.grad(lambda x: f(x).sum()))])
def test_the_time_of_a_scope_is_that_of_its_kernels(wrap):
    seconds = profiler.scope_times(wrap(network))(X)
    assert {*seconds} <= {"", "products", "small"} and all(value > 0.0 for value in seconds.values())
    assert max(seconds, key=seconds.get) == "products"


def test_a_profile_is_recorded_alone():
    with profiler.trace(), pytest.raises(errors.ProfilerMisuse, match="one profile"):
        profiler.scope_times(network)(X)


def test_a_scope_may_have_any_name():
    names = ['a "b"', "it's", "back\\slash", "Größe", "jit(f)", "a/b"]

    def f(x):
        for name in names:
            with hx.named_scope(name):
                x = hnp.tanh(x @ x)
        return x

    assert {*profiler.scope_times(f)(X)} - {""} == {*hx.costs(f)(X).by_scope()} == {*names}


class Wrapped:
    """A compiled function of a library: it holds ours, and is called otherwise."""

    def __init__(self, held):
        self.held = held

    def __call__(self, *args):
        return self.held(*args)

    def lower(self, *args):
        return Wrapped(self.held.lower(*args))

    def compile(self):
        return Wrapped(self.held.compile())


def test_a_compiled_function_of_a_library_is_timed():
    seconds = profiler.scope_times(Wrapped(hx.jit(network)))(X)
    assert max(seconds, key=seconds.get) == "products"
    with pytest.raises(errors.BadArgument, match="must have a text, got Wrapped"):
        profiler.scope_times(Wrapped(Wrapped(hx.jit(network))))(X)
