"""Dead code, common subexpressions: the same results and effects with less."""

from typing import ClassVar

import numpy as np
import pytest
from helpers.random_programs import Announce, Chime, programs
from hypothesis import given
from hypothesis import strategies as st

from handlax.effects.base.errors import BadArgument
from handlax.effects.core.arrays import concrete, scalar
from handlax.effects.core.operation import operation
from handlax.effects.operations.elementwise.arithmetic import Add, Mul, Neg
from handlax.effects.programs.higher_order import Call, HigherOrder
from handlax.effects.programs.program import Builder, Program, interpret
from handlax.effects.types.array_type import array_type
from handlax.effects.types.dtypes import float64, int32
from handlax.interpreters.analysis.simplify import common_subexpressions, dead_code_elimination, prune_operation
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.testing.generator.equations import arguments

f32 = np.dtype("float32")
V3 = array_type((3,), f32)


def parsed(text):
    return typecheck(Program.parse(text))


def inlined(program, args, effects):
    """The results of a program, calls interpreted in place and effects written down: what it means."""
    env = dict(enumerate(args))
    env.update({-1 - k: const for k, const in enumerate(program.consts)})
    number = len(args)
    for op, operands in zip(program.ops, program.args):
        xs = [env[n] for n in operands]
        if isinstance(op, Call):
            ys = inlined(op.bodies[0], xs, effects)
        elif op.effectful:
            effects.append((op, tuple([x.value.tobytes() for x in xs])))
            ys = xs
        else:
            types = [x.type for x in xs]
            ys = interpret(Program(types, [op], [tuple(range(len(xs)))], [op.result_type(*types)], [len(xs)]), xs)
        env.update({number + k: y for k, y in enumerate(ys)})
        number += len(ys)
    return [env[n] for n in program.outs]


def meaning(program, args):
    effects = []
    return [y.value.tobytes() for y in inlined(program, args, effects)], effects


exact = {"dtypes": (float64, int32), "kinds": (Add, Mul, Neg), "effects": True, "size": 20}


@given(programs(**exact), st.data())
def test_dead_code_elimination_keeps_used_outputs_and_all_effects(p, data):
    used = data.draw(st.lists(st.booleans(), min_size=len(p.outs), max_size=len(p.outs)))
    q, inputs = dead_code_elimination(p, used)
    typecheck(q)
    xs = arguments(p)
    results, effects = meaning(p, xs)
    kept, wanted = [x for x, yes in zip(xs, inputs) if yes], [y for y, yes in zip(results, used) if yes]
    assert meaning(q, kept) == (wanted, effects)
    again = dead_code_elimination(q)
    assert again.program is q and all(again.used_inputs)


@given(programs(**exact))
def test_merging_common_subexpressions_keeps_outputs_and_all_effects(p):
    q = common_subexpressions(p)
    typecheck(q)
    assert meaning(q, arguments(p)) == meaning(p, arguments(p))
    assert len(q) <= len(p) and common_subexpressions(q) is q


@given(programs(effects=True))
def test_every_program_can_be_simplified(p):
    q = typecheck(common_subexpressions(dead_code_elimination(p, instantiate=True).program))
    assert q.in_types == p.in_types and q.out_types == p.out_types and q.effects == p.effects


def test_what_nobody_needs_goes_with_its_inputs_and_constants():
    p = parsed("""program f(a: f32[3], b: f32[3]) -> (f32[3], f32[3]) {
  c: f32[3] = neg a
  d: f32[3] = mul b 2.0:f32[]
  return (c, d)
}""")
    q, used = dead_code_elimination(p, [True, False])
    assert str(q) == "program f(a: f32[3]) -> (f32[3]) {\n  b: f32[3] = neg a\n  return (b)\n}"
    assert used == (True, False) and q.consts == ()
    kept = dead_code_elimination(p, [True, False], instantiate=[False, True])
    assert kept.program.in_types == (V3, V3) and kept.used_inputs == (True, True)


def test_calls_lose_results_and_operands():
    p = parsed("""program f(a: f32[3], b: f32[3]) -> (f32[3]) {
  c: f32[3], d: f32[3] = call[bodies=(program g(a: f32[3], b: f32[3]) -> (f32[3], f32[3]) {
    c: f32[3] = neg a
    d: f32[3] = mul b b
    return (c, d)
  },)] a b
  return (d)
}""")
    q, used = dead_code_elimination(p)
    assert used == (False, True)
    assert str(q) == """program f(a: f32[3]) -> (f32[3]) {
  b: f32[3] = call[bodies=(program g(a: f32[3]) -> (f32[3]) {
    b: f32[3] = mul a a
    return (b)
  },)] a
  return (b)
}"""


def test_an_effect_in_a_call_keeps_the_call_and_what_it_is_told():
    p = parsed("""program f(a: f32[3], b: f32[3]) -> () ! {Announce, Chime} {
  call[bodies=(program g(a: f32[3], b: f32[3]) -> (f32[3]) ! {Announce, Chime} {
    c: f32[3] = neg a
    d: f32[3] = neg b
    e: f32[3] = announce d
    chime
    return (c)
  },)] a b
  return ()
}""".replace("  call[", "  c: f32[3] = call["))
    q, used = dead_code_elimination(p)
    assert used == (False, True) and q.effects == {Announce(), Chime()}
    assert [op.name for op in q.ops[0].bodies[0].ops] == ["neg", "announce", "chime"]


def test_effects_are_neither_merged_nor_moved():
    p = parsed("""program f(a: f32[3]) -> (f32[3], f32[3]) ! {Announce} {
  b: f32[3] = neg a
  c: f32[3] = announce b
  d: f32[3] = neg a
  e: f32[3] = announce d
  return (c, e)
}""")
    assert [op.name for op in common_subexpressions(p).ops] == ["neg", "announce", "announce"]


def test_equal_constants_become_one():
    x, y = (concrete(V3, np.arange(3, dtype=f32)) for _ in range(2))
    builder = Builder()
    builder.consts += [x, y]  # past ``const``, which merges them
    a = builder.append(Mul(), (-1, -2), V3, (None, 0))
    p = builder.freeze([a])
    assert len(p.consts) == 2
    for q in (common_subexpressions(p), dead_code_elimination(p).program):
        assert q.consts == (x,) and q == p


def test_a_number_and_its_negative_zero_are_two_constants():
    builder = Builder()
    zeros = [builder.const(scalar(zero, f32)) for zero in (0.0, -0.0)]
    outs = [builder.append(Neg(), (zero,), array_type((), f32), (None, 0)) for zero in zeros]
    assert len(common_subexpressions(builder.freeze(outs))) == 2


@operation
class Loop(HigherOrder):
    """A loop by its declaration alone."""

    bodies: tuple[Program, ...]
    shared: int = 0
    carry: int = 0
    length: int = 1
    backwards: bool = False
    runs: ClassVar[str] = "loop"
    prunes = True
    name = "test_loop"

    def result_type(op, *types):
        (body,) = op.bodies
        out = [t.update(shape=(op.length, *t.shape)) for t in body.out_types[op.carry :]]
        return (*body.out_types[: op.carry], *out)


def test_a_loop_keeps_what_a_later_run_needs():
    body = Program.parse("""program body(k: f32[3], a: f32[3], b: f32[3], c: f32[3], x: f32[3], y: f32[3])
      -> (f32[3], f32[3], f32[3], f32[3], f32[3]) {
  d: f32[3] = add a b
  e: f32[3] = add b x
  f: f32[3] = mul c k
  g: f32[3] = neg y
  return (d, e, f, g, a)
}""")
    loop = Loop((body,), 1, 3, 5)
    pruned = prune_operation(loop, (True, False, False, False, False), 6)
    assert pruned.used_results == (True, True, False, False, False)  # a needs b of the run before, and b needs x
    assert pruned.used_operands == (False, True, True, False, True, False)
    assert (pruned.op.shared, pruned.op.carry, pruned.op.length) == (0, 2, 5)
    assert str(pruned.op.bodies[0]) == """program body(a: f32[3], b: f32[3], c: f32[3]) -> (f32[3], f32[3]) {
  d: f32[3] = add a b
  e: f32[3] = add b c
  return (d, e)
}"""
    rows = array_type((5, 3), f32)
    p = Program([V3, V3, V3, V3, rows, rows], [loop], [tuple(range(6))], [loop.result_type()], [6])
    assert typecheck(dead_code_elimination(typecheck(p)).program).in_types == (V3, V3, rows)


def test_an_operation_whose_fields_speak_of_operands_keeps_its_signature():
    @operation
    class Rigid(HigherOrder):
        bodies: tuple[Program, ...]
        prunes = False
        name = "test_rigid"

        def result_type(op, *types):
            return op.bodies[0].out_types

    body = Program.parse("""program b(a: f32[3], b: f32[3]) -> (f32[3], f32[3]) {
  c: f32[3] = neg b
  d: f32[3] = neg c
  return (a, b)
}""")
    p = Program([V3, V3], [Rigid((body,))], [(0, 1)], [(V3, V3)], [2])
    q, used = dead_code_elimination(p)
    assert used == (True, True) and len(q.ops[0].bodies[0]) == 0 and q.ops[0].bodies[0].out_types == (V3, V3)


def test_marks_that_do_not_fit_are_refused():
    p = parsed("program f(a: f32[3]) -> (f32[3]) { return (a) }")
    with pytest.raises(BadArgument, match="used_outputs must have 1 entries, got 2"):
        dead_code_elimination(p, [True, False])


@pytest.mark.parametrize("simplify", [dead_code_elimination, common_subexpressions])
def test_a_program_is_simplified_once(simplify):
    builder = Builder()
    number = builder.input(V3)
    for _ in range(10):
        builder.append(Neg(), (number,), V3, (None, 0))
        number = builder.append(Mul(), (number, number), V3, (None, 0))
    p = builder.freeze([number])
    assert simplify(p) is simplify(p)
