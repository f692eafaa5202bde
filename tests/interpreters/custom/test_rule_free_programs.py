"""Programs without rules compute the same, and are equal where the rules alone differed."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.custom.rule_free_programs import without_rules


def by_jvp():
    f = hx.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
    return lambda x: hx.jvp(hx.jit(f), (x,), (x,))


def by_vjp():
    f = hx.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (3.0 * ct,))
    return lambda x: hx.jvp(lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x), (x,), (x,))


def by_lanes():
    f = hx.custom_batching.custom_vmap(lambda x: x * x)
    f.def_vmap(lambda size, mapped, x: (f(x), mapped[0]))
    return lambda x: lax.cond(x > 0.0, f, hnp.sin, x)


@pytest.mark.parametrize("make", [by_jvp, by_vjp, by_lanes])
def test_functions_with_rules_that_are_made_again_have_equal_programs_without_them(make):
    one, other = (hx.make_program(make())(2.0) for _ in range(2))
    assert one != other and without_rules(one) == without_rules(other)
    np.testing.assert_array_equal(without_rules(one)(3.0), one(3.0))


def test_calls_that_the_compiler_may_replace_keep_their_names():
    program = hx.make_program(lax.composite(by_jvp(), "my.square"))(2.0)
    free = without_rules(program)
    assert free != program and [op.name for op in free.ops] == ["composite"]


def test_a_map_that_nothing_depends_on_is_not_recorded():
    f = hx.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * ct,))
    program = hx.make_program(lambda x: hx.jvp(f, (x,), (x,))[0])(2.0)
    assert without_rules(program)(3.0) == (9.0,)


def test_a_program_without_rules_is_itself():
    program = hx.make_program(hnp.sin)(1.0)
    assert without_rules(program) is program


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rules_of_rules_with_a_collective_under_vmap_have_second_derivatives_over_a_mesh(depth):
    """``f(x) = c x mean(x)`` for the sum of the lanes, with ``c = 1 + 2**2``."""

    def with_rule(f):
        g = hx.custom_vjp(f)
        g.defvjp(lambda x: (f(x), x), lambda x, ct: hx.vjp(f, x)[1](ct))
        return g

    f = lambda x: x * lax.pmean(x.sum(), "i") / 2
    for _ in range(depth):
        f = with_rule(f)
    lanes = lambda x: hx.vmap(f)(hnp.stack([x, 2 * x])).sum(0)
    over = hx.shard_map(lanes, mesh=hx.make_mesh((2,), ("i",)), in_specs=hx.P("i"), out_specs=hx.P("i"))
    along = lambda f: lambda x: hx.jvp(hx.grad(lambda x: (f(x) ** 2).sum()), (x,), (x,))[1]
    x = hnp.arange(4.0)
    assert hnp.allclose(hx.jit(along(over))(x), along(lambda x: 5 * x * x.mean())(x))
