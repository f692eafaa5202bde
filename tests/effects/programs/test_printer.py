"""The text of programs: its form, and that it parses to the same program."""

import enum
import math
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from helpers.random_programs import Announce, Chime, fields, programs
from helpers.written_programs import V3, Noted, again, f32, program
from hypothesis import given
from returns.result import Success

import handlax as hx
from handlax import lax
from handlax.effects.base.source_locations import user_site
from handlax.effects.core.arrays import concrete, scalar
from handlax.effects.core.named_axes import Axis
from handlax.effects.core.operation import operation
from handlax.effects.operations.elementwise.arithmetic import Add, Mul, Neg
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.parse_result import parse_program
from handlax.effects.programs.printer import RESERVED, Printer, letter
from handlax.effects.programs.program import Builder, Program
from handlax.effects.trees import pytrees
from handlax.effects.trees.frozen_tree import freeze
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import array_type
from handlax.errors import ParseError
from handlax.testing.generator.equations import random_array


class Mode(enum.Enum):
    CLIP = "clip"
    DROP = "drop"


class Parts(enum.Flag):
    LEFT = 1
    RIGHT = 2


class Window(NamedTuple):
    sizes: tuple[int, ...]
    mode: Mode


@dataclass(frozen=True)
class Spec:
    axes: tuple[int, ...]
    scale: float = 1.0


def a_function(x):
    return x


@operation
class SplitPair:
    multiple_results = True

    def result_type(op, x):
        return x, x


def test_one_equation_stands_on_one_line():
    p = program((Neg(), (0,)), (Mul(), (2, -1)), (ReduceSum((0,)), (3,)), (Chime(), ()),
                types=(V3, V3.update(weak=True)), consts=(scalar(2.0, f32),), outs=(4, 0))
    assert str(p) == """\
program f(a: f32[3], b: f32[3]~) -> (f32[], f32[3]) ! {Chime} {
  c: f32[3] = neg a
  d: f32[3] = mul c 2.0:f32[]
  e: f32[] = reduce_sum[axes=(0,)] d
  chime
  return (e, a)
}"""
    assert again(p) == Success(p)


def test_several_results_stand_side_by_side():
    p = program((SplitPair(), (0,)), outs=(2, 1))
    assert "  b: f32[3], c: f32[3] = split_pair a\n" in str(p)
    assert again(p) == Success(p)


def test_sub_programs_stand_indented_where_they_are_performed():
    inner = program((Neg(), (0,)), outs=(1,), name="inner")
    p = program((Call((inner,), "step"), (0,)), outs=(1,))
    assert str(p) == """\
program f(a: f32[3]) -> (f32[3]) {
  b: f32[3] = call[bodies=(program inner(a: f32[3]) -> (f32[3]) {
    b: f32[3] = neg a
    return (b)
  },), label='step'] a
  return (b)
}"""
    assert again(p) == Success(p)


def test_a_sub_program_that_occurs_again_is_its_label():
    p = program((Neg(), (0,)), outs=(1,), name="leaf")
    for _ in range(40):  # written out, this were 2^40 lines
        p = program((Call((p,)), (0,)), (Call((p,)), (1,)), outs=(2,))
    assert str(p).count("@p") == 80
    assert again(p) == Success(p)


def test_the_source_line_stands_behind_as_a_comment():
    builder = Builder()
    builder.input(V3)
    builder.append(Neg(), (0,), V3, user_site())
    p = builder.freeze([1])
    assert "  b: f32[3] = neg a  # test_printer.py:" in p.pretty_print(source_info=True)
    assert "#" not in str(p)
    assert parse_program(p.pretty_print(source_info=True)) == Success(p)


def test_a_named_axis_stands_in_the_row():
    @operation
    class Over:
        axes: tuple[str, ...]
        named = True

        def result_type(op, x):
            return x

        @property
        def effects(op):
            return frozenset(map(Axis, op.axes))

    p = program((Over(("i",)), (0,)), (Chime(3), ()))
    assert "-> (f32[3]) ! {Chime[by=3], axis i} {" in str(p)
    assert again(p) == Success(p)


def test_fields_that_have_their_default_are_left_out():
    assert "chime\n" in str(program((Chime(1), ()))) and "chime[by=2]" in str(program((Chime(2), ())))
    assert "chime[by=True]" in str(program((Chime(True), ())))


def test_an_equation_has_a_text_of_its_own():
    p = program((Mul(), (0, -1)), consts=(scalar(2.0, f32),))
    (equation,) = p.eqns
    assert str(equation) == repr(equation) == "b: f32[3] = mul a 2.0:f32[]"
    assert [str(x) for x in equation.invars] == ["a", "2.0:f32[]"]


def test_large_constants_of_sub_programs_stand_behind_those_of_the_program():
    rng = np.random.default_rng(0)
    large = array_type((17,), f32)
    one, two, three = (random_array(large, rng) for _ in range(3))
    inner = program((Add(), (-1, -2)), types=(), consts=(one, two), outs=(0,))
    p = program((Call((inner,)), ()), (Add(), (0, -1)), types=(), consts=(three,), outs=(1,))
    assert "add @c1:f32[17] @c2:f32[17]" in str(p) and "add a @c0:f32[17]" in str(p)
    assert p.constants == (three, one, two) and again(p) == Success(p)


def test_constants_beyond_sixteen_elements_stand_beside_the_text():
    rng = np.random.default_rng(0)
    small, large = (random_array(array_type((n,), f32), rng) for n in (16, 17))
    p = program((Neg(), (-2,)), (Neg(), (-1,)), types=(), consts=(small, large), outs=(1, 0))
    assert "neg @c1:f32[17]" in str(p) and "@c0" not in str(p)
    assert again(p) == Success(p)
    assert "constants passed" in parse_program(str(p)).failure().what
    assert "f32[17]" in parse_program(str(p), (small, small)).failure().what


@given(programs(effects=True))
def test_every_program_reads_back(p):
    assert again(p) == Success(p)
    assert hash(Program.parse(str(p), p.constants)) == hash(p)
    assert parse_program(p.pretty_print(source_info=True), p.constants) == Success(p)


@given(fields())
def test_every_value_of_a_field_reads_back_in_type_and_bits(value):
    p = program((Announce(value), (0,)))
    (op,) = again(p).unwrap().ops
    assert op == Announce(value)


@pytest.mark.parametrize("value", [
    Mode.CLIP, Window((2, 3), Mode.DROP), Spec((1,), -0.0), a_function, Mode, Spec, (Mode.CLIP, (Spec((0,)),)),
    frozenset({1, 2.0}), pytrees.structure({"b": [1, None], "a": (2, Window((1,), Mode.CLIP))}),
    Noted(Noted(ReduceSum((0,)))), Noted, ReduceSum, freeze({"w": (1.0, "x")}), math.nan, -math.nan,
    struct.unpack("d", struct.pack("Q", 0x7FF0000000000001))[0], complex(-0.0, math.inf),
    dtypes.THREEFRY, dtypes.KeyDType("rbg"), ..., Parts.LEFT, np.bool_(True), np.float32("nan"),
])
def test_named_values_read_back(value):
    p = program((Noted(value), (0,)))
    (op,) = again(p).unwrap().ops
    assert op == Noted(value)


def unnamed():
    """Values whose classes no module holds under their names, or that have no name in their class."""
    class Pair(NamedTuple):
        x: int

    class Kind(enum.Enum):
        A = 1

    class Numbers(tuple):
        __slots__ = ()

    class Node:
        pass

    @dataclass(frozen=True)
    class Local:
        x: int

    pytrees.register_pytree_node(Node, lambda node: ((), None), lambda _, children: Node())
    return [Pair(1), Kind.A, Numbers((1,)), Local(1), Parts.LEFT | Parts.RIGHT, np.dtype("S3"),
            pytrees.structure(Node()), lambda: 1, Pair]


def test_classes_that_the_module_of_an_operation_has_stand_without_their_module():
    p = hx.make_program(lambda x: lax.dot(x, x, precision=lax.Precision.HIGHEST))(np.ones((2, 2)))
    q = hx.make_program(lambda x: lax.conv(x, x, (1, 1), "SAME"))(np.ones((1, 1, 3, 3)))
    assert "(Precision.HIGHEST, Precision.HIGHEST)" in str(p) and "=ConvDimensionNumbers(lhs_spec=" in str(q)
    assert Program.parse(str(p)) == p and Program.parse(str(q)) == q
    module = "handlax.effects.operations.dot_general:"
    assert Program.parse(str(p).replace("Precision.", f"{module}Precision.")) == p
    for wrong in ("Precision.NONE", "np.pi", "Precision"):
        with pytest.raises(ParseError, match="expected a value"):
            Program.parse(str(p).replace("Precision.HIGHEST", wrong))


def test_what_has_no_name_is_shown_and_does_not_read_back():
    for value in unnamed():
        p = program((Noted(value), (0,)))
        assert "note=?'" in str(p) and "only an object that a module holds" in again(p).failure().hint, value


def test_a_program_is_the_value_of_a_field_like_others():
    inner = program((Neg(), (0,)), outs=(1,))
    p = program((Noted((inner, ("x", inner))), (0,)))
    assert again(p) == Success(p) and str(p).count("neg") == 1


def test_names_of_values_are_distinct_and_no_words_of_the_language():
    names = [letter(n) for n in range(20_000)]
    assert names[:3] == ["a", "b", "c"] and names[26:28] == ["aa", "ab"]
    assert len(set(names)) == len(names) and not RESERVED & set(names)


def test_addition_of_a_constant_and_itself():
    x = concrete(V3, np.arange(3, dtype=f32))
    p = program((Add(), (-1, -1)), consts=(x,), outs=(1,))
    assert "add [0.0, 1.0, 2.0]:f32[3] [0.0, 1.0, 2.0]:f32[3]" in str(p) and again(p) == Success(p)


def nest(depth):
    """A call in a call, ``depth`` of them; each body names the one in it."""
    inner = program(outs=(0,))
    for i in range(depth):
        inner = program((Call((inner,)), (0,)), outs=(1,)).with_name(f"level{i}")
    return inner


@pytest.mark.parametrize("depth", [1, 12, 60])
def test_a_nested_program_is_copied_once_however_deep_it_stands(depth, monkeypatch):
    """Else the text of n nested programs, of which all lines but the innermost are in others, takes n copies."""
    written = []
    original = Printer.operation_as
    monkeypatch.setattr(Printer, "operation_as", lambda *args: written.append(original(*args)) or written[-1])
    text = str(nest(depth))
    assert len(written) == depth and max(map(len, written)) < 30
    assert [text.count(f"program level{i}(") for i in range(depth)] == [1] * depth
    assert parse_program(text).unwrap() == nest(depth)


def test_programs_in_a_set_are_in_the_order_of_their_texts():
    names = ["c", "a", "b"]
    programs = [program(types=(V3,) * i, outs=(), name=name) for i, name in enumerate(names)]
    printer = Printer(False)
    printer.depth = 1
    shown = printer.whole(printer.value(frozenset(programs)))
    assert sorted(names, key=lambda name: shown.index(f"program {name}")) == sorted(names)
