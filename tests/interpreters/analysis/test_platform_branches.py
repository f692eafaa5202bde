"""Programs for one platform."""

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.interpreters.analysis.platform_branches import for_platform

X = hnp.ones((4, 4))


def on_each(x):
    return lax.platform_dependent(x, cpu=lambda x: hnp.sin(x), default=lambda x: x @ x @ x)


WRAPS = [
    lambda f: f, hx.jit, lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    lambda f: lambda x: lax.platform_dependent(x, cpu=f, default=lambda x: x),
    lambda f: lambda x: hx.vmap(f)(x[None])[0],
]


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_function_for_a_platform_remains(wrap):
    program = hx.make_program(wrap(on_each))(X)
    cpu = for_platform(program, "cpu")
    assert hnp.array_equal(cpu(X)[0], program(X)[0])
    costs = hx.costs(cpu)(X)
    assert costs.operations["sin"] == 1 and "dot_general" not in costs.operations
    assert hx.costs(wrap(on_each))(X).operations == costs.operations
    assert for_platform(cpu, "cpu") == cpu


def test_a_program_for_other_platforms_and_one_that_depends_on_none():
    program = hx.make_program(on_each)(X)
    assert hx.costs(for_platform(program, "tpu"))(X).operations["dot_general"] == 2
    same = hx.make_program(hnp.sin)(X)
    assert for_platform(same, "cpu") is same
    only = hx.make_program(lambda x: lax.platform_dependent(x, tpu=hnp.sin))(X)
    with pytest.raises(errors.BadArgument, match="for 'cpu' must be given"):
        for_platform(only, "cpu")
