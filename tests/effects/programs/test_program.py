"""Programs as values: equality, hashing, pickling, differences, and the attributes of a jaxpr."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.random_programs import Chime, programs
from hypothesis import given
from hypothesis import strategies as st

from handlax.effects.base.value_identity import ByBytes
from handlax.effects.core.arrays import concrete, scalar
from handlax.effects.operations.elementwise.arithmetic import Add, Mul, Neg
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.program import Builder, Program, interpret
from handlax.effects.types.array_type import array_type
from handlax.testing.generator.equations import arguments

f32 = np.dtype("float32")
V3 = array_type((3,), f32)


def chain(length, op=None, consts=()):
    builder = Builder()
    number = builder.input(V3)
    for const in consts:
        number = builder.append(Mul(), (number, builder.const(const)), V3, (None, 0))
    for _ in range(length):
        number = builder.append(op or Neg(), (number,), V3, (None, 0))
    return builder.freeze([number])


def vector(*numbers):
    return concrete(array_type((len(numbers),), f32), np.array(numbers, f32))


@given(programs(effects=True))
def test_a_copy_is_equal_and_hashes_alike(p):
    again = pickle.loads(pickle.dumps(p))
    assert again == p and hash(again) == hash(p) and again.effects == p.effects and again.name == p.name
    assert copy.copy(p) is p and copy.deepcopy(p) is p
    assert p.with_name("other") == p and p.with_name("other").name == "other"
    assert str(again) == str(p)


@given(programs(effects=True), programs(effects=True))
def test_programs_are_equal_exactly_when_nothing_differs(p, q):
    assert bool(p.diff(q)) == (p != q) and bool(str(p.diff(q))) == (p != q)
    assert not p.diff(pickle.loads(pickle.dumps(p)))
    if p == q:
        assert hash(p) == hash(q)


@given(programs(effects=True, size=20), st.integers(0, 10**6))
def test_a_program_without_one_equation_differs(p, at):
    unused = [i for i in range(len(p)) if not p.types[i] or _unused(p, i)]
    if unused:
        i = unused[at % len(unused)]
        q = _without(p, i)
        d = p.diff(q)
        assert len(d.removed) - len(d.inserted) == 1 and p != q


def _starts(p):
    starts = [len(p.in_types)]
    for op, made in zip(p.ops, p.types):
        starts.append(starts[-1] + (len(made) if op.multiple_results else 1))
    return starts


def _unused(p, i):
    starts = _starts(p)
    mine = set(range(starts[i], starts[i + 1]))
    return not mine & {n for args in p.args for n in args} and not mine & set(p.outs)


def _without(p, i):
    starts = _starts(p)
    width = starts[i + 1] - starts[i]

    def renumber(numbers):
        return tuple([n - width if n >= starts[i + 1] else n for n in numbers])

    def keep(items):
        return [item for k, item in enumerate(items) if k != i]
    return Program(p.in_types, keep(p.ops), map(renumber, keep(p.args)), keep(p.types), renumber(p.outs), p.consts)


def test_constants_compare_by_type_and_bits_wherever_they_stand():
    one, same, other = vector(1, -0.0, np.nan), vector(1, -0.0, np.nan), vector(1, 0.0, np.nan)
    assert chain(1, consts=(one, one)) == chain(1, consts=(one, same))
    assert chain(1, consts=(one,)) != chain(1, consts=(other,))
    unused = Program(*(getattr(chain(2), part) for part in ("in_types", "ops", "args", "types", "outs")), (one,))
    assert unused == chain(2)
    weak = concrete(array_type((), f32, True), np.float32(1))
    assert chain(1, consts=(weak,)) != chain(1, consts=(scalar(1.0, f32),))


@pytest.mark.parametrize("size", [100, 10_000, 1_000_000])
def test_large_constants_are_told_apart_by_one_bit(size):
    data = np.zeros(size, f32)
    changed = data.copy()
    changed[size // 2] = -0.0
    a, b, c = (concrete(array_type((size,), f32), x) for x in (data, data.copy(), changed))
    programs = [Program([], [], [], [], [-1], [x]) for x in (a, b, c)]
    assert programs[0] == programs[1] != programs[2]
    assert len({*programs}) == 2


def test_a_constant_beyond_a_mebibyte_is_not_read_for_a_hash():
    class Unread:
        type = array_type((1 << 20,), f32)

    assert hash(ByBytes(Unread())) == hash(Unread.type)


def test_fields_are_part_of_equality_and_names_and_lines_are_not():
    p = chain(3)
    lines = [(chain.__code__, 0)] * 3
    assert p == Program(p.in_types, p.ops, p.args, p.types, p.outs, sites=lines, name="g")
    assert chain(3, ReduceSum(())) != chain(3)


def test_shared_sub_programs_are_compared_once():
    def nested():
        p = chain(1)
        for _ in range(60):
            p = Program([V3], [Call((p,)), Call((p,))], [(0,), (1,)], [(V3,), (V3,)], [2])
        return p

    p, q = nested(), nested()
    assert p == q and hash(p) == hash(q) and pickle.loads(pickle.dumps(p)) == q and not p.diff(q)
    assert p.operations == {Call, Neg}


def test_a_program_reads_like_a_jaxpr():
    p = chain(2, consts=(scalar(2.0, f32),))
    assert p.jaxpr.eqns[0].primitive.name == "mul" and p.eqns[0].params == {}
    assert p.jaxpr.eqns[0].invars[0].aval is V3 and p.eqns[0].invars[1].val is p.consts[0]
    assert p.in_avals == tuple([v.aval for v in p.jaxpr.invars]) == (V3,)
    assert p.out_avals == (V3,) and str(p.jaxpr.outvars[0]) == "d" and p.eqns[1].outvars == p.eqns[2].invars
    assert p.pretty_print() == str(p) == repr(p) and p.eqns is p.eqns


def test_a_program_is_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        chain(1).name = "other"


@given(programs(size=6, depth=0))
def test_interpreting_a_program_and_its_text_gives_the_same_bits(p):
    xs = arguments(p)
    ys, again = interpret(p, xs), interpret(Program.parse(str(p), p.constants), xs)
    assert [y.value.tobytes() for y in ys] == [y.value.tobytes() for y in again]


SCRIPT = """
import pickle, sys
program, text = pickle.load(sys.stdin.buffer)
assert str(program) == text
sys.stdout.buffer.write(pickle.dumps((program, hash(program) == hash(pickle.loads(pickle.dumps(program))))))
"""


def test_a_program_goes_through_another_process():
    p = chain(2, consts=(scalar(2.0, f32), concrete(V3, np.arange(3, dtype=f32))))
    q = Program([V3], [Call((p,)), Add()], [(0,), (0, 1)], [(V3,), V3], [1, 2])
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=pickle.dumps((q, str(q))), capture_output=True,
                          env={**os.environ, "PYTHONHASHSEED": "7"}, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    again, hashes = pickle.loads(done.stdout)
    assert again == q and hashes


def test_an_effect_is_in_the_row_of_all_programs_around_it():
    inner = Program([], [Chime(2)], [()], [()], [])
    outer = Program([], [Call((inner,))], [()], [()], [])
    assert outer.effects == inner.effects == frozenset({Chime(2)})


def test_the_options_of_jax_for_printing_are_taken():
    p = Program.parse("program f(a: f32[]) -> (f32[]) { b: f32[] = sin a\n return (b) }")
    assert p.pretty_print(use_color=False, print_shapes=False, width=40) == str(p)
    assert p.pretty_print(source_info=True) == p.pretty_print(name_stack=True)


def test_equal_constants_are_one():
    one, other, third = (concrete(array_type((3,), np.dtype(dtype)), np.arange(3, dtype=dtype)) for dtype in "ffd")
    builder = Builder()
    assert builder.const(one) == builder.const(other) == builder.const(one) == -1
    assert builder.const(third) == -2 and builder.const(scalar(2.0)) == builder.const(scalar(2.0)) == -3
    zeros = [concrete(array_type((1,), np.dtype("f")), np.array([x], "f")) for x in (0.0, -0.0)]
    assert builder.const(zeros[0]) != builder.const(zeros[1])
    large = [concrete(array_type((10**5,), np.dtype("f")), np.zeros(10**5, "f")) for _ in range(2)]
    assert builder.const(large[0]) != builder.const(large[1])  # by identity: their elements are not read
    assert len(builder.consts) == 7
