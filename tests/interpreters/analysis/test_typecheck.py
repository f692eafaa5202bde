"""Typecheck: what a record makes passes, and each way of being wrong is found."""

import re

import numpy as np
import pytest
from helpers.random_programs import Chime, programs
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Success

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.errors import BadArgument, ParseError, TypeCheckError
from handlax.effects.base.source_locations import user_site
from handlax.effects.control.branches import Cond
from handlax.effects.control.loops import Scan, While
from handlax.effects.core.arrays import scalar
from handlax.effects.operations.elementwise.arithmetic import Add, Neg, add, mul, neg
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.program import Program
from handlax.effects.types.array_type import array_type
from handlax.interpreters.analysis.typecheck import check_program, typecheck
from handlax.interpreters.core.record import record

f32, i32 = np.dtype("float32"), np.dtype("int32")
V3, V4, S = array_type((3,), f32), array_type((4,), f32), array_type((), f32)
I, B = array_type((), i32), array_type((), np.dtype(bool))
negate = Program([V3], [Neg()], [(0,)], [V3], [1], name="negate")
total = Program([V3], [ReduceSum((0,))], [(0,)], [S], [1], name="total")
yes = Program([V3], [], [], [], [-1], [scalar(True, np.dtype(bool))], name="yes")


def single(op, *operands):
    """A program of one equation, which performs ``op``."""
    return Program(operands, [op], [tuple(range(len(operands)))], [op.result_type(*operands)], [0])


@given(programs(effects=True))
def test_well_typed_programs_pass(p):
    assert check_program(p) == Success(p)


def test_what_is_recorded_passes():
    p = record(lambda x, y: (add(neg(mul(x, y)), 2.0),), [V3, V3])
    assert typecheck(p) is p and len(p) == 3


@given(programs(effects=True, size=20), st.data())
def test_a_changed_result_type_is_found(p, data):
    singles = [i for i, op in enumerate(p.ops) if not op.multiple_results]
    if not singles:
        return
    i = data.draw(st.sampled_from(singles))
    types = list(p.types)
    types[i] = array_type((7, *types[i].shape), i32)
    wrong = Program(p.in_types, p.ops, p.args, types, p.outs, p.consts)
    assert isinstance(check_program(wrong).failure(), TypeCheckError)


@pytest.mark.parametrize(("wrong", "found"), [
    (Program([V3], [Neg()], [(0,)], [V4], [1]), "equation 0, b: f32[4] = neg a: states f32[4], its type is f32[3]"),
    (Program([V3], [Neg()], [(1,)], [V3], [1]), "operand number 1 is defined nowhere above"),
    (Program([V3], [Neg()], [(-1,)], [V3], [1]), "operand number -1 is defined nowhere above"),
    (Program([V3], [Neg()], [(0, 0)], [V3], [1]), "equation 0"),
    (Program([V3], [ReduceSum((1,))], [(0,)], [V3], [1]), "axes must be distinct dimensions"),
    (Program([V3, V4], [Add()], [(0, 1)], [V3], [2]), "equation 0, c: f32[3] = add a b"),
    (Program([V3], [], [], [], [3]), "the output number 3 is defined nowhere"),
    (Program([V3], [Neg()], [(0,), (0,)], [V3], [0]), "must be equally many"),
    (Program([V4], [Call((negate,))], [(0,)], [(V3,)], [1]), "negate takes f32[3] as input 0, it is given f32[4]"),
    (Program([V3], [Call((negate,))], [(0, 0)], [(V3,)], [1]), "negate takes 1 values, it is given 2"),
    (Program([V3], [Call((negate,))], [(0,)], [(V4,)], [1]), "states (f32[4]), its type is (f32[3])"),
    (Program([V3], [Call((Program([V3], [Neg()], [(0,)], [V4], [1], name="inner"),))], [(0,)], [(V4,)], [1]),
     "inner: equation 0"),
    (single(Cond((negate, total)), I, V3), "total gives (f32[]), negate gives (f32[3])"),
    (single(Cond((negate,)), V3, V3), "the index of the branch must be i32[], it is given f32[3]"),
    (single(Cond((negate,)), B, V3), "the index of the branch must be i32[], it is given bool[]"),
    (single(Scan((negate,), -1, 1, 2), V3), "-1 shared and 1 carried values must be among the 1 that it is given"),
    (single(Scan((negate,), 1, -1, 2), V3), "1 shared and -1 carried values must be among the 1"),
    (single(Scan((total,), 0, 1, 2), V3), "total carries (f32[3]) and hands on (f32[])"),
    (single(While((yes, negate), 0, 0), V3), "all 1 values must be shared or carried, 0 and 0 are"),
    (single(While((total, negate), 0, 1), V3), "the test total must give one bool, it gives (f32[])"),
    (single(While((negate, negate), 0, 1), V3), "the test negate must give one bool, it gives (f32[3])"),
    (single(While((yes.with_outs((-1, -1)), negate), 0, 1), V3), "the test yes must give one bool, it gives (bool"),
    (single(While((yes, negate.with_outs((1, 1))), 0, 1), V3), "negate carries (f32[3]) and hands on (f32[3])"),
])
def test_each_mistake_is_named(wrong, found):
    error = check_program(wrong).failure()
    assert found in error.what
    with pytest.raises(TypeCheckError):
        typecheck(wrong)


def test_what_performs_no_operation_is_no_program():
    p = Program([V3], [Neg()], [(0,)], [V3], [1])
    object.__setattr__(p, "ops", (3,))
    assert "equation 0 performs 3, which is no operation" in check_program(p).failure().what
    with pytest.raises(BadArgument, match="a program is needed, got int"):
        check_program(3)


def test_a_scan_whose_length_is_not_that_of_its_slices_is_found():
    p = hx.make_program(lambda xs: lax.scan(lambda c, x: (c + x, c), 0.0, xs))(hnp.ones(5))
    text = str(p)
    assert text.count("length=5") == 1
    wrong = re.sub(r"length=5|f32\[5\](?=~?(?: =|\) \{))", lambda m: m.group().replace("5", "4"), text)
    found = check_program(Program.parse(wrong, p.constants)).failure().what
    assert "per iteration, of f32[4], it is given f32[5]" in found


@pytest.mark.parametrize("wrong", [
    "c: f32[4,2] = relocate[sizes=(4,)] a b", "c: f32[4,2] = dot_general[dimension_numbers=range(0,3,1)] a b",
    "c: f32[4,2] = reduce_window_max[window_dimensions=(2,),window_strides=(0,)] a", "c: f32[4] = eig[right=9] a",
])
def test_fields_that_a_rule_is_not_made_for_are_a_type_error(wrong):
    text = f"program f(a: f32[4,2], b: i32[2]) -> (f32[4,2]) {{\n  {wrong}\n  return (a)\n}}"
    with pytest.raises((TypeCheckError, ParseError)):
        typecheck(Program.parse(text))


def test_an_effect_row_that_is_not_that_of_the_equations_is_found():
    p = Program([], [Chime()], [()], [()], [])
    object.__setattr__(p, "effects", frozenset())
    assert "states the effect row {}, its row is {Chime}" in check_program(p).failure().what


def test_weakness_is_no_obstacle_at_a_boundary():
    weak = array_type((3,), f32, True)
    assert check_program(Program([weak], [Call((negate,))], [(0,)], [(V3,)], [1])) != Success(negate)
    assert typecheck(Program([weak], [Call((negate,))], [(0,)], [(V3,)], [1]))


def test_the_message_leads_to_the_recorded_line():
    p = Program([S], [Neg()], [(0,)], [V3], [1], sites=[user_site()])
    assert "test_typecheck.py:" in check_program(p).failure().hint


def test_constants_have_types_too():
    p = Program([], [Neg()], [(-1,)], [S], [0], [scalar(1.0, f32)])
    assert typecheck(p) is p
    assert check_program(Program([], [Neg()], [(-1,)], [V3], [0], [scalar(1.0, f32)])).failure()
