"""Programs as text: what it looks like, and that it reads back."""

import enum
import importlib
import math
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Success
from strategies.programs import DTYPES, KEY, Announce, Tick, array, fields, programs

import handlax
from handlax.effects import dtypes, trees
from handlax.effects.arithmetic import Add, Mul, Neg
from handlax.effects.arrays import concrete, scalar
from handlax.effects.axes import Axis
from handlax.effects.control import Call
from handlax.effects.errors import ParseError
from handlax.effects.frozen import freeze
from handlax.effects.literals import array_of, array_text, number_of, number_text
from handlax.effects.operations import OPERATIONS, Operation, effect, operation, text_name
from handlax.effects.parsing import parse_program
from handlax.effects.printing import RESERVED, equation_text, letter
from handlax.effects.programs import Builder, Program
from handlax.effects.shapes import ReduceSum
from handlax.effects.sources import user_site
from handlax.effects.types import array_type

f32 = np.dtype("float32")
V3 = array_type((3,), f32)


class Mode(enum.Enum):
    CLIP = "clip"
    DROP = "drop"


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
class Noted:
    note: Any = None
    name = "noted"

    def result_type(op, x):
        return x


@operation
class NotedAgain:
    note: Any = None
    name = "noted"

    def result_type(op, x):
        return x


@operation
class SplitPair:
    multiple = True

    def result_type(op, x):
        return x, x


def program(*equations, types=(V3,), consts=(), outs=(0,), name="f"):
    """The program of ``(op, operands)`` pairs."""
    builder = Builder()
    for type in types:
        builder.input(type)
    made = list(types)
    for const in consts:
        builder.const(const)
    for op, args in equations:
        operands = [made[n] if n >= 0 else consts[-1 - n].type for n in args]
        result = op.result_type(*operands)
        builder.append(op, args, result, (None, 0))
        made.extend(result if op.multiple else (result,))
    return builder.freeze(outs, name)


def again(p):
    return parse_program(str(p), p.constants)


def test_one_equation_stands_on_one_line():
    p = program((Neg(), (0,)), (Mul(), (2, -1)), (ReduceSum((0,)), (3,)), (Tick(), ()),
                types=(V3, V3.update(weak=True)), consts=(scalar(2.0, f32),), outs=(4, 0))
    assert str(p) == """\
program f(a: f32[3], b: f32[3]~) -> (f32[], f32[3]) ! {Tick} {
  c: f32[3] = neg a
  d: f32[3] = mul c 2.0:f32[]
  e: f32[] = reduce_sum[axes=(0,)] d
  tick
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
    assert "  b: f32[3] = neg a  # test_printing.py:" in p.pretty_print(source_info=True)
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

    p = program((Over(("i",)), (0,)), (Tick(3), ()))
    assert "-> (f32[3]) ! {Tick[by=3], axis i} {" in str(p)
    assert again(p) == Success(p)


def test_fields_that_have_their_default_are_left_out():
    assert "tick\n" in str(program((Tick(1), ()))) and "tick[by=2]" in str(program((Tick(2), ())))
    assert "tick[by=True]" in str(program((Tick(True), ())))


def test_an_equation_has_a_text_of_its_own():
    p = program((Mul(), (0, -1)), consts=(scalar(2.0, f32),))
    (equation,) = p.eqns
    assert str(equation) == repr(equation) == equation_text(equation) == "b: f32[3] = mul a 2.0:f32[]"
    assert [str(x) for x in equation.invars] == ["a", "2.0:f32[]"]


def test_large_constants_of_sub_programs_stand_behind_those_of_the_program():
    rng = np.random.default_rng(0)
    large = array_type((17,), f32)
    one, two, three = (array(large, rng) for _ in range(3))
    inner = program((Add(), (-1, -2)), types=(), consts=(one, two), outs=(0,))
    p = program((Call((inner,)), ()), (Add(), (0, -1)), types=(), consts=(three,), outs=(1,))
    assert "add @c1:f32[17] @c2:f32[17]" in str(p) and "add a @c0:f32[17]" in str(p)
    assert p.constants == (three, one, two) and again(p) == Success(p)


def test_constants_beyond_sixteen_elements_stand_beside_the_text():
    rng = np.random.default_rng(0)
    small, large = (array(array_type((n,), f32), rng) for n in (16, 17))
    p = program((Neg(), (-2,)), (Neg(), (-1,)), types=(), consts=(small, large), outs=(1, 0))
    assert "neg @c1:f32[17]" in str(p) and "@c0" not in str(p)
    assert again(p) == Success(p)
    assert "constants given" in parse_program(str(p)).failure().what
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
    frozenset({1, 2.0}), trees.structure({"b": [1, None], "a": (2, Window((1,), Mode.CLIP))}),
    Noted(Noted(ReduceSum((0,)))), Noted, ReduceSum, freeze({"w": (1.0, "x")}), math.nan, -math.nan,
    struct.unpack("d", struct.pack("Q", 0x7FF0000000000001))[0], complex(-0.0, math.inf),
    dtypes.THREEFRY, dtypes.KeyDType("rbg"),
])  # fmt: skip
def test_named_values_read_back(value):
    p = program((Noted(value), (0,)))
    (op,) = again(p).unwrap().ops
    assert op == Noted(value)


def test_a_program_is_the_value_of_a_field_like_others():
    inner = program((Neg(), (0,)), outs=(1,))
    p = program((Noted((inner, ("x", inner))), (0,)))
    assert again(p) == Success(p) and str(p).count("neg") == 1


@pytest.mark.parametrize("value", [lambda x: x, object(), type("Local", (), {})], ids=["lambda", "object", "class"])
def test_what_has_no_name_is_refused_when_it_is_read(value):
    p = program((Noted(value), (0,)))
    error = again(p).failure()
    assert "under its own name" in error.hint and error.line == 2


def test_the_later_of_two_operations_of_one_name_is_called_by_its_place():
    assert text_name(Noted) == "noted" and text_name(NotedAgain) == f"{__name__}:NotedAgain"
    p = program((Noted(1), (0,)), (NotedAgain(2), (1,)))
    assert again(p) == Success(p)
    assert OPERATIONS["noted"] is Noted


def test_a_block_that_is_run_again_takes_the_place_of_its_former_self():
    def block():
        @effect
        class RunAgain:
            def result_type(op):
                return None

        return RunAgain

    former, latter = block(), block()
    assert former is not latter and OPERATIONS["run_again"] is latter
    assert again(program((latter(), ()))).unwrap().ops == (latter(),)


@pytest.mark.parametrize("dtype", [*DTYPES, *sorted(dtypes.SMALL, key=str), KEY], ids=str)
def test_constants_read_back_bit_for_bit(dtype):
    rng = np.random.default_rng(1)
    for shape in ((), (5,), (2, 3), (0, 3)):
        for _ in range(10):
            x = array(array_type(shape, dtype), rng)
            text = array_text(x).replace("[", " ").replace("]", " ")
            items = [item.strip() for item in text.split(",") if item.strip()]
            assert array_of(items, x.type).tobytes() == x.value.tobytes()


@given(st.floats(width=32) | st.floats(width=16))
def test_floats_are_written_as_short_as_they_read_back(value):
    for dtype in (np.float32, np.float64, dtypes.bfloat16.type):
        with np.errstate(all="ignore"):
            x = dtype(value)
        assert number_of(number_text(x), x.dtype).tobytes() == x.tobytes()


def test_short_numbers():
    numbers = (np.float32(0.1), dtypes.bfloat16.type(0.1), np.float64(-0.0), np.complex64(complex(1, -0.0)),
               np.float32("nan"), np.int8(-3), np.bool_(True), np.float16(1e-7))
    texts = [number_text(x) for x in numbers]
    assert texts == ["0.1", "0.1", "-0.0", "1.0-0.0j", "nan", "-3", "True", "1e-07"]
    assert number_text(np.array([0x7FC00001], np.uint32).view(f32)[0]) == "0x7fc00001"


def test_names_of_values_are_distinct_and_no_words_of_the_language():
    names = [letter(n) for n in range(20_000)]
    assert names[:3] == ["a", "b", "c"] and names[26:28] == ["aa", "ab"]
    assert len(set(names)) == len(names) and not RESERVED & set(names)


def line(text):
    """The text of a program with this second line."""
    return f"program f(a: f32[3]) -> (f32[3]) {{\n  {text}\n  return (b)\n}}"


@pytest.mark.parametrize(("text", "line", "column", "expected"), [
    ("", 1, 1, "'program'"),
    (line("b: f32[3] = neg x"), 2, 19, "a value defined above"),
    (line("b: f32[3] = nag a"), 2, 15, "a known operation"),
    (line("b: f33[3] = neg a"), 2, 6, "a type"),
    ("program f(a: f32[3]) -> (f32[3]) {\n  a: f32[3] = neg a\n  return (a)\n}", 2, 3, "a new name"),
    ("program f(a: f32[3]) -> (f32[]) {\n  return (a)\n}", 2, 3, "results of the types (f32[])"),
    ("program f(a: f32[3]) -> (f32[3]) ! {Tick} {\n  return (a)\n}", 1, 36, "the effect row of the equations"),
    (line("b: f32[3] = neg 2.0:i32[]"), 2, 19, "a constant"),
    (line("b: f32[3] = neg [1.0, 2.0]:f32[3]"), 2, 19, "3 elements"),
    (line("b: f32[3], c: f32[3] = neg a"), 2, 3, "one result of neg"),
    (line("b: f32[3] = reduce_sum[axis=0] a"), 2, 15, "fields that"),
    (line("b: f32[3] = neg a ; c"), 2, 21, "a name, number"),
    ("program f(a: f32[3]) -> (f32[3]) {\n  return (a)\n} more", 3, 3, "the end of the text"),
    ("program f(a: f32[3]) -> (f32[3]) {\n  return (a)\n", 3, 1, "'}'"),
    (line("b: f32[3] = noted[note=os:system('x')] a"), 2, 26, "a named tuple"),
    (line("b: f32[3] = noted[note=no.such:thing] a"), 2, 26, "a loaded module"),
])  # fmt: skip
def test_an_error_says_where_and_what_was_expected(text, line, column, expected):
    error = parse_program(text).failure()
    assert (error.line, error.column) == (line, column) and expected in error.what
    with pytest.raises(ParseError, match=f"line {line}, column {column}: expected"):
        Program.parse(text)


@given(programs(effects=True, size=5, depth=1), st.integers(0, 10**6), st.integers(1, 4))
def test_a_damaged_text_is_a_parse_error_or_a_program(p, at, length):
    text = str(p)
    at %= len(text)
    found = parse_program(text[:at] + text[at + length :], p.constants)
    assert isinstance(found.swap().value_or(None) or found.value_or(None), (ParseError, Program))


def test_reading_is_insensitive_to_space_and_comments():
    text = "program f ( a: f32[3] )  # inputs\n -> (f32[3],)\n{\n\n b:f32[3] = neg a # minus\n\n\n return (\n b,) }\n\n"
    assert parse_program(text) == Success(program((Neg(), (0,)), outs=(1,)))


def test_every_operation_of_the_library_is_found_where_it_says_it_is():
    for name in handlax.__all__:  # some are loaded when first asked for
        getattr(handlax, name)
    for kind in {kind for kind in OPERATIONS.values() if kind.__module__.startswith("handlax.")}:
        assert issubclass(kind, Operation)
        assert getattr(importlib.import_module(kind.__module__), kind.__qualname__) is kind, kind


def test_addition_of_a_constant_and_itself():
    x = concrete(V3, np.arange(3, dtype=f32))
    p = program((Add(), (-1, -1)), consts=(x,), outs=(1,))
    assert "add [0.0, 1.0, 2.0]:f32[3] [0.0, 1.0, 2.0]:f32[3]" in str(p) and again(p) == Success(p)
