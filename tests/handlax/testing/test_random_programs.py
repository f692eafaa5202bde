"""Random programs for users: the same for a seed, of every vocabulary, as scripts that run."""

from __future__ import annotations

import gc
import linecache
import threading
import warnings
from functools import partial
from random import Random

import numpy as np
import pytest
from helpers.other_threads import OtherThread
from hypothesis import given, settings

import handlax as hx
from handlax.effects.core.operation import operation
from handlax.effects.programs.higher_order import Call
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.testing import UNROLLED, Nest, equations, programs, random_program, reduced
from handlax.testing.generator.author import Author, Scope, Unfit, Vocabulary
from handlax.testing.generator.equations import arguments, random_equations
from handlax.testing.generator.reducing import living, smaller_texts
from handlax.testing.random_programs import VOCABULARIES


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_program_of_a_seed_is_always_the_same(vocabulary):
    assert random_program(1, vocabulary) == random_program(1, vocabulary) != random_program(2, vocabulary)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_a_program_is_a_script(vocabulary, capsys):
    """Which needs nothing but what it imports, and prints the results."""
    program = random_program(1, vocabulary, depth=1)
    exec(program.script(4), {})
    assert capsys.readouterr().out == f"{program(*map(as_arrays, program.inputs(4)))}\n"


def as_arrays(x):
    return hx.tree.map(hx.numpy.asarray, x)


def test_a_program_is_recorded():
    program = random_program(3, only=["scan"], depth=1)
    inputs = program.inputs(0)
    recorded = program.equations(0)
    typecheck(recorded)
    for y, z in zip(recorded(*inputs), program(*inputs), strict=True):
        np.testing.assert_array_equal(y, z)


def test_python_warns_of_no_smaller_program():
    loops = "hx.fori_loop(0, 2, lambda i, c: c[::-1], (x, v))[0], hx.scan(lambda c, y: (c, y), x, v)[1][0]"
    texts = [*smaller_texts(f"def program(x, v, w, k, p):\n    return ({loops})\n")]
    with warnings.catch_warnings(record=True, action="always") as warned:
        for text in [*texts, *[each for longer in texts for each in smaller_texts(longer)]]:
            compile(text, "<smaller>", "exec")
    assert texts and not warned


def test_lines_of_a_program_are_known_as_long_as_its_functions_live():
    before = {*linecache.cache}
    f = Nest("def program(x, v, w, k, p):\n    return (x + 1234,)\n").function()
    (name,) = {*linecache.cache} - before
    hx.clear_caches()
    gc.collect()
    assert linecache.getline(name, 2) == "    return (x + 1234,)\n"
    del f
    gc.collect()
    assert name not in linecache.cache


def test_states_of_the_reference_are_those_of_a_thread():
    entered, told, others = threading.Event(), threading.Event(), []

    def waiting():
        first = UNROLLED.tell(1.0)
        entered.set()
        assert told.wait(300)
        return first, UNROLLED.tell(1.0)

    def telling(x):
        others.append(OtherThread(UNROLLED.handled(waiting, 5.0)))
        assert entered.wait(300)
        first = UNROLLED.tell(x)
        told.set()
        return first, UNROLLED.tell(x)

    state, (first, second) = UNROLLED.handled(telling, 1.0)(1.0)
    assert (state, first, second) == (1.0, 1.0, 1.0)
    assert others[0].result() == (2.0, (5.0, 3.0))


def test_a_vocabulary_that_there_is_not_is_refused():
    with pytest.raises(hx.errors.BadArgument, match="'control flow' or 'lanes' or 'effects', got 'loops'"):
        random_program(0, "loops")


def test_every_option_of_control_flow_is_kept():
    for seed in range(30):
        text = random_program(seed, only=["scan", "cond"], without=["cond"], depth=2).source
        assert "hx.scan(" in text and "hx.cond(" not in text


@settings(max_examples=5)
@given(programs(depth=1, size=2))
def test_programs_are_their_reference(program):
    inputs = program.inputs(0)
    for y, z in zip(program(*inputs), program.unrolled(*inputs), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)


def test_the_text_of_a_program_with_effects_has_its_handlers_in_the_words_of_the_package():
    program = next(program for program in map(partial(random_program, vocabulary="effects"), range(99))
                   if "hx.final(" in program.source and "hx.merge(" in program.source)
    for words in ("hx.handle(hx.handler({", "lambda s, op, x: (", "ask(AskPlain, "):
        assert words in program.source


def test_a_program_of_lanes_is_reduced():
    program = random_program(1, "lanes", depth=1)
    small = reduced(program, lambda other: "hnp." in other.source)
    assert len(small.source) < len(program.source) and small.kinds == program.kinds


@pytest.mark.parametrize(("lines", "result"), [
    (["((y, z), n) = g(x)", "return (z,)"], "(g(x)[0][1],)"),
    (["(y, z) = (g(x), x)", "return (z, y)"], "(x, g(x))"),
    (["(y,) = g(x)", "(y,) = g(y)", "return (y,)"], "(g(g(x)[0])[0],)"),
])
def test_variables_of_tuples_are_replaced_by_what_is_assigned_to_them(lines, result):
    source = "".join([f"    {line}\n" for line in lines])
    assert f"def program(x):\n    return {result}\n" in smaller_texts(f"def program(x):\n{source}")


def test_a_variable_that_is_assigned_again_with_others_is_another_one():
    source = "def program(x):\n    y = g(x)\n    (y, z) = g(y)\n    return (y,)\n"
    assert "def program(x):\n    y, z = g(g(x))\n    return (y,)\n" in smaller_texts(source)


def test_programs_of_lanes_are_of_every_form():
    written = [random_program(seed, "lanes", depth=0) for seed in range(60)]
    forms = {
        "arrays of a length": [{len(kind) for kind in program.kinds if type(kind) is tuple} for program in written],
        "lengths": [{sum(type(kind) is tuple for kind in program.kinds)} for program in written],
        "arguments of one shape": [{sum(type(kind) is str for kind in program.kinds)} for program in written],
        "results": [{len(program.ragged)} for program in written],
        "ragged results": [{*program.ragged} for program in written],
    }
    assert {name: set().union(*found) for name, found in forms.items()} == {
        "arrays of a length": {1, 2}, "lengths": {1, 2}, "arguments of one shape": {0, 1, 2, 3}, "results": {1, 2, 3},
        "ragged results": {False, True}}


def test_what_results_do_not_depend_on_is_left_out():
    text = "def program(x):\n    y = f(x)\n    g = rule(y)\n    g.define(x)\n    z = y\n    return g(x)\n"
    assert living(text) == text.replace("    z = y\n", "")


@operation
class Halved:
    def result_type(op, x):
        return x


def test_equations_are_of_every_kind():
    written = [random_equations(Random(seed), operations=[Halved()]) for seed in range(200)]
    ops = [[type(op) for op in program.ops] for program in written]
    for kind in (Call, Halved):
        assert sum(kind in each for each in ops) > 20, kind
    assert len({kind for each in ops for kind in each}) > 60
    assert any(not each for each in ops) and max(map(len, ops)) > 8
    assert {len(program.outs) for program in written} == {0, 1, 2, 3}
    for program in written:
        typecheck(program)


@settings(max_examples=20)
@given(equations(size=4, depth=0, constants=False, dtypes=[np.dtype("float32")]))
def test_equations_have_arguments(program):
    assert len(program(*arguments(program))) == len(program.outs)


def test_statements_that_do_not_fit_leave_nothing():
    """Another kind is written in their place."""

    def broken(a, scope):
        scope.names.append("half")
        raise Unfit

    author = Author(Random(0), Vocabulary({broken: 5.0, lambda a, scope: scope.names.append("whole"): 1.0}, {}))
    scope = Scope({}, (), 0)
    for _ in range(20):
        author.statements(scope, 1)
    assert {*scope.names} == {"whole"}


def test_a_body_that_must_have_a_nested_one_keeps_it():
    nested, plain = ({lambda a, scope, kind=kind: scope.names.append(kind): 1.0} for kind in ("nested", "plain"))
    author = Author(Random(0), Vocabulary(plain, nested))
    author.chance = lambda probability: False
    for depth, written in ((1, ["nested"]), (0, [])):
        scope = Scope({}, (), depth)
        author.statements(scope, 3, nested=True)
        assert scope.names == written


def test_statements_that_are_taken_back_leave_nothing():
    """And change no other choice: so examples shrink by one statement."""
    kept, author = [], Author(Random(0), Vocabulary({lambda a, scope: scope.names.append(a.integer(0, 999)): 1.0}, {}))
    author.chance = lambda probability: kept.pop()
    written = []
    for choices in ([True, True, True], [True, False, True]):
        kept[:], scope = choices, Scope({}, (), 0)
        author.random.seed(1)
        for _ in choices:
            author.statement(scope, author.vocabulary.plain)
        written.append(scope.names)
    assert written[1] == [written[0][0], written[0][2]]
