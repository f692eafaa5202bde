"""Named scopes, and the sites that equations and clauses have: the same through every transformation."""

import inspect
from contextlib import suppress

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.programs.printer import programs_in
from handlax.operations import Cos, Exp, Sin


@hx.custom_jvp
def with_jvp(x):
    with hx.named_scope("inner"):
        return hnp.sin(x)


@with_jvp.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    with hx.named_scope("inner"):
        return hnp.sin(x), dx * hnp.cos(x)


@hx.custom_vjp
def with_vjp(x):
    with hx.named_scope("inner"):
        return hnp.sin(x)


def _forward(x):
    with hx.named_scope("inner"):
        return hnp.sin(x), x


def _backward(x, ct):
    with hx.named_scope("inner"):
        return (ct * hnp.cos(x),)


with_vjp.defvjp(_forward, _backward)


def sine(x):
    with hx.named_scope("inner"):
        return hnp.sin(x)


def looped(x):
    return lax.scan(lambda c, _: (sine(c), None), x, None, length=2)[0]


def branched(x):
    return lax.cond(x > 0.0, sine, lambda x: x * 2.0, x)


def until(x):
    return lax.while_loop(lambda c: c[1] < 2, lambda c: (sine(c[0]), c[1] + 1), (x, 0))[0]


def model(layer):
    """A sine in the scopes outer/inner, an exponential outside of them."""

    def f(x):
        with hx.named_scope("outer"):
            y = layer(x)
        return hnp.exp(y)

    return f


LAYERS = {
    "plain": sine, "jit": hx.jit(sine), "checkpoint": hx.checkpoint(sine), "scan": looped, "cond": branched,
    "custom_jvp": with_jvp, "custom_vjp": with_vjp, "vmap": lambda x: hx.vmap(sine)(x[None])[0],
    "scan in jit": hx.jit(looped), "cond in scan": lambda x: lax.scan(lambda c, _: (branched(c), None), x, None, 2)[0],
    "decorated": hx.named_scope("inner")(hnp.sin), "named_call": hx.named_call(hnp.sin, name="inner"),
    "grad within": lambda x: hx.grad(lambda x: -hnp.cos(x))(x) if x is None else sine(x),
}
OVER = {
    "none": lambda f: f, "jit": hx.jit, "grad": hx.grad, "vmap": lambda f: lambda x: hx.vmap(f)(hnp.stack([x, x])),
    "jvp": lambda f: lambda x: hx.jvp(f, (x,), (x,)), "vmap of grad": lambda f: lambda x: hx.vmap(hx.grad(f))(x[None]),
    "grad of jit": lambda f: hx.grad(hx.jit(f)), "jit of grad": lambda f: hx.jit(hx.grad(f)),
    "checkpoint": lambda f: hx.grad(hx.checkpoint(f)), "grad of vmap": lambda f: hx.grad(
        lambda x: hx.vmap(f)(hnp.stack([x, x])).sum()),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "grad of scan": lambda f: hx.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]),
    "linearize": lambda f: lambda x: hx.linearize(f, x)[1](x),
}
X = hnp.float32(0.5)


def equations(program, around=()):
    """The operations of a program and of its bodies, each with its line and with all scopes around it."""
    for eqn in program.eqns:
        scopes = around + eqn.site.scopes
        yield eqn.op, eqn.site, scopes
        for body in programs_in(eqn.op):
            yield from equations(body, scopes)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("layer", LAYERS)
def test_equations_have_the_scopes_of_the_line_that_performed_them(layer, over):
    program = hx.make_program(OVER[over](model(LAYERS[layer])))(X)
    seen = {(type(op), scopes) for op, _, scopes in equations(program)}
    expected = {Sin: ("outer", "inner"), Cos: ("outer", "inner"), Exp: ()}
    assert {Exp, Sin} <= {kind for kind, _ in seen} | {Sin}
    assert [(kind, scopes) for kind, scopes in seen if kind in expected and scopes != expected[kind]] == []
    assert {scopes for _, scopes in seen} <= {(), ("outer",), ("outer", "inner")}


def test_transposed_equations_have_the_scopes_of_the_forward_ones():
    program = hx.make_program(hx.grad(model(sine)))(X)
    assert [(str(eqn.op.name), str(eqn.source_info.name_stack)) for eqn in program.eqns] == [
        ("sin", "outer/inner"), ("cos", "outer/inner"), ("exp", ""), ("mul", ""), ("mul", "outer/inner"),
    ]
    assert {eqn.site.under[-1] for eqn in program.eqns} == {"grad"}


def seen_by(transform, f):
    """The lines and scopes that a clause for sines sees under a transformation, and whether all are of ``model``."""
    seen = set()

    def clause(op, x):
        site = hx.site()
        seen.add((site.function, site.line, site.scopes))
        return hx.perform(op, x)

    transform(hx.handle(hx.handler({Sin: clause})), f)(X)
    return seen


UNDER = {
    "eager": lambda h, f: h(f), "recorded": lambda h, f: hx.make_program(h(f)), "compiled": lambda h, f: hx.jit(h(f)),
    "over a compiled function": lambda h, f: h(hx.jit(f)), "over a gradient": lambda h, f: h(hx.grad(f)),
    "under a gradient": lambda h, f: hx.grad(h(f)), "over a compiled gradient": lambda h, f: h(hx.jit(hx.grad(f))),
    "under vmap": lambda h, f: lambda x: hx.vmap(h(f))(hnp.stack([x, x])),
    "over vmap": lambda h, f: lambda x: h(hx.vmap(f))(hnp.stack([x, x])),
    "within another handler": lambda h, f: hx.handle(hx.handler({Cos: lambda op, x: hx.perform(op, x)}))(h(f)),
    "under one that resumes": lambda h, f: hx.handle(
        hx.handler({Exp: hx.ctl(lambda resume, op, x: resume(hx.perform(op, x)))}))(h(f)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_clause_sees_the_same_eagerly_and_recorded(layer):
    hx.clear_caches()  # equal programs, such as those of other layers, share their lines
    f = model(LAYERS[layer])
    seen = {under: seen_by(transform, f) for under, transform in UNDER.items()}
    if "custom" not in layer:  # of which the rule is another function
        assert seen == dict.fromkeys(UNDER, seen["eager"])
    assert {scopes for lines in seen.values() for *_, scopes in lines} == {("outer", "inner")}
    assert all(seen.values())


@pytest.mark.parametrize("kind", [hx.ctl, hx.final])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_clauses_that_resume_or_end_see_it_too(kind, wrap):
    seen = []

    def clause(*args):
        seen.append(hx.site())
        return args[0](args[2]) if kind is hx.ctl else args[1]

    hx.handle(hx.handler({Sin: kind(clause)}))(wrap(model(sine)))(X)
    assert {(site.function, site.scopes) for site in seen} == {("sine", ("outer", "inner"))}


def test_elsewhere_a_site_is_the_line_being_executed():
    here = hx.site()
    assert (here.line, here.file, here.scopes) == (inspect.currentframe().f_lineno - 1, __file__, ())
    with hx.named_scope("a"):
        assert hx.site().scopes == ("a",)
        assert hx.eval_shape(lambda: hnp.ones(len(hx.site().scopes))).shape == (1,)  # traced, in a scope
        program = hx.make_program(lambda: hnp.sin(1.0 if hx.site().scopes == ("a",) else None))()
    assert [eqn.site.scopes for eqn in program.eqns] == [()]  # a program is relative to what surrounds it


def test_each_operation_in_a_scope_has_its_own_line_also_after_one_that_fails():
    def f(x):
        with hx.named_scope("a"):
            y = hnp.sin(x)
            with suppress(errors.ShapeMismatch):
                lax.concatenate([y, hnp.ones(2)], 0)
            return hnp.cos(y)

    first, *_, last = hx.make_program(f)(hnp.ones((1, 3))).eqns
    assert (first.op.name, last.op.name) == ("sin", "cos")
    assert [each.site.line - f.__code__.co_firstlineno for each in (first, last)] == [2, 5]


def test_a_scope_opened_by_a_clause_lies_within_those_of_the_operation():
    def clause(op, x):
        with hx.named_scope("clause"):
            return hnp.cos(x)

    program = hx.make_program(hx.handle(hx.handler({Sin: clause}))(model(sine)))(X)
    assert [(eqn.op.name, eqn.site.scopes) for eqn in program.eqns] == [
        ("cos", ("outer", "inner", "clause")), ("exp", ()),
    ]


def test_what_a_clause_records_is_not_in_its_scopes_twice():
    clause = lambda op, x: lax.cond(x > 0.0, lambda x: hnp.cos(x), lambda x: x, x)
    program = hx.make_program(hx.handle(hx.handler({Sin: clause}))(model(sine)))(X)
    assert [scopes for op, _, scopes in equations(program) if type(op) is Cos] == [("outer", "inner")]


def test_equal_loops_at_two_places_are_told_apart():
    def f(x):
        with hx.named_scope("first"):
            x = looped(x)
        with hx.named_scope("second"):
            return looped(x)

    scopes = lambda seen: {scopes for *_, scopes in seen}
    both = {("first", "inner"), ("second", "inner")}
    for transform in (lambda h, f: h(f), lambda h, f: h(hx.jit(f)), lambda h, f: h(hx.jit(hx.checkpoint(f)))):
        assert scopes(seen_by(transform, f)) == both


def test_a_scope_is_a_function_that_decorates_and_its_name_a_string():
    with hx.named_scope("a") as name:
        assert name == "a"
    with pytest.raises((TypeError, errors.BadCall), match="must be a string, got 3"), hx.named_scope(3):
        pass


def test_the_text_of_a_program_shows_scopes():
    text = hx.make_program(model(sine))(X).pretty_print(name_stack=True)
    assert "under inner > outer" in text and hx.parse_program(text).unwrap() == hx.make_program(model(sine))(X)


def test_what_is_derived_from_equal_programs_has_the_scopes_of_each():
    def block(name):
        @hx.checkpoint
        def f(x):
            with hx.named_scope(name):
                return hnp.sin(x)

        return f

    program = hx.make_program(hx.grad(lambda x: block("second")(block("first")(x))))(X)
    assert {scopes for op, _, scopes in equations(program) if type(op) in (Sin, Cos)} == {("first",), ("second",)}
    for name in ("first", "second"):
        alone = hx.make_program(hx.grad(block(name)))(X)
        assert {scopes for op, _, scopes in equations(alone) if type(op) in (Sin, Cos)} == {(name,)}
