"""The laws of transformations and interpreters find what breaks them, and hold of ours."""

from __future__ import annotations

import types

import numpy as np
import pytest
from docs.test_pages import ROOT, blocks
from helpers.failing_laws import failing, under
from helpers.interpreter_examples import example, folder

import handlax as hx
from handlax import numpy as hnp
from handlax import operations as o
from handlax.extend import STACK, BodyTransformer, as_array, installed
from handlax.interpreters.batching.batch import Batch
from handlax.interpreters.core.record import Record
from handlax.operations import Cos, Exp, Sin, Tanh
from handlax.testing import (
    INTERPRETER_LAWS,
    TRANSFORMATION_LAWS,
    LawFails,
    Nest,
    check_interpreter,
    check_transformation,
)
from handlax.testing.drawn_programs import DrawnPrograms
from handlax.testing.generator.control import NestTell
from handlax.testing.transformation_laws import TransformationCase, _lacks

__all__ = ["folder"]    # a fixture, which pytest finds here


def held(report):
    return {law.name for law, *_ in report.held}


def in_lanes(f):
    """Of one lane, which is taken out again."""
    return lambda *xs: hx.tree.map(lambda y: y[0], hx.vmap(f)(*[hnp.asarray(x)[None] for x in xs]))


@pytest.mark.parametrize("identity", [
    hx.jit, pytest.param(hx.checkpoint, marks=pytest.mark.sweep), in_lanes], ids=["jit", "checkpoint", "one lane"])
def test_transformations_that_keep_values_pass(identity):
    report = check_transformation(identity, meaning=lambda f: f, examples=1)
    assert {"meaning", "jit", "lanes", "again", "tangent"} <= held(report)


def test_a_derivative_passes():
    def tangents(f):
        ones = lambda xs: tuple([hnp.ones_like(x) for x in xs])
        return lambda x, v, w, k, p: hx.jvp(lambda *xs: f(*xs, k, p)[:1], (x, v, w), ones((x, v, w)))

    report = check_transformation(tangents, examples=1)
    assert {"unrolled", "effects", "tangent"} <= held(report)


def test_a_transformation_that_changes_values_is_found_and_the_program_is_shown():
    wrong = hx.handle(hx.handler(dict.fromkeys((Exp, Sin, Tanh), lambda op, x: hx.perform(op, x) * 1.5)))
    with pytest.raises(LawFails, match=r"equals its meaning(?s:.*)def program"):
        check_transformation(wrong, meaning=lambda f: f, examples=1, seconds=1.0)


def test_results_of_another_structure_than_those_of_the_meaning_are_found():
    listed = lambda f: lambda *xs: {"results": list(f(*xs))}
    with pytest.raises(LawFails, match=r"against its meaning: the results: a dict.*, expected a tuple"):
        check_transformation(listed, meaning=lambda f: f, examples=1, seconds=1.0)


def test_an_interpreter_that_only_passes_on_is_checked_as_a_transformation():
    report = check_interpreter(lambda f: f, related=lambda found, y: hx.tree.structure(found) == hx.tree.structure(y),
                               examples=1)
    assert "related" in held(report) and "no run with boxes" in report.left_out["parts"]


def twice(f):
    """Its effects, too."""
    return lambda *xs: (f(*xs), f(*xs))[1]


def never(f):
    """The function of recorded types, of zeros: none of its effects is performed."""
    return lambda *xs: hx.tree.map(lambda y: hnp.zeros(y.shape, y.dtype), hx.eval_shape(f, *xs))


def performed_backwards(f):
    """Effects are answered at once, and performed at the end, the last one first."""

    def call(*xs):
        last, y = hx.handle(hx.handler({NestTell: lambda log, op, x: ((*log, x), x)}, moves=hx.append), ())(f)(*xs)
        for x in last[::-1]:
            hx.tree.map(lambda x: hx.perform(NestTell(), x), x)
        return y

    return call


@pytest.mark.parametrize("made", [lambda y: y.astype("float32"), lambda y: y * np.nan], ids=["float32", "NaN"])
def test_results_without_difference_quotients_leave_out_the_law_of_tangents(made):
    wrong = lambda f: lambda *xs: [made(y) for y in f(*xs) if y.dtype == np.float64]
    laws = [law for law in TRANSFORMATION_LAWS if law.name in ("again", "tangent")]
    report = check_transformation(wrong, laws=laws, examples=1)
    assert held(report) == {"again"} and "no result has a difference quotient" in report.left_out["tangent"]


@pytest.mark.parametrize(("wrong", "message"), [
    (twice, r"it performs 4 effects, expected 2"),
    (never, r"it performs 0 effects, expected 2"),
    (performed_backwards, r"the 2 effects, in another order or with other operands"),
])
@pytest.mark.parametrize("meaning", [None, lambda f: f], ids=["no meaning", "the identity"])
def test_a_transformation_that_performs_other_effects_is_found(wrong, message, meaning):
    laws = [law for law in TRANSFORMATION_LAWS if law.name == "performed"]
    with pytest.raises(LawFails, match=rf"each once, and in order.\n  {message}(?s:.*)def program"):
        check_transformation(wrong, meaning=meaning, laws=laws, examples=1, seconds=1.0)


def test_a_transformation_that_performs_twice_by_its_meaning_passes():
    laws = [law for law in TRANSFORMATION_LAWS if law.name == "performed"]
    assert held(check_transformation(twice, meaning=twice, laws=laws, examples=2)) == {"performed"}


# For each law a transformation for which it fails alone.


def floats(f):
    return lambda *xs: [y for y in f(*xs) if y.dtype == np.float64]


def doubling(*forgotten):
    """Sines are doubled, but those in the bodies of these operations."""
    handed_on = dict.fromkeys(forgotten, lambda op, *xs: hx.perform(op, *xs))
    return hx.handle(hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x), **handed_on}))


def recorded(transform, hint="handle them inside."):
    """Of the recorded function, which performs no effects."""

    def of(f):
        def call(*xs):
            program = hx.make_program(transform(f))(*xs)
            if program.effects:
                raise hx.errors.CannotCross("recorded: it performs effects.", hint=hint)
            return program(*xs)

        return call

    return of


def added(amount):
    """A number is added to the results, which depends on what surrounds the function."""
    return lambda f: lambda *xs: [y + amount() for y in floats(f)(*xs)]


@hx.operation
class InTooManyLanes:
    def result_type(op, x):
        return x

    def evaluate(op, x):
        return x

    def batch(op, dims, x):
        return hx.perform(op, hnp.concatenate([x, x], dims[0])), dims[0]

    jvp = hx.columns.linear

    def decompose(op, x):
        return x


def remembering(f):
    """Another number is added if it is called again for the same vector."""
    vectors = []

    def call(*xs):
        seen = None if under(object) else bytes(hnp.asarray(xs[1]))
        vectors.append(seen)
        return [y + (seen is not None and vectors.count(seen) > 1) for y in floats(f)(*xs)]

    return call


def memo(f):
    """The results of the first call, for all arguments of the same shapes."""
    known = {}

    def call(*xs):
        shapes = tuple(map(np.shape, xs))
        if shapes not in known:
            known[shapes] = f(*xs)
        return known[shapes]

    return call


def test_a_transformation_that_keeps_results_is_found_by_the_law_of_it():
    with pytest.raises(LawFails, match=r"its results depend on no earlier call.\n  called again, with other arguments"):
        check_transformation(memo, examples=1, seconds=1.0)
    laws = [law for law in TRANSFORMATION_LAWS if law.name in ("unrolled", "effects")]
    assert held(check_transformation(memo, laws=laws, examples=1)) == {"unrolled", "effects"}


def with_rule(y_factor, dy_factor):
    """The function with a rule of its own, which multiplies its results and their tangents."""

    def of(f):
        def call(x, v, w, k, p):
            own = hx.custom_jvp(lambda *xs: floats(f)(*xs, k, p))

            @own.defjvp
            def rule(xs, dxs):
                y, dy = hx.jvp(lambda *xs: floats(f)(*xs, k, p), xs, dxs)
                return [y_factor * each for each in y], [dy_factor * each for each in dy]

            return own(x, v, w)

        return call

    return of


WRONG = {
    "called": lambda f: lambda *xs: f(*xs) and None,
    "meaning": lambda f: lambda *xs: tuple([2 * y for y in f(*xs)]),
    "performed": twice,
    "again": remembering,
    "unrolled": recorded(doubling(o.Checkpoint)),
    "choices": doubling(o.While),
    "effects": recorded(lambda f: f, hint=None),
    "jit": added(lambda: under(Record)),
    "inner jit": doubling(o.Call),
    "lanes": added(lambda: under(Batch)),
    "selected": recorded(doubling(o.Cond)),
    "tangent": with_rule(1, 2),
}
NESTS = [Nest(f"def program(x, v, w, k, p):\n    return ({text},)\n") for text in (
    "hx.tell(x), hnp.sin(hx.tell(hnp.sin(x))), v",
    "hx.checkpoint(hnp.sin)(hx.tell(x)), v",
    "*hx.scan(lambda c, y: (hnp.sin(c) + hx.tell(y), c), x, v), v",
    "hx.cond(p, hnp.sin, hnp.cos, x), v",
    "*hx.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, hnp.sin(c[1])), (0, x)), v",
)]


def case_of(law, wrong):
    return TransformationCase(wrong, meaning=(lambda f: f) if law == "meaning" else None)


def test_each_law_has_a_transformation_for_which_it_fails():
    assert [*WRONG] == [law.name for law in TRANSFORMATION_LAWS]


@pytest.mark.parametrize(("name", "wrong"), [
    *WRONG.items(),
    ("lanes", lambda f: lambda *xs: [hx.perform(InTooManyLanes(), y) for y in floats(f)(*xs)]),
    ("tangent", with_rule(2, 1)),  # of the results alone
])
def test_a_mistake_is_found_by_its_law_alone(name, wrong):
    case = case_of(name, wrong)
    assert failing(TRANSFORMATION_LAWS, *[(case, nest, 0) for nest in NESTS], lacks=_lacks(case)) == [name]


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_programs_that_are_drawn(name):
    case, law = case_of(name, WRONG[name]), next(law for law in TRANSFORMATION_LAWS if law.name == name)
    with hx.configure(default_float="float64"):
        drawn = DrawnPrograms(case)
        examples = ((case, drawn.example(law, k, k == 0), k) for k in range(5))
        assert any(failing([law], example, lacks={}) for example in examples)


def rewritten(f):
    """Sines become twice as large, but those of bodies."""

    def call(*xs):
        program = hx.make_program(f)(*xs)
        values = dict(zip(program.invars, hx.tree.leaves(xs)))
        value = lambda v: v.val if hasattr(v, "val") else values[v]
        for eqn in program.eqns:
            y = hx.perform(eqn.op, *map(value, eqn.operands))
            values.update(zip(eqn.outvars, hx.tree.leaves(2 * y if isinstance(eqn.op, Sin) else y)))
        return [*map(value, program.outvars)]

    return call


@pytest.mark.parametrize("kind", [Sin, *[pytest.param(kind, marks=pytest.mark.sweep) for kind in (Cos, Tanh, Exp)]])
def test_a_transformation_that_leaves_out_one_operation_is_found_by_one_program(kind):
    doubled = hx.handle(hx.handler({kind: lambda op, *xs: 2 * hx.perform(op, *xs)}))
    laws = [law for law in TRANSFORMATION_LAWS if law.name == "meaning"]
    with pytest.raises(LawFails, match=r"it equals its meaning(?s:.*)def program"):
        check_transformation(lambda f: f, meaning=doubled, laws=laws, examples=1, seconds=1.0)


@pytest.mark.parametrize("number", range(3))
def test_a_derivative_by_one_argument_that_is_lost_is_found_by_one_program(number):
    def stopped(f):
        return lambda *xs: f(*[hx.lax.stop_gradient(x) if i == number else x for i, x in enumerate(xs)])

    tangent = [law for law in TRANSFORMATION_LAWS if law.name == "tangent"]
    with pytest.raises(LawFails, match="tangents are the difference quotients"):
        check_transformation(stopped, laws=tangent, examples=1, seconds=2.0)


def test_a_transformation_that_forgets_bodies_is_found():
    with pytest.raises(LawFails, match=r"bodies of loops and branches|loops and calls as(?s:.*)def program"):
        check_transformation(rewritten, examples=1, seconds=1.0)


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda f: lambda *xs: f(*xs) and None, "what it gave has no arrays, got None"),
    (lambda f: lambda *xs: xs, "its function was not called"),
])
@pytest.mark.parametrize("check", [check_transformation, check_interpreter])
def test_what_gives_nothing_or_calls_nothing_is_found(wrong, message, check):
    with pytest.raises(LawFails, match=rf"calls its function, and gives arrays.\n  {message}"):
        check(wrong, examples=1, seconds=1.0)


class Refusing(BodyTransformer):
    """Crosses no operation of a name."""

    def __init__(self, outer, name):
        super().__init__(outer, "refusing")
        self.name = name

    def answer(self, op, operands):
        if op.bodied and op.name == self.name:
            raise hx.errors.CannotCross(f"{op.name}: not in bodies.", hint="outside.")
        return self.outer.answer(op, operands)


def test_a_statement_that_is_refused_leaves_out_no_law_of_its_name():
    def transform(f):
        def call(*xs):
            with installed(Refusing(STACK.get(), "call")):
                return f(*xs)

        return call

    report = check_transformation(transform, meaning=lambda f: f, examples=1)
    assert "jit" in report.refused and "jit" in held(report) and "inner jit" in report.left_out
    assert "refused, and in no example" in str(report)


# The interpreter of the tutorial, with the rules that stand there, and with mistakes.


@pytest.fixture(scope="module")
def tutorial(folder):
    """The names of the tutorial."""
    text, module = (ROOT / "docs" / "tutorial" / "interpreter.md").read_text(), types.ModuleType("tutorial")
    for _, source in blocks(text):
        if ">>>" not in source:
            exec(source, module.__dict__)
    return module


def bounds_by(interpreter, interval):
    """``bounds`` of the tutorial for functions of several arguments and results, of intervals around the floats."""

    def bounds(f):
        def bounded(*xs):
            run = interpreter(STACK.get(), "bounds")
            with installed(run):
                ys = f(*[interval(run, x - 0.1, x + 0.1) if x.dtype == float else x for x in map(as_array, xs)])
            return [run.ends(as_array(y)) for y in ys]

        return bounded

    return bounds


def within(ends, ys):
    return all(np.all((lo <= y + 1e-9) & (y <= hi + 1e-9)) for (lo, hi), y in zip(ends, ys))


def test_programs_for_an_interpreter_consist_of_what_it_has(tutorial):
    bounds = bounds_by(tutorial.Intervals, tutorial.Interval)
    report = check_interpreter(bounds, related=within, examples=1, seconds=600.0)
    assert {"related", "parts", "jit", "inner jit", "lanes"} <= held(report)
    assert "sin has no rule" in report.refused["hnp.sin({x}) * {y}"]
    assert not {"0.5 * ({x} - {y})", "hnp.exp(-{x} * {x})", "0.1 * {x} * {y}", "scan", "jit", "map"} & {*report.refused}


def test_a_rule_that_is_wrong_is_found(tutorial):
    upper = lambda op, *xs: (hx.perform(op, *[hi for lo, hi in xs]), hx.perform(op, *[hi for lo, hi in xs]))
    with pytest.raises(LawFails, match=r"belongs to the results(?s:.*)def program"), hx.rules(ends={o.Add: upper}):
        check_interpreter(bounds_by(tutorial.Intervals, tutorial.Interval), related=within, examples=1, seconds=1.0)


def test_a_box_that_is_not_made_of_its_parts_is_found(tutorial):
    class Reversed(tutorial.Intervals):
        def box(self, mark, parts):
            return super().box(mark, parts[::-1])

    with pytest.raises(LawFails, match=r"made of its mark and its parts(?s:.*)def program"):
        check_interpreter(bounds_by(Reversed, tutorial.Interval), examples=1, seconds=1.0)


class WithUpperEnds:
    """Mixed in: a box is joined with others as if both ends were the upper one."""

    def force(self, x, mark):
        return [super().force(x, mark)[-1]] * 2 if mark else super().force(x, mark)


@pytest.mark.parametrize(("name", "laws"), [("related", ["related"]), ("parts", ["parts", "inner jit"])])
def test_a_mistake_of_an_interpreter_is_found_by_its_law(tutorial, name, laws):
    """What leaves the body of a compiled function is joined, too."""
    wrong = type("Wrong", (WithUpperEnds, tutorial.Intervals), {})
    upper = lambda op, *xs: (hx.perform(op, *[hi for lo, hi in xs]), hx.perform(op, *[hi for lo, hi in xs]))
    interpreter, rules = (wrong, {}) if name == "parts" else (tutorial.Intervals, {o.Add: upper})
    case = TransformationCase(bounds_by(interpreter, tutorial.Interval), related=within)
    nest = Nest("def program(x, v, w, k, p):\n    return (0.5 * (x + x), hnp.exp(-x * x), v)\n")
    with hx.rules(ends=rules):
        assert failing(INTERPRETER_LAWS, (case, nest, 0), lacks=_lacks(case)) == laws


def test_each_law_of_interpreters_alone_has_an_interpreter_for_which_it_fails():
    assert [law.name for law in INTERPRETER_LAWS if law not in TRANSFORMATION_LAWS] == ["related", "parts"]


@pytest.mark.sweep
def test_interpreters_of_the_gallery_pass():
    bounds = example("interval_bounds").bounds

    def bounded(f):
        return lambda x, v, w, k, p: bounds(lambda v: hnp.concatenate([y.reshape(-1) for y in f(x, v, w, k, p)]))(v, v)

    flat = lambda ys: np.concatenate([np.asarray(y, float).reshape(-1) for y in ys])
    laws = [law for law in INTERPRETER_LAWS if law.name in ("related", "unrolled", "jit", "lanes")]
    related = lambda ends, ys: within([ends], [flat(ys)])
    assert held(check_interpreter(bounded, related=related, laws=laws, examples=1)) == {law.name for law in laws}
