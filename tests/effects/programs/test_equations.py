"""Traversal of equations: numbers and types of results, and the equation that defines a value."""

from helpers.random_programs import programs
from hypothesis import given

import handlax as hx
from handlax import lax, numpy
from handlax.effects.control.loops import Scan
from handlax.effects.operations.elementwise.arithmetic import Mul


@given(programs(effects=True))
def test_results_are_numbered_in_order_and_have_the_types_of_the_program(program):
    steps = list(program.steps())
    assert [(op, args) for op, args, _, _ in steps] == list(zip(program.ops, program.args))
    assert [n for _, _, results, _ in steps for n in results] == list(range(len(program.in_types), program.count))
    for (op, _, results, types), made in zip(steps, program.types):
        assert len(results) == len(types) and op.from_results(types) == made
        assert tuple(types) == tuple(map(program.type_of, results))


@given(programs(effects=True))
def test_each_value_is_a_result_of_the_equation_that_defines_it(program):
    starts = program.starts()
    assert starts == [*[results.start for _, _, results, _ in program.steps()], program.count]
    found = {number: program.definition(number) for number in range(-len(program.consts), program.count)}
    assert {number for number, made in found.items() if made is None} == set(
        range(-len(program.consts), len(program.in_types))
    )
    assert [starts[made[0]] + made[1] for made in found.values() if made] == [n for n, made in found.items() if made]
    for i, (_, _, results, _) in enumerate(program.steps()):
        assert [found[n] for n in results] == [(i, k) for k in range(len(results))]


def test_an_equation_without_results_defines_nothing():
    @hx.effect
    class Note:
        def result_type(op, x):
            return None

    def noted(x):
        hx.perform(Note(), x)
        y = x * x
        hx.perform(Note(), y)
        return y

    program = hx.make_program(noted)(2.0)
    assert [list(results) for _, _, results, _ in program.steps()] == [[], [1], []]
    assert program.starts() == [1, 1, 2, 2] and program.definition(1) == (1, 0) and program.definition(0) is None


def test_what_an_operation_gives_is_a_result_alone_or_a_tuple_of_results():
    scan = next(iter(hx.make_program(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs))(numpy.ones(3)).ops))
    assert type(scan) is Scan and Mul().as_results(1) == (1,) and Mul().from_results([1]) == 1
    assert scan.as_results((1, 2)) == (1, 2) and scan.from_results([1, 2]) == (1, 2)


def test_the_program_of_a_single_body_is_among_the_parameters():
    outer = hx.make_program(lambda x: lax.scan(lambda c, _: (c * 2.0, None), x, length=3)[0])(1.0)
    (loop,) = outer.eqns
    assert loop.params["jaxpr"] is loop.op.bodies[0] and loop.params["jaxpr"].eqns[0].op == Mul()
    branches = hx.make_program(lambda x: lax.cond(x > 0, numpy.sin, numpy.cos, x))(1.0).eqns[-1]
    assert "jaxpr" not in branches.params
