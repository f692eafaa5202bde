"""Which results depend on which inputs, and programs that are taken over whole."""

from __future__ import annotations

import itertools
from functools import partial
from random import Random

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.analysis.dependence import as_marks, body_dependence, dependence, union
from handlax.interpreters.analysis.simplify import dead_code_elimination
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.interpreters.core.record import record
from handlax.interpreters.differentiation.partial_eval import partial_eval_program, split_operation
from handlax.testing.effect_programs.programs import effect_program
from handlax.testing.effect_programs.structures import random_block


def straight(a, b, c):
    return a + b, hnp.sin(c), c * 0 + 1.0, a


def shifted(a, b, c):
    """What one run carries reaches the next carry only in the run after."""
    (a, b, c), ys = lax.scan(lambda s, _: ((s[1], s[2], s[2] * 2), s[0]), (a, b, c), None, 4)
    return a, b, c, ys


def chosen(a, b, c):
    return lax.cond(a > 0, lambda b, c: (b, c), lambda b, c: (c, c), b, c)


def counted(a, b, c):
    return lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1.0, s[1] * c, s[2]), (a, b, c))


def called(a, b, c):
    return hx.jit(lambda x, y: (x * 2, y, x + y))(a, hx.jit(hnp.sin)(b))


@pytest.mark.parametrize("f", [straight, shifted, chosen, counted, called])
def test_it_is_what_partial_evaluation_leaves_unknown(f):
    program = hx.make_program(f)(1.0, 2.0, 3.0)
    for marks in itertools.product((False, True), repeat=3):
        assert dependence(program).results(marks) == partial_eval_program(program, marks).unknown


@pytest.mark.parametrize("f", [shifted, chosen, counted, called])
def test_it_is_what_an_operation_in_two_parts_leaves_unknown(f):
    program = hx.make_program(f)(1.0, 2.0, 3.0)
    for op, args in zip(program.ops, program.args):
        for marks in itertools.product((False, True), repeat=len(args) if op.bodied else 0):
            if op.bodied:
                known = [first is not None for first, _ in split_operation(op, marks).results]
                assert [not yes for yes in body_dependence(op).reached(marks).results] == known


def check_needs(program):
    """The inputs that remain are those that used results or effects depend on, whichever results are used."""
    depends = dependence(program)
    for used in itertools.product((False, True), repeat=len(program.outs)):
        simplified, needed = dead_code_elimination(program, used)
        assert typecheck(simplified).effects == program.effects
        numbers = union(itertools.compress(depends.outs, used)) | depends.roots
        assert needed == as_marks(numbers, len(program.in_types))


@pytest.mark.parametrize("f", [shifted, chosen, counted, called])
def test_what_results_need_is_what_they_depend_on(f):
    check_needs(hx.make_program(f)(1.0, 2.0, 3.0))


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


@hx.effect(scopes=2, vmap="per_lane", diff="bodies")
class EitherBody:
    """Its clause takes the operand, which no function of it needs."""


def with_jvp(f):
    g = hx.custom_jvp(f)
    g.defjvp(lambda xs, ts: (hnp.sin(xs[0]), ts[0]))
    return g


def with_vjp(f):
    g = hx.custom_vjp(f)
    g.defvjp(lambda x: (hnp.sin(x), ()), lambda _, ct: (ct,))
    return g


AROUND = {
    "call": lambda f, a, b, c: hx.jit(f)(b),
    "checkpoint": lambda f, a, b, c: hx.checkpoint(f)(b),
    "jvp rule": lambda f, a, b, c: with_jvp(f)(b),
    "vjp rule": lambda f, a, b, c: with_vjp(f)(b),
    "branch": lambda f, a, b, c: lax.cond(a > 0, f, lambda x: 0.5, b),
    "branch of three": lambda f, a, b, c: lax.switch(a.astype("int32"), [f, hnp.sin, lambda x: 0.5], b),
    "constant of a loop": lambda f, a, b, c: lax.scan(lambda s, x: (s + f(b), x), c, None, 3)[0],
    "carry": lambda f, a, b, c: lax.scan(lambda s, x: (f(s), x), b, None, 3)[0],
    "carry for another": lambda f, a, b, c: lax.scan(lambda s, x: ((s[1], f(s[0])), x), (b, c), None, 3)[0],
    "rows": lambda f, a, b, c: lax.scan(lambda s, x: (s, f(x)), c, hnp.stack([b, b])),
    "loop of unknown length": lambda f, a, b, c: lax.while_loop(lambda s: s < a, lambda s: s + f(b), c),
    "test": lambda f, a, b, c: lax.while_loop(lambda s: s + f(b) < a, lambda s: s + 1.0, c),
    "map": lambda f, a, b, c: lax.map(f, hnp.stack([b, c])),
    "lanes": lambda f, a, b, c: hx.vmap(f)(hnp.stack([b, c])),
    "lanes that diverge": lambda f, a, b, c: hx.vmap(lambda x: lax.cond(x > a, f, hnp.sin, x))(hnp.stack([b, c])),
    "scope": lambda f, a, b, c: hx.perform(EitherBody(), f, f, b),
}
TAKING = {
    "effect": lambda x: 0.0 * hx.perform(Ask(), hnp.sin(x)),
    "scoped effect": lambda x: hx.perform(EitherBody(), lambda x: 0.5, lambda x: 0.7, hnp.sin(x)),
    "scoped effect on a function with a rule": lambda x: hx.perform(
        EitherBody(), lambda x: 0.5, lambda x: 0.7, with_jvp(hnp.sin)(x)),
}


def of_one_number(within, f):
    return lambda x: sum([y.sum() for y in hx.tree.leaves(within(f, x, x, x))])


@pytest.mark.each_choice
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("taking", TAKING)
def test_what_an_effect_takes_is_needed_within_operations(around, taking):
    f = TAKING[taking]
    for g in (f, *[of_one_number(within, f) for within in AROUND.values()]):
        check_needs(hx.make_program(partial(AROUND[around], g))(*map(hnp.float32, (1, 2, 3))))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_random_programs_need_what_their_effects_take(depth):
    inputs = [hnp.asarray(x, "float64") for x in (1.0, 0.7, -0.4)]
    for seed in range(20):
        ((_, _, body),) = random_block(Random(seed), depth).program.statements
        check_needs(hx.make_program(effect_program(body).function())(*inputs))


def test_an_effect_within_a_body_comes_after_the_one_before_it():
    """The second depends on nothing unknown, but stays behind the first, which does; so does what it gives."""

    def f(a, b):
        hx.perform(Ask(), a)
        return hx.jit(lambda b: hx.perform(Ask(), b))(b), b * 2

    def looped(a, b):
        def step(s, _):
            hx.perform(Ask(), a)
            return (hx.jit(lambda b: hx.perform(Ask(), b))(s[1]), s[1]), None

        return lax.scan(step, (b, b), None, 2)[0]

    for whole in (f, looped):
        program = hx.make_program(whole)(1.0, 2.0)
        assert dependence(program).results((True, False)) == (True, False)
        assert partial_eval_program(program, (True, False)).unknown == (True, False)
        assert dependence(program).results((False, False)) == (False, False)
        assert dependence(program, ordered=False).results((True, False)) == (False, False)
        assert dependence(program).roots == 0b11


@pytest.mark.parametrize("source", [lambda i: (i + 1) % 12, lambda i: (i - 1) % 12, lambda i: (i * i + 1) % 12])
def test_what_goes_round_depends_on_all_that_reaches_it(source):
    def step(s, _):
        return tuple([s[source(i)] for i in range(12)]), None

    program = hx.make_program(lambda *s: lax.scan(step, s, None, 3)[0])(*map(float, range(12)))
    for i in range(12):
        reaches, at = set(), i
        while at not in reaches:
            reaches.add(at)
            at = source(at)
        for k in range(12):
            assert dependence(program).results([k == j for j in range(12)])[i] == (k in reaches)


@pytest.mark.parametrize("f", [straight, shifted, chosen, counted, called])
def test_a_program_performed_under_a_record_is_that_program(f):
    program = hx.make_program(f)(1.0, 2.0, 3.0)
    again = hx.make_program(lambda *xs: program(*xs))(1.0, 2.0, 3.0)
    assert again == program
    assert list(again.sites) == list(program.sites)
    doubled = hx.make_program(lambda *xs: program(*program(*xs)[:2], xs[2]))(1.0, 2.0, 3.0)
    np.testing.assert_array_equal(doubled(1.0, 2.0, 3.0)[0], program(*program(1.0, 2.0, 3.0)[:2], 3.0)[0])


@pytest.mark.parametrize("computed", [False, True])
def test_a_loop_that_computes_of_nothing_known_is_its_own_rest(computed):
    """What its body broadcasts of known values is not kept; anything else that it computes of them is."""

    def step(c, x):
        return c * hnp.broadcast_to(hnp.sin(x) if computed else x, (3,)), c

    program = hx.make_program(lambda c, xs: lax.scan(step, c, xs))(hnp.ones(3), hnp.ones(4))
    (op,) = program.ops
    parts = split_operation(op, (True, False))
    assert (parts.rest is op) != computed
    assert bool(parts.known) == computed
    if not computed:
        assert parts.sources == (0, 1)


def test_what_has_no_results_depends_on_nothing():
    ticked = []

    def step(c, _):
        hx.debug.callback(ticked.append, 1)
        return c * 2.0, None

    f = hx.grad(lambda x: lax.scan(step, x, None, 2)[0])
    np.testing.assert_allclose(f(1.0), 4.0)
    assert len(ticked) == 2


def test_naming_an_axis_is_no_effect_that_has_an_order():
    total = hx.operations.Psum((("lanes", 2),), None)
    program = record(lambda x, y: (hx.perform(total, x), hx.perform(total, y)), [hx.typeof(1.0)] * 2)
    found = dependence(program)
    assert program.effects and (found.outs, found.effects, found.roots) == ((0b01, 0b10), {}, 0)
