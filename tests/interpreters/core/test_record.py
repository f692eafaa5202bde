"""From an equation to the user's line, and to the handlers that it came through."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.stack import BASE, STACK, Run, inside, installed
from handlax.effects.operations.elementwise.transcendental import Cos, Sin
from handlax.effects.programs.program import interpret
from handlax.interpreters.core.record import Record


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def squared_sine(x):
    y = hnp.sin(x)
    return y * y


class Doubling(Run):
    """Answers every sine with twice the sine, outside."""

    __slots__ = ()

    def answer(self, op, operands):
        if type(op) is not Sin:
            return self.outer.answer(op, operands)
        site = self.cell.site
        if site is None:
            self.cell.site = self.labelled_site()
        try:
            with inside(self.outer):
                return 2.0 * hx.perform(op, *operands)
        finally:
            self.cell.site = site


def doubled(label, f):
    def run(*args):
        with installed(Doubling(STACK.get(), label)):
            return f(*args)

    return run


def test_what_nobody_rewrote_came_through_nothing():
    program = hx.make_program(squared_sine)(1.0)
    assert [(eqn.site.line, eqn.site.under) for eqn in program.eqns] == [
        (line_of(squared_sine, 1), ()),
        (line_of(squared_sine, 2), ()),
    ]


def test_what_a_handler_performs_instead_has_the_line_of_the_operation_and_names_the_handler():
    program = hx.make_program(doubled("twice", squared_sine))(1.0)
    assert [(eqn.op.name, eqn.site.under) for eqn in program.eqns] == [
        ("sin", ("twice",)),
        ("mul", ("twice",)),
        ("mul", ()),
    ]
    assert [eqn.site.line for eqn in program.eqns[:2]] == [line_of(squared_sine, 1)] * 2


def test_handlers_stand_innermost_first_and_those_outside_the_record_are_not_among_them():
    def outer(x):
        return doubled("inner", squared_sine)(x)

    programs = []

    def recording(x):
        programs.append(hx.make_program(doubled("middle", outer))(x))
        return x

    doubled("outermost", recording)(1.0)
    assert programs[0].eqns[0].site.under == ("inner", "middle")


def test_a_program_that_is_transformed_keeps_its_lines_and_says_by_what():
    program = hx.make_program(squared_sine)(1.0)
    derivative, _ = hx.jvp_program(program, [True])
    assert {type(eqn.op) for eqn in derivative.eqns} >= {Sin, Cos}
    lines = {line_of(squared_sine, 1), line_of(squared_sine, 2)}
    assert {(eqn.site.line in lines, eqn.site.under) for eqn in derivative.eqns} == {(True, ("jvp",))}
    lanes, _ = hx.batch_program(derivative, [0, None], 3)
    assert {eqn.site.under for eqn in lanes.eqns} == {("jvp", "vmap")}
    assert {eqn.site.under for eqn in hx.common_subexpressions(lanes).eqns} == {("jvp", "vmap")}


def test_a_tape_sees_its_own_boxes_alone_and_a_record_everything():
    assert Record(STACK.get(), "").records_everything
    assert not Doubling(STACK.get(), "").records_everything


def test_the_text_of_a_program_shows_what_an_equation_came_through():
    program, _ = hx.jvp_program(hx.make_program(squared_sine)(1.0), [True])
    assert f"sin a  # test_record.py:{line_of(squared_sine, 1)}, under jvp" in program.pretty_print(
        source_info=True
    )
    assert hx.parse_program(program.pretty_print(source_info=True)).unwrap() == program


def test_what_transformations_perform_in_place_of_an_operation_names_them_innermost_first():
    program = hx.make_program(hx.vmap(hx.grad(squared_sine)))(hnp.ones(3))
    lines = {line_of(squared_sine, 1), line_of(squared_sine, 2)}
    assert {(eqn.site.line in lines, eqn.site.under) for eqn in program.eqns} == {(True, ("grad", "vmap"))}


def test_a_handler_is_named_where_its_clause_answers():
    twice = hx.handler({Sin: lambda op, x: 2.0 * hx.perform(op, x)})
    program = hx.make_program(hx.handle(twice)(squared_sine))(1.0)
    assert [eqn.site.under for eqn in program.eqns] == [("handler(Sin)",), ("handler(Sin)",), ()]


def test_a_value_of_the_run_outside_is_refused_once_that_has_ended():
    outer = Record(BASE, "outer")
    (x,) = outer.inputs([hx.ArrayType((), np.dtype("float32"))])
    inner = Record(outer, "inner")
    assert inner.number(x) < 0  # a constant
    outer.ended = True
    with pytest.raises(hx.errors.EscapedBox):
        inner.number(x)


def test_a_program_that_is_recorded_for_operands_of_other_types_has_theirs():
    program = hx.make_program(lambda x: x * x)(np.float32(1.0))
    inlined = hx.make_program(lambda x: interpret(program, [x])[0])(1.0)
    assert str(program.out_types[0]) == "f32[]" and str(inlined.out_types[0]) == "f32[]~"
