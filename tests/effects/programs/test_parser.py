"""Parsing: a text that is no program is a ParseError with line and column."""

import time
from contextlib import suppress

import pytest
from helpers.chosen_cases import rest_in_sweep
from helpers.random_programs import programs
from helpers.written_programs import program
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Success

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.errors import ParseError
from handlax.effects.operations.elementwise.arithmetic import Neg
from handlax.effects.programs.parse_result import parse_program
from handlax.effects.programs.program import Program
from handlax.interpreters.analysis.typecheck import typecheck


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
    ("program f(a: f32[3]) -> (f32[3]) ! {Chime} {\n  return (a)\n}", 1, 36, "the effect row of the equations"),
    (line("b: f32[3] = neg 2.0:i32[]"), 2, 19, "a constant"),
    (line("b: f32[3] = neg [1.0, 2.0]:f32[3]"), 2, 19, "3 elements"),
    (line("b: f32[3], c: f32[3] = neg a"), 2, 3, "one result of neg"),
    (line("b: f32[3] = reduce_sum[axis=0] a"), 2, 15, "fields that"),
    (line("b: f32[3] = neg a ; c"), 2, 21, "a name, number"),
    ("program f(a: f32[3]) -> (f32[3]) {\n  return (a)\n} more", 3, 3, "the end of the text"),
    ("program f(a: f32[3]) -> (f32[3]) {\n  return (a)\n", 3, 1, "'}'"),
    (line("b: f32[3] = noted[note=os:system('x')] a"), 2, 26, "a named tuple"),
    (line("b: f32[3] = noted[note=range 0, 3, 1)] a"), 2, 32, "'('"),
    (line("b: f32[3] = noted[note=no.such:thing] a"), 2, 26, "a loaded module"),
    ("program b'f'(a: f32[3]) -> (f32[3]) {\n  return (a)\n}", 1, 9, "a name"),
    ("program f(a: f32[٣]) -> (f32[3]) {\n  return (a)\n}", 1, 14, "a type"),
    (line("b: f32[n0*٣] = neg a"), 2, 6, "a type"),
    (line("b: f32[3]\f= neg a"), 2, 12, r"punctuation, got '\x0c'"),
    (line("b: f32[3] # why\n\v= neg \v a"), 3, 8, r"punctuation, got '\x0b'"),
])
def test_an_error_says_where_and_what_was_expected(text, line, column, expected):
    error = parse_program(text).failure()
    assert (error.line, error.column) == (line, column) and expected in error.what
    with pytest.raises(ParseError, match=f"line {line}, column {column}: expected"):
        Program.parse(text)


VALUES = {
    "?": "a value", "?'f at f.py:3'": "a value, got f at f.py:3", "@p0": "the label of a program above", ")": "a value",
    "class nothing": "a known operation", "f32(": "a number", "f32('1')": "a number", "i8(300)": "a number of i8",
    "bool(2)": "a number of bool", "builtins:int(3)": "a named tuple", "handlax.nowhere:name": "an object of a loaded",
}


@pytest.mark.parametrize("value", VALUES)
def test_what_is_no_value_of_a_field_is_refused(value):
    assert f"expected {VALUES[value]}" in parse_program(line(f"b: f32[3] = noted[note={value}] a")).failure().what


@pytest.mark.parametrize(("text", "expected"), [
    (line("b: f32[3] = neg a }"), "an operand or the end of the line"),
    (line("b: f32[3] = neg a )"), "an operand: a value, a number"),
    (line("b: f32[3] = neg a\n  c: f32[3] = neg b\n  b: f32[3] = neg a"), "a new name"),
    (line("b: f32[3] = neg a\n  c: f32[3] = optimization_barrier b\n  c: f32[3] = neg b"), "a new name"),
    ("program f() -> () ! {Chime", "'}'"), ("program 'f", "a name, number, string"), ("'program' f", "'program'"),
])
def test_what_is_no_equation_or_row_is_refused(text, expected):
    assert f"expected {expected}" in parse_program(text).failure().what


def test_what_is_no_text_is_refused():
    assert "the text must be a string, got int" in parse_program(3).failure().what


def test_a_constant_has_the_type_that_the_text_states():
    text = line("b: f32[3] = add a @c0:f32[3]")
    assert "a constant of the type f32[3], got f32[2]" in parse_program(text, [hnp.ones(2)]).failure().what
    stated, bare = (parse_program(each, [hnp.ones(3)]) for each in (text, text.replace(":f32[3]\n", "\n")))
    assert stated == bare


def test_a_line_may_end_between_any_two_tokens_of_a_signature():
    text = line("b: f32[3] = neg a")
    head, body = text.split("{")
    assert Program.parse(head.replace(" ", "\n ").replace("(", "(\n") + "{" + body) == Program.parse(text)


@given(programs(effects=True, size=5, depth=1), st.integers(0, 10**6), st.integers(1, 4))
def test_a_damaged_text_is_a_parse_error_or_a_program(p, at, length):
    text = str(p)
    at %= len(text)
    found = parse_program(text[:at] + text[at + length :], p.constants)
    assert isinstance(found.swap().value_or(None) or found.value_or(None), (ParseError, Program))


def test_reading_is_insensitive_to_space_and_comments():
    text = "program f ( a: f32[3] )  # inputs\n -> (f32[3],)\n{\n\n b:f32[3] = neg a # minus\n\n\n return (\n b,) }\n\n"
    assert parse_program(text) == Success(program((Neg(), (0,)), outs=(1,)))


def asking(dtype):
    """An effect, always of the same name, whose result has this dtype."""

    @hx.effect
    class AskedAgain:
        def result_type(op):
            return hx.ShapeDtypeStruct((), dtype)

    return AskedAgain()


@pytest.mark.parametrize("qualified", [False, True])
def test_an_effect_that_replaced_another_of_its_name_must_fit_the_types_of_the_text(qualified):
    older = asking("float32")
    text = str(hx.make_program(lambda: hx.perform(older))())
    if qualified:
        text = text.replace("= asked_again", f"= {__name__}:asking.<locals>.AskedAgain")
    assert parse_program(text).unwrap().effects == {older}
    newer = asking("int32")
    assert "results of asked_again as its block declares them, (i32[])" in parse_program(text).failure().what
    again = parse_program(text.replace("f32", "i32")).unwrap()
    assert again.effects == {newer}
    same = asking("int32")
    assert parse_program(str(again)).unwrap().effects == {same}


PREFIXES = ("", "program ", "program f(a: ", "program f(a: f32[", line("b: f32[2] = neg[x=").partition("\n  return")[0],
            line("b: f32[2] = neg ").partition("\n  return")[0])
REPEATED = ("1", "1.", "1e", "a", "a.", "a-", "f32[1,", "f32[", "n0+", "max(", "max(n0,", "floordiv(", "n0*",
            ")", "[", "'", "\\'", "# x\n", "\n ", " ", "\t", "-1", "1+1j", "inf", "<a>", "a:b", "@c1", "f32[2]{i:1,")
ENDS = ("", "x", "_x", "§", "(", '"', ".x")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_text_is_refused_in_time_that_grows_with_its_length(prefix):
    def seconds(repeated, end, count):
        text = prefix + repeated * count + end
        start = time.process_time()
        with suppress(ParseError):
            Program.parse(text)
        return time.process_time() - start

    # 4,000 characters take a millisecond; in the worst case of a quadratic search they would take a tenth of a second
    slow = [(r, e) for r in REPEATED for e in ENDS if seconds(r, e, 4000) > 2 and seconds(r, e, 4000) > 2]
    assert not slow


@pytest.mark.parametrize("text", [
    "program f(a: f32[{}]) -> (f32[3]) {{", "program f(a: f32[n{}]) -> (f32[3]) {{", line("b: f32[3] = neg {}:i32[]"),
    line("b: f32[3] = neg @c{}"), line("b: f32[3] = integer_pow[y={}] a"), line("b: f32[3] = reduce_sum[axes=({},)] a"),
    "program f(a: f32[3]{{i:{}}}) -> (f32[3]) {{",
])
def test_a_number_of_more_digits_than_python_reads_is_a_parse_error(text):
    text = text.replace("{\n", "{{\n").replace("\n}", "\n}}") if "return" in text else text
    with pytest.raises(ParseError, match="expected"):
        Program.parse(text.format("9" * 5000))


TWICE = {
    "field": (line("b: f32[3] = integer_pow[y=2, y=3] a"), 2, 32),
    "field, equal": (line("b: f32[3] = integer_pow[y=2,\n    y=2] a"), 3, 5),
    "of an inner operation": (line("b: f32[3] = noted[note=op integer_pow[y=2, y=3]] a"), 2, 46),
    "of a named tuple": (line("b: f32[3] = noted[note=handlax.effects.base.caches:CacheInfo(hits=1, hits=2)] a"),
                         2, 72),
    "of a call": (line("b: f32[3] = noted[note=AbstractDevice(platform='cpu', platform='gpu')] a"), 2, 57),
    "axis of a type": ("program f(a: f32[3]{x:2,x:3}) -> () {\n  return ()\n}", 1, 14),
    "axis of a mesh": (line("b: f32[3] = noted[note=AbstractMesh('x': 2, 'x': 3)] a"), 2, 26),
    "parameter": ("program f(a: f32[3], a: f32[2]) -> () {\n  return ()\n}", 1, 22),
    "result": (line("a: f32[3] = neg a"), 2, 3),
    "label": (line("b: f32[3] = call[bodies=(program g @p0() -> () {\n  return ()\n}, "
                   "program h @p0() -> () {\n  return ()\n})] a"), 4, 14),
}


@pytest.mark.parametrize(("text", "line", "column"), TWICE.values(), ids=TWICE)
def test_a_name_that_is_stated_twice_is_refused_at_its_place(text, line, column):
    error = parse_program(text).failure()
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize("consts", [None, 3, ["x"], [None]], ids=str)
def test_what_is_no_array_is_no_constant_of_a_text(consts):
    assert "the constants must be arrays" in parse_program(line("b: f32[3] = neg a"), consts).failure().what


OPEN = ("(", "{", "tree(", "frozen(", "complex(", "P(", "op neg[x=", "op neg[x=({")


@pytest.mark.parametrize("open", rest_in_sweep(OPEN, ("(", "{", "tree(", "op neg[x=({")))
def test_values_within_each_other_without_end_are_a_parse_error(open):
    with pytest.raises(ParseError, match="expected a value"):
        Program.parse(line("b: f32[3] = neg[x=" + open * 1500))
    with pytest.raises(ParseError, match=r"expected a value|nested less deeply"):  # by how deep Python's stack is
        Program.parse(line("b: f32[3] = neg[x=" + open * 5_000))


def test_a_thousand_nested_bodies_are_read_and_checked():
    f = hnp.sin
    for _ in range(1000):
        f = (lambda inner: lambda x: lax.cond(x > 0, inner, lambda y: y, x * 1.5))(f)
    p = hx.make_program(f)(1.0)
    assert typecheck(Program.parse(str(p), p.constants)) == p


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ("tree(None, None, (1))", "a structure is needed, got 1"),
        ("tree(builtins:list, None, (f32))", "a structure is needed, got dtype"),
        ("tree(None, None, (tree(),))", "None has 0 children, got 1"),
        ("tree(builtins:dict, (1, 2), (tree(),))", r"a dict with keys \[1, 2\] has 2 children, got 1"),
    ],
)
def test_a_tree_that_is_no_structure_is_refused_at_its_place(tree, reason):
    text = f"program f() -> () {{\n  io_callback[function=posix:abort, results={tree}]\n  return ()\n}}"
    with pytest.raises(ParseError, match=f"expected arguments that tree takes, got structure: {reason}") as caught:
        Program.parse(text)
    assert (caught.value.line, caught.value.column) == (2, 45)


@pytest.mark.parametrize("size", [2**63, 2**62, "9" * 30])
def test_a_type_that_is_too_large_is_refused_at_its_place(size):
    with pytest.raises(ParseError, match="expected a type, got an array must have fewer than") as caught:
        Program.parse(f"program f(\n  a: f32[{size}]) -> () {{\n  return ()\n}}")
    assert (caught.value.line, caught.value.column) == (2, 6)
