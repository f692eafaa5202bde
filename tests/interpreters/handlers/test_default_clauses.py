"""Default clauses of effects: the outermost handler."""

from __future__ import annotations

import itertools
import re
from random import Random

import numpy as np
import pytest
from helpers.effect_oracle import meaning
from helpers.effect_refusals import messages
from helpers.new_process import in_new_process

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.testing.effect_programs.handler_text import EFFECT_NAMES, text_of_clause
from handlax.testing.effect_programs.programs import PRELUDE, DrawnHandler, effect_program
from handlax.testing.effect_programs.structures import random_block
from handlax.testing.generator.random_program import imported


@hx.effect(vmap="per_lane", diff="stop", default=lambda op, x: op.by * x)
class Scale:
    by: float

    def result_type(op, x):
        return x


@hx.effect(vmap="per_lane", default=lambda op: {"rate": 0.5, "steps": 3})
class Settings:
    def result_type(op):
        return {"rate": hx.ArrayType((), hnp.float32), "steps": hx.ArrayType((), hnp.int32)}


@hx.effect(vmap="per_lane", diff="stop")
class Both:
    """Its default performs others, itself among them."""

    depth: int

    def result_type(op, x):
        return x

    def default(op, x):
        return hx.perform(Scale(2.0), x) if op.depth == 0 else hx.perform(Both(op.depth - 1), x) + 1.0


def model(x):
    settings = hx.perform(Settings())
    return hnp.sin(x) * settings["rate"] + hx.perform(Scale(3.0), x) + hx.perform(Both(2), x)


def looping(x):
    total = lax.fori_loop(0, 3, lambda i, c: 0.1 * model(c), x)
    total = lax.scan(lambda c, y: (c + model(y), c), total, hnp.stack([x, 2 * x]))[0]
    total = lax.cond(total > 0, model, lambda x: -x, total)
    return lax.while_loop(lambda c: c < 100.0, lambda c: c + model(c), total)


SCALE, BOTH = (lambda op, x: op.by * x), (lambda op, x: 2.0 * x + op.depth)
handled = hx.handle(hx.handler({Scale: SCALE, Both: BOTH, Settings: lambda op: {"rate": 0.5, "steps": 3}}))
XS = hnp.array([0.3, 1.2, -0.7])


OF_ONE = {"eager": lambda f: f, "jit": hx.jit, "checkpoint": hx.checkpoint}
OF_MANY = {
    "vmap": hx.vmap,
    "jit of vmap": lambda f: hx.jit(hx.vmap(f)),
    "vmap of jit": lambda f: hx.vmap(hx.jit(f)),
    "map": lambda f: lambda xs: lax.map(f, xs),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [model, looping], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transformed", [*OF_ONE, *OF_MANY])
def test_the_default_clause_is_the_outermost_handler(f, transformed):
    """run(f) == handle(h)(run(f)) where the clauses of h are the defaults."""
    run, operand = (OF_ONE[transformed](f), XS[0]) if transformed in OF_ONE else (OF_MANY[transformed](f), XS)
    np.testing.assert_allclose(run(operand), handled(run)(operand), rtol=1e-6)


def test_derivatives_are_those_under_the_same_clauses_outside():
    for transformed in (hx.grad, lambda f: hx.jit(hx.grad(f)), lambda f: hx.grad(hx.checkpoint(f)), hx.hessian):
        derived = transformed(lambda x: model(x) ** 2)
        assert derived(0.5) == handled(derived)(0.5)


def test_a_handler_that_is_installed_wins():
    none = hx.handler({Scale: lambda op, x: 0 * x, Both: lambda op, x: 0 * x})
    for f in (model, hx.jit(model)):
        assert float(hx.handle(none)(f)(1.0)) == pytest.approx(0.5 * np.sin(1.0))


def test_eagerly_the_clause_sees_values():
    seen = []

    @hx.effect(default=lambda op, x: seen.append(float(x)))
    class Note:
        def result_type(op, x):
            return None

    assert hx.perform(Note(), 2.0) is None and seen == [2.0]
    assert hx.effects_of(lambda: hx.perform(Note(), 2.0))() == frozenset({Note()})  # as that of one with a lowering


def test_weak_types_are_those_of_the_operands():
    half = hnp.float16(3.0)

    @hx.effect(default=lambda op, x, y: x * y)
    class Product:
        def result_type(op, x, y):
            return y

    for f in (lambda x: hx.perform(Product(), x, half), hx.jit(lambda x: hx.perform(Product(), x, half))):
        assert f(2.0).dtype == hnp.float16 and f(2.0) == 6.0


def test_what_a_default_prints_is_printed_by_compiled_programs():
    out = in_new_process(
        "import handlax as hx\n"
        "@hx.effect(default=lambda op, x: hx.debug.print('x={x}', x=x))\n"
        "class Show:\n"
        "    def result_type(op, x): return None\n"
        "hx.jit(lambda x: (hx.perform(Show(), x), x)[1])(1.5)\n"
        "hx.lax.fori_loop(0, 2, lambda i, c: (hx.perform(Show(), i), c)[1], 0.0)\n"
        "hx.effects_barrier()\n"
    )
    assert out.split() == ["x=1.5", "x=0", "x=1"]


def test_ahead_of_time_and_exported_the_clause_is_part_of_the_program():
    f = hx.jit(model)
    assert f.lower(0.5).compile()(0.5) == f(0.5)
    assert hx.export.export(f)(hnp.float32(0.5)).call(hnp.float32(0.5)) == f(hnp.float32(0.5))


def test_a_rule_of_a_scope_replaces_it_and_another_module_may_add_one():
    @hx.effect
    class Later:
        def result_type(op):
            return hx.ArrayType((), hnp.float32)

    f = hx.jit(lambda: hx.perform(Later()))
    for run in (f, lambda: hx.perform(Later())):
        with pytest.raises(errors.UnhandledEffect):
            run()
    hx.columns.default.rule(Later)(lambda op: 1.0)
    assert f() == hx.perform(Later()) == 1.0
    with hx.rules(default={Later: lambda op: 2.0}):
        assert f() == hx.perform(Later()) == 2.0
    assert f() == hx.perform(Later()) == 1.0


def test_over_devices_the_clause_is_part_of_what_each_executes():
    mesh, spec = hx.make_mesh((2,), ("d",)), hx.P("d")
    f = hx.shard_map(lambda x: hx.perform(Scale(3.0), x) + lax.psum(x, "d"), mesh=mesh, in_specs=spec, out_specs=spec)
    assert f(hnp.arange(2.0)).tolist() == hx.jit(f)(hnp.arange(2.0)).tolist() == [1.0, 4.0]
    assert hx.pmap(lambda x: hx.perform(Scale(3.0), x))(hnp.arange(2.0)).tolist() == [0.0, 3.0]


def test_explain_rules_shows_it():
    (line,) = [line for line in hx.explain_rules(Scale).splitlines() if line.split()[0] == "default"]
    assert "test_default_clauses.py:" in line
    assert "test_default_clauses.py:" in hx.explain_rules(Both)


def test_an_answer_that_does_not_fit_is_refused_as_that_of_a_handler():
    @hx.effect(default=lambda op: hnp.zeros(3))
    class Wrong:
        def result_type(op):
            return hx.ArrayType((), hnp.float32)

    @hx.effect(default=lambda: 1.0)
    class Arity:
        def result_type(op):
            return hx.ArrayType((), hnp.float32)

    for f in (lambda op: hx.perform(op), hx.jit(hx.perform, static_argnums=0)):
        with pytest.raises(errors.ShapeMismatch, match="wrong: the answer of a clause must have the type"):
            f(Wrong())
        with pytest.raises(errors.BadCall, match="arity: the clause takes"):
            f(Arity())


@pytest.mark.parametrize("default", [3, hx.final(lambda op: 1.0), hx.ctl(lambda resume, op: resume(1.0))], ids=str)
def test_a_default_is_a_function(default):
    with pytest.raises(errors.RegistrationError, match="default: the rule of Refused must be callable"):

        @hx.effect(default=default)
        class Refused:
            def result_type(op):
                return None


def test_a_pure_operation_has_no_default():
    with pytest.raises(errors.RegistrationError, match="a pure operation does not"):

        @hx.operation
        class Refused:
            def result_type(op, x):
                return x

            def default(op, x):
                return x


def test_under_vmap_and_grad_the_options_decide_as_without_it():
    @hx.effect(default=lambda op, x: x)
    class Plain:
        def result_type(op, x):
            return x

    with pytest.raises(errors.CannotCross, match="plain: this effect cannot cross vmap"):
        hx.vmap(lambda x: hx.perform(Plain(), x))(XS)
    with pytest.raises(errors.NotDifferentiable, match="plain: an operand of this effect has a tangent"):
        hx.grad(lambda x: hx.perform(Plain(), x))(1.0)


# Random programs whose outermost handler, which has no state, is that of the defaults


def stateless(depth):
    """The random programs of this depth whose outermost handler has no state."""
    programs = (random_block(Random(seed), depth).program for seed in itertools.count(20000))
    return (program for program in programs if program.statements[0][1].moves is None)


def parts(program):
    """The outermost handler of a program, and the function under it, of (choice, x, y)."""
    ((_, base, body),) = program.statements
    return base, effect_program(body).function()


def run(program, transformed):
    """``transformed(f)(choice, x, y)`` where f is the program without its outermost handler."""
    base, f = parts(program)
    words = imported(PRELUDE)
    defaults = {words[EFFECT_NAMES[effect]]: eval(text_of_clause(base, effect), words) for effect in base.clauses}
    with hx.rules(default=defaults):
        return np.asarray(transformed(f)(*numbers(1.0, 0.7, -0.4)))


def numbers(*xs):
    return [hnp.asarray(x, "float64") for x in xs]


LANES = [0.7, -0.3, 1.1]
MODES = {
    "eager": (lambda f: f, lambda p: meaning(p, 1.0, 0.7, -0.4)),
    "jit": (hx.jit, lambda p: meaning(p, 1.0, 0.7, -0.4)),
    "vmap": (
        lambda f: lambda c, x, y: hx.vmap(f, (None, 0, None))(c, *numbers(LANES), y),
        lambda p: [meaning(p, 1.0, x, -0.4) for x in LANES],
    ),
}


def check(programs, modes=MODES):
    """They give what they mean under the handler; or lanes refuse them, with the words of the handler outside."""
    for program, mode in zip(programs, itertools.cycle(modes)):
        transformed, expected = MODES[mode]
        try:
            found = run(program, transformed)
        except errors.CannotCross as refusal:
            if mode != "vmap" or not re.search(messages("some lanes alone"), str(refusal)):
                raise
            base, f = parts(program)
            with pytest.raises(errors.CannotCross, match=re.escape(str(refusal).splitlines()[0])):
                DrawnHandler(base)(transformed(f))(*numbers(1.0, 0.7, -0.4))
            continue
        np.testing.assert_allclose(found, expected(program), rtol=1e-9, atol=1e-9, err_msg=mode)


@pytest.mark.parametrize("depth", [1, 2])
def test_random_programs_mean_by_defaults_what_they_mean_under_a_handler(depth):
    check(itertools.islice(stateless(depth), 9))


@pytest.mark.sweep
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("first", range(10, 130, 20))
def test_many_random_programs_mean_by_defaults_what_they_mean_under_a_handler(first, depth):
    check(itertools.islice(stateless(depth), first, first + 20))


def test_an_error_about_a_value_of_a_clause_names_the_clause():
    @hx.effect(default=lambda op, x: 2 * x if x > 0 else x)
    class Leaky:
        def result_type(op, x):
            return x

    with pytest.raises(errors.TracerBoolConversionError, match=r"got bool\[\] under a default clause, made at"):
        hx.jit(lambda x: hx.perform(Leaky(), x))(1.0)


def chain_of_defaults(length):
    """An effect whose default performs another one, and so on, ``length`` times."""
    kinds = [hx.effect(default=lambda op, x: x)(type("Last", (), {"result_type": lambda op, x: x}))]
    for _ in range(length):
        default = lambda op, x, last=kinds[-1]: hx.perform(last(), x) + 1.0
        kinds.append(hx.effect(default=default)(type("Link", (), {"result_type": lambda op, x: x})))
    return kinds[-1]()


@pytest.mark.parametrize("run", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_defaults_that_perform_effects_may_be_nested_deeply(run):
    op = chain_of_defaults(400)
    assert run(lambda x: hx.perform(op, x))(1.0) == 401.0


@pytest.mark.parametrize("run", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_a_default_that_performs_itself_without_end_is_named(run):
    @hx.effect(default=lambda op, x: hx.perform(op, x))
    class Endless:
        def result_type(op, x):
            return x

    with pytest.raises(errors.EndlessCalls, match="endless: default clauses that perform effects must end") as error:
        run(lambda x: hx.perform(Endless(), x))(1.0)
    assert isinstance(error.value, RecursionError)


def test_a_default_answers_by_an_object_as_a_clause_does():
    @hx.effect(default=lambda op: {"name": op.name})
    class Config:
        def result_type(op):
            return object

    assert hx.perform(Config()) == {"name": "config"}
    assert hx.handle(hx.handler({Config: lambda op: "x"}))(lambda: hx.perform(Config()))() == "x"
    with pytest.raises(errors.PythonAnswer, match="config: its answer is a Python object") as error:
        hx.jit(lambda: hx.perform(Config()))()
    assert "hx.direct" in error.value.hint
