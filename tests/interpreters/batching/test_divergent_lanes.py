"""Branches and loops on which lanes diverge."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.core.columns import EVALUATE
from handlax.effects.operations.elementwise.comparison import SelectN
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.effects.programs.higher_order import HigherOrder
from handlax.testing.generator.unrolled import evaluated

COUNTS = np.array([3, 0, 5, 1], np.int32)


def powers(n):
    """A buffer of which every run writes one element."""

    def step(state):
        i, y, buffer = state
        return i + 1, y * 2.0, lax.dynamic_update_index_in_dim(buffer, y, i, 0)

    return lax.while_loop(lambda state: state[0] < n, step, (0, 1.0, hnp.zeros(6)))[2]


def triangle(n):
    """A loop in a loop, whose length differs from lane to lane and from run to run."""

    def outer(state):
        i, y = state
        return i + 1, lax.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + i), (0, y))[1]

    return lax.while_loop(lambda state: state[0] < n, outer, (0, 0))[1]


def pieces(n):
    """A loop in a loop that goes on with a buffer."""

    def outer(state):
        i, buffer = state
        write = lambda s: (s[0] + 1, lax.dynamic_update_index_in_dim(s[1], 10.0 * i + s[0], s[0], 0))
        return i + 1, lax.while_loop(lambda s: s[0] <= i, write, (0, buffer))[1]

    return lax.while_loop(lambda state: state[0] < n, outer, (0, hnp.zeros(6)))[1]


def equations(program):
    for equation in program.eqns:
        yield equation
        if isinstance(equation.op, HigherOrder):
            for body in equation.op.bodies:
                yield from equations(body)


def selected(program):
    """The shapes of what is selected."""
    return {e.outvars[0].type.shape for e in equations(program) if isinstance(e.op, SelectN)}


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [powers, triangle, pieces])
@pytest.mark.parametrize("transform", [lambda f: f, hx.jit])
def test_every_lane_of_a_loop_ends_with_its_own_result(f, transform):
    alone = np.stack([f(n) for n in COUNTS])
    np.testing.assert_array_equal(transform(hx.vmap(f))(COUNTS), alone)
    square = transform(hx.vmap(hx.vmap(f)))(COUNTS.reshape(2, 2))
    np.testing.assert_array_equal(square, alone.reshape(2, 2, *f(0).shape))


def test_of_a_buffer_the_row_that_a_run_writes_is_selected():
    assert selected(hx.make_program(hx.vmap(powers))(COUNTS)) == {(4,), (4, 1)}


def test_a_buffer_that_an_inner_loop_goes_on_with_is_not_selected():
    program = hx.make_program(hx.vmap(pieces))(COUNTS)
    assert (4, 6) not in selected(program)


def test_a_lane_that_has_ended_prolongs_no_inner_loop():
    def f(n, m):
        inner = lambda y: lax.while_loop(lambda s: s[0] < m, lambda s: (s[0] + 1, hnp.sin(s[1])), (0, y))[1]
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, inner(s[1])), (0, 1.0))[1]

    sines = []
    evaluate = EVALUATE.find(Sin)
    with evaluated(), hx.rules(evaluate={Sin: lambda op, x: sines.append(x) or evaluate(op, x)}):
        got = hx.vmap(f)(np.array([1, 5]), np.array([100, 2]))
        assert len(sines) == 100 + 4 * 2
        np.testing.assert_array_equal(got, [f(1, 100), f(5, 2)])


def test_a_loop_as_long_in_every_lane_is_not_made_to_differ():
    def f(n, m):
        inner = lambda y: lax.while_loop(lambda s: s[0] < m, lambda s: (s[0] + 1, s[1] * 2), (0, y))[1]
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, inner(s[1])), (0, 1))[1]

    program = hx.make_program(hx.vmap(f, (0, None)))(COUNTS, 2)
    assert "and" not in {e.op.name for e in equations(program)}
    np.testing.assert_array_equal(hx.vmap(f, (0, None))(COUNTS, 2), 4.0**COUNTS)


def test_an_equation_of_a_loop_of_lanes_keeps_its_line():
    program = hx.make_program(hx.vmap(powers))(COUNTS)
    found = {e.site.line for e in equations(program) if e.op.name == "mul"}
    assert found == {powers.__code__.co_firstlineno + 5}


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None


def test_lanes_that_go_by_themselves_meet_at_no_collective():
    def branches(x):
        return lax.cond(x > 1, lambda: (hx.perform(Tick()), lax.psum(x, "lanes"))[1], lambda: x)

    def loop(x):
        step = lambda s: (hx.perform(Tick()), (s[0] + 1, s[1] + lax.psum(x, "lanes")))[1]
        return lax.while_loop(lambda s: s[0] < x, step, (0.0, x))[1]

    ticks = hx.handler({Tick: lambda n, op: (n + 1, None)})
    for f, sums in ((branches, [0.0, 1.0, 3.0]), (loop, [0.0, 4.0, 8.0])):
        with pytest.raises(errors.CannotCross, match=r"(?s)alone.*tick.*collective over 'lanes'.*outside of it"):
            hx.handle(ticks, 0)(hx.vmap(f, axis_name="lanes"))(hnp.arange(3.0))
        _, found = hx.vmap(hx.handle(ticks, 0)(f), axis_name="lanes")(hnp.arange(3.0))
        assert found.tolist() == sums
