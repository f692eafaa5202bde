"""Closure conversion: captured values become leading inputs, and the results stay the same."""

import numpy as np

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.programs.closure_conversion import close, close_all
from handlax.effects.programs.program import interpret

LARGE = hnp.arange(1000.0)


def test_a_large_constant_becomes_an_input_and_a_small_one_stays():
    program = hx.make_program(lambda x: hnp.sum(LARGE) * x + 2.0)(3.0)
    closed, captured = close(program)
    assert captured[0] is LARGE and closed.in_types == (LARGE.type, *program.in_types)
    assert all(const.type.nbytes <= 8 for const in closed.consts) and close(program) is close(program)
    x = hnp.float32(3.0)
    assert float(interpret(closed, [*captured, x])[0]) == float(interpret(program, [x])[0])


def test_programs_that_are_closed_together_have_the_same_leading_inputs():
    other = hnp.arange(1000.0) + 1
    programs = [hx.make_program(f)(1.0) for f in (lambda x: LARGE * x, lambda x: other - LARGE + x, lambda x: x + x)]
    closed, captured = close_all(programs)
    assert [x is y for x, y in zip(captured, (LARGE, other), strict=True)] == [True, True]
    assert {p.in_types[:2] for p in closed} == {(LARGE.type, other.type)}
    for before, after in zip(programs, closed):
        x = hnp.ones(before.in_types[0].shape, before.in_types[0].dtype)
        np.testing.assert_array_equal(interpret(after, [*captured, x])[0], interpret(before, [x])[0])


def test_a_program_without_captures_is_itself():
    program = hx.make_program(lambda x: x * 2.0)(1.0)
    assert close(program) == (program, ()) and close_all((program,))[0] == (program,)
