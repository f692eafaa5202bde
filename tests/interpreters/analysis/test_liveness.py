"""How much memory a program holds, equation by equation."""

import numpy as np
import pytest
from helpers.random_programs import programs
from hypothesis import given

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.control.lanes import Lanes
from handlax.effects.control.loops import Scan
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.program import Program
from handlax.effects.types.array_type import array_type
from handlax.interpreters.analysis.liveness import liveness

V = array_type((1000,), np.dtype("float32"))
BYTES = 4000


def recorded(f, count=1):
    return hx.make_program(f)(*[hx.ShapeDtypeStruct((1000,), "float32")] * count)


def needed_after(program, i):
    """The bytes of the values made up to equation ``i`` that are used later, by looking at everything."""
    ends = np.cumsum([len(made) if op.multiple_results else 1 for op, made in zip(program.ops, program.types)])
    first, end = len(program.in_types), len(program.in_types) + int(ends[i])
    used = {n for args in program.args[i + 1 :] for n in args} | set(program.outs)
    return sum(program.type_of(n).nbytes for n in range(first, end) if n in used)


@given(programs(effects=True))
def test_after_an_equation_live_what_is_needed_later(program):
    found = liveness(program)
    assert found.after == tuple(needed_after(program, i) for i in range(len(program)))
    assert all(after <= during <= found.peak for after, during in zip(found.after, found.during))
    held = [*program.in_types, *[const.type for const in program.consts]]
    assert found.held == sum(t.nbytes for t in held)


def test_a_chain_holds_two_values_at_a_time():
    found = liveness(recorded(lambda x: hnp.sin(hnp.cos(hnp.tan(x)))))
    assert found.during == (BYTES, 2 * BYTES, 2 * BYTES)
    assert found.after == (BYTES,) * 3
    assert (found.held, found.peak, found.at) == (BYTES, 2 * BYTES, 1)


def test_what_is_kept_for_later_adds_up():
    def f(x):
        a, b, c = hnp.sin(x), hnp.cos(x), hnp.tan(x)
        return a * b * c

    found = liveness(recorded(f))
    assert [n // BYTES for n in found.during] == [1, 2, 3, 4, 3]
    assert [n // BYTES for n in found.after] == [1, 2, 3, 2, 1]


def test_the_last_use_of_every_value_is_known():
    program = recorded(lambda x: (hnp.sin(x), hnp.cos(hnp.sin(x)))[1])
    assert liveness(program).last == (1, -1, 2, 3)


def test_a_call_needs_what_its_body_needs():
    body = recorded(lambda x: hnp.sin(hnp.cos(hnp.tan(x))))
    program = Program([V], [Call((body,))], [(0,)], [body.out_types], [1])
    assert liveness(program).during == (2 * BYTES,)


@pytest.mark.parametrize(("op", "peak"), [
    (lambda body: Lanes((body,), 0, 5), 5 * 2 * BYTES),  # the iterations hold their values at once
    (lambda body: Scan((body,), 0, 1, 5), BYTES + 2 * BYTES),  # one after the other, beside the result
])
def test_lanes_hold_the_values_of_all_and_a_loop_those_of_one(op, peak):
    body = recorded(lambda x: hnp.sin(hnp.cos(hnp.tan(x))))
    made = op(body)
    operand = made.stacked(V) if made.runs == "lanes" else V
    program = Program([operand], [made], [(0,)], [made.result_type(operand)], [1])
    assert liveness(program).during == (peak,)


def test_a_program_without_equations_needs_nothing():
    found = liveness(recorded(lambda x: x))
    assert (found.peak, found.at, found.during, found.held) == (0, None, (), BYTES)
