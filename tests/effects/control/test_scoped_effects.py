"""Effects that take functions, against an interpreter in plain Python: exceptions, callbacks and dual numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.dual_numbers import Dual, number
from helpers.effect_oracle import ARITHMETIC

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.testing.generator.unrolled import evaluated

PER_LANE = {"vmap": "per_lane", "diff": "bodies"}


@hx.effect(scopes=2, **PER_LANE)
class Attempt:
    """The first function; the second one if it fails."""


@hx.effect(scopes=1, **PER_LANE)
class Local:
    """A function in which the setting is ``by`` times as large."""

    by: float


@hx.effect(scopes=1, **PER_LANE)
class Region:
    """A function between two ticks."""


@hx.effect(vmap="per_lane", diff="stop")
class Fail:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane")
class Ask:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None


def attempted(op, body, other, *xs):
    return hx.handle(hx.handler({Fail: hx.final(lambda op: other(*xs))}))(body)(*xs)


def between_ticks(op, body, *xs):
    hx.perform(Tick())
    y = body(*xs)
    hx.perform(Tick())
    return y


attempting = hx.handler({Attempt: attempted, Region: between_ticks})
reading = hx.handler(
    {Ask: lambda s, op: (s, s), Local: lambda s, op, body, *xs: (s, body(op.by * s, *xs)[1])}
)
counting = hx.handler({Tick: lambda n, op: (n + 1, None)})


def under(f):
    """``f(x) -> (ticks, y)`` under all handlers."""
    inside = lambda x: hx.handle(reading, hnp.float32(0.5))(f)(x)[1]
    return hx.handle(counting, 0)(hx.handle(attempting)(inside))


def with_count_inside(f):
    """The same with the count inside of the attempts, so that a failure drops it; regions do nothing."""
    regions = hx.handler({Attempt: attempted, Region: lambda op, body, *xs: body(*xs)})
    inside = lambda x: hx.handle(reading, hnp.float32(0.5))(f)(x)[1]
    return hx.handle(regions)(hx.handle(counting, 0)(inside))


# Programs: a block is a list of statements, each of which appends a value to those before.


def block(rng, depth, count=3):
    return [statement(rng, depth) for _ in range(rng.randint(1, count))]


def statement(rng, depth):
    kinds = ["arithmetic", "arithmetic", "tick", "ask", "fail"]
    kinds += ["attempt", "attempt", "local", "region", "loop", "cond"] if depth else []
    kind = rng.choice(kinds)
    match kind:
        case "arithmetic":
            return kind, rng.choice([*ARITHMETIC]), rng.random(), rng.random()
        case "tick" | "ask":
            return (kind,)
        case "fail":
            return kind, rng.random(), rng.uniform(-1.0, 0.5)
        case "attempt" | "cond":
            return kind, rng.random(), block(rng, depth - 1), block(rng, depth - 1)
        case "local" | "region":
            return kind, rng.random(), block(rng, depth - 1)
        case "loop":
            return kind, rng.random(), block(rng, depth - 1)


class Machine:
    """Python: failures are exceptions, ticks are counted by the way, the setting is an attribute."""

    class Failure(Exception):
        pass

    def __init__(self):
        self.ticks, self.setting = 0, 0.5

    arithmetic = staticmethod(lambda name, a, b: ARITHMETIC[name](a, b))

    def tick(self):
        self.ticks += 1

    def ask(self):
        return self.setting

    def fail_if_below(self, x, bound):
        if number(x) < bound:
            raise self.Failure

    def attempt(self, body, other, x):
        try:
            return body(x)
        except self.Failure:
            return other(x)

    def local(self, body, x):
        before, self.setting = self.setting, 2.0 * self.setting
        try:
            return body(x)
        finally:
            self.setting = before

    def region(self, body, x):
        self.tick()
        y = body(x)
        self.tick()
        return y

    def loop(self, body, x):
        return body(body(x))

    def cond(self, x, first, second):
        return first(x) if number(x) > 0.3 else second(x)


class Transactional(Machine):
    """A failure drops the ticks of its attempt."""

    def attempt(self, body, other, x):
        before = self.ticks
        try:
            return body(x)
        except self.Failure:
            self.ticks = before
            return other(x)

    region = staticmethod(lambda body, x: body(x))


class Performed:
    """The same operations, performed."""

    FUNCTIONS = {
        "add": lambda a, b: 0.6 * a + 0.5 * b,
        "mul": lambda a, b: hnp.sin(a) * b,
        "sin": lambda a, b: hnp.sin(a + 0.3 * b),
        "cos": lambda a, b: hnp.cos(a * b),
    }
    arithmetic = staticmethod(lambda name, a, b: Performed.FUNCTIONS[name](a, b))
    tick = staticmethod(lambda: hx.perform(Tick()))
    ask = staticmethod(lambda: hx.perform(Ask()))
    attempt = staticmethod(lambda body, other, x: hx.perform(Attempt(), body, other, x))
    local = staticmethod(lambda body, x: hx.perform(Local(2.0), body, x))
    region = staticmethod(lambda body, x: hx.perform(Region(), body, x))
    loop = staticmethod(lambda body, x: lax.fori_loop(0, 2, lambda i, x: body(x), x))
    cond = staticmethod(lambda x, first, second: lax.cond(x > 0.3, first, second, x))

    @staticmethod
    def fail_if_below(x, bound):
        lax.cond(x < bound, lambda: hx.perform(Fail()), lambda: None)


def run(machine, statements, values):
    """The last value of a block; functions in it read the values before them."""
    values = list(values)
    pick = lambda place: values[int(place * len(values))]
    for kind, *fields in statements:
        inner = lambda block, values=values: lambda x, values=tuple(values): run(machine, block, (*values, x))
        match kind, fields:
            case "arithmetic", (name, i, j):
                values.append(machine.arithmetic(name, pick(i), pick(j)))
            case "tick", ():
                machine.tick()
            case "ask", ():
                values.append(machine.ask())
            case "fail", (i, bound):
                machine.fail_if_below(pick(i), bound)
            case "attempt", (i, first, second):
                values.append(machine.attempt(inner(first), inner(second), pick(i)))
            case "cond", (i, first, second):
                values.append(machine.cond(pick(i), inner(first), inner(second)))
            case ("local" | "region" | "loop"), (i, body):
                values.append(getattr(machine, kind)(inner(body), pick(i)))
    return machine.arithmetic("add", values[-1], values[0])


def program(seed):
    """A random block in an attempt, so that no failure is left."""
    rng = random.Random(seed)
    return [("attempt", 0.0, block(rng, 2, 4), [("tick",), ("arithmetic", "sin", 0.0, 0.0)])]


def outcome(statements, x, tangent=None, machine=Machine):
    machine = machine()
    y = run(machine, statements, [x if tangent is None else Dual(0, x, tangent)])
    return machine.ticks, y


XS = (0.2, 0.9, -0.6)


def check(seed):
    statements = program(seed)
    f = lambda x: run(Performed, statements, [x])
    expected = [outcome(statements, x) for x in XS]
    slopes = [getattr(outcome(statements, x, 1.0)[1], "t", 0.0) for x in XS]
    close = lambda got, wanted: np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-4, atol=2e-5)
    ticks, ys = zip(*expected)
    inner, outer = hx.jit(lambda x: under(hx.jit(f))(x)), lambda x: under(f)(x)
    for x, (n, y), slope in zip(XS, expected, slopes):
        for handled in (inner, outer)[: 2 if x == XS[0] else 1]:
            close(handled(x), (n, y))
        close(hx.jit(hx.grad(lambda x: under(f)(x)[1]))(x), slope)
        close(hx.jit(lambda x: under(hx.grad(f))(x))(x), (n, slope))
        close(hx.jit(lambda x: under(hx.grad(hx.checkpoint(f)))(x))(x), (n, slope))
    lanes = hnp.array(XS)
    for n, y in (hx.jit(hx.vmap(lambda x: under(f)(x)))(lanes), hx.jit(lambda xs: under(hx.vmap(f))(xs))(lanes)):
        close(n, ticks if n.shape else sum(ticks))
        close(y, ys)
    n, derived = hx.jit(lambda xs: under(hx.vmap(hx.grad(f)))(xs))(lanes)
    close(n, sum(ticks))
    close(derived, slopes)
    kept, ys = zip(*[outcome(statements, x, machine=Transactional) for x in XS])
    for n, y in (hx.jit(hx.vmap(with_count_inside(f)))(lanes), hx.jit(with_count_inside(hx.vmap(f)))(lanes)):
        close(n, kept if n.shape else sum(kept))
        close(y, ys)


@pytest.mark.parametrize("seed", [1, 2, 104, 108])
def test_random_programs_do_what_python_does(seed):
    check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_programs_do_what_python_does(seed):
    check(seed)


# What the law says of states, rows and types


@hx.effect(scopes=1)
class Plate:
    """Its results are not those of its function."""

    size: int

    def result_type(op, body, *types):
        return hx.tree.map(lambda t: t.update(shape=(op.size, *t.shape)), body)


stacking = hx.handler({Plate: lambda op, body, *xs: hx.tree.map(lambda *ys: hnp.stack(ys), *[body(*xs)] * op.size)})
calling = hx.handler({Region: lambda op, body, *xs: body(*xs)})
twice = hx.handler({Region: lambda op, body, *xs: (body(*xs), body(*xs))[1]})


def ticking(x):
    hx.perform(Tick())
    y = hx.perform(Region(), lambda x: (hx.perform(Tick()), x * x)[1], x)
    hx.perform(Tick())
    return y


@pytest.mark.parametrize("run", [lambda f: f, hx.jit, hx.grad, hx.vmap], ids=["eager", "jit", "grad", "vmap"])
def test_the_state_of_a_handler_outside_has_each_execution_of_one_inside_the_one_that_is_answered(run):
    operand = hnp.ones(1) if run is hx.vmap else 2.0
    assert hx.handle(counting, 0)(hx.handle(twice)(run(ticking)))(operand)[0] == 4
    inside = run(lambda x: hx.handle(counting, 0)(ticking)(x)[1])
    assert hx.handle(twice)(inside)(operand) == hx.handle(calling)(inside)(operand)
    assert hx.handle(twice)(hx.handle(counting, 0)(ticking))(2.0)[0] == 3


def test_a_log_crosses_as_entries_of_the_execution_that_is_answered():
    logging = hx.handler({Tick: lambda log, op: ((*log, 1.0), None)}, moves=hx.append)
    assert hx.handle(calling)(hx.handle(logging, ())(ticking))(2.0) == ((1.0, 1.0, 1.0), 4.0)
    clause = lambda log, op, body, *xs: body((*log, 2.0), *xs)
    both = logging | hx.handler({Region: clause}, moves=hx.append)
    for f in (ticking, hx.jit(ticking)):
        assert hx.handle(both, ())(f)(2.0) == ((1.0, 2.0, 1.0, 1.0), 4.0)


def test_the_row_has_the_effect_and_those_of_its_functions():
    program = hx.make_program(ticking)(2.0)
    assert program.effects == {Tick(), Region()}
    assert repr(Region()) == "Region()" and repr(Local(2.0)) == "Local(by=2.0)"
    assert hx.parse_program(str(program), program.constants).unwrap() == program
    hx.typecheck(program)
    assert hx.effects_of(hx.handle(calling)(ticking))(2.0) == {Tick()}


def test_values_that_a_function_captures_are_differentiated_and_mapped():
    def f(x, y):
        return hx.perform(Attempt(), lambda x: x * y, lambda x: x + y, x)

    handled = hx.handle(attempting)
    for derived in (hx.grad(handled(f), argnums=(0, 1)), handled(hx.grad(f, argnums=(0, 1)))):
        assert derived(2.0, 3.0) == (3.0, 2.0)
    xs = hnp.arange(3.0)
    for mapped in (hx.vmap(handled(f), (None, 0)), handled(hx.vmap(f, (None, 0)))):
        assert mapped(2.0, xs).tolist() == [0.0, 2.0, 4.0]


def test_a_derivative_of_a_derivative_and_all_directions_at_once():
    def f(x):
        return hx.perform(Attempt(), lambda x: hnp.sum(x**3), lambda x: hnp.sum(x), x)

    xs = hnp.array([1.0, 2.0])
    handled = hx.handle(attempting)
    for derived in (hx.hessian(handled(f)), handled(hx.hessian(f)), handled(hx.jacrev(hx.jacrev(f)))):
        np.testing.assert_allclose(derived(xs), np.diag([6.0, 12.0]))


def test_custom_rules_and_policies_in_and_around_the_function():
    @hx.custom_jvp
    def cube(x):
        return hx.perform(Local(3.0), lambda x: x**3 * hx.perform(Ask()), x)

    cube.defjvp(lambda primals, tangents: (cube(*primals), 100.0 * tangents[0] * hx.perform(Ask())))
    f = lambda x: hx.perform(Local(2.0), lambda x: cube(x), x)
    under = lambda f: lambda x: hx.handle(reading, hnp.float32(1.0))(f)(x)[1]
    saved = hx.checkpoint(f, policy=hx.checkpoint_policies.everything_saveable)
    assert under(f)(2.0) == 48.0
    for g in (f, hx.checkpoint(f), saved, hx.jit(f)):
        assert hx.grad(under(g))(2.0) == under(hx.grad(g))(2.0) == 200.0


def test_bodies_of_all_lanes_are_executed_once():
    @hx.effect(scopes=1, vmap="bodies", diff="bodies")
    class Whole:
        pass

    shapes = []

    def clause(op, body, *xs):
        shapes.append([x.shape for x in xs])
        return body(*xs)

    f = lambda x, y: hx.perform(Whole(), lambda x, y: (hnp.sin(x) * y, y), x, y)
    xs = hnp.arange(3.0)
    a, b = hx.handle(hx.handler({Whole: clause}))(hx.vmap(f, (0, None)))(xs, 2.0)
    np.testing.assert_allclose(a, 2 * np.sin(xs), rtol=1e-6)
    assert b.tolist() == [2.0] * 3 and shapes[-1] == [(3,), ()]


def test_a_scoped_effect_may_have_a_default():
    @hx.effect(scopes=1, vmap="per_lane", diff="bodies", default=lambda op, body, *xs: body(*xs))
    class Step:
        pass

    f = lambda x: hx.perform(Step(), lambda x: x * hx.perform(Step(), lambda: 3.0 * x), x)
    loop = lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x)
    for g in (f, hx.jit(f), lambda x: hx.vmap(f)(hnp.array([x]))[0], hx.checkpoint(f)):
        assert g(2.0) == 12.0
    assert loop(1.0) == 27.0
    assert hx.grad(f)(2.0) == hx.jit(hx.grad(f))(2.0) == 12.0
    assert hx.handle(hx.handler({Step: lambda op, body, *xs: 0.0}))(f)(2.0) == 0.0


def test_a_declared_result_is_that_of_the_handler_inside_of_transformations():
    f = lambda x: hx.perform(Plate(3), lambda x: {"y": x * x}, x)["y"].sum()
    handled = hx.handle(stacking)(f)
    assert handled(2.0) == hx.jit(handled)(2.0) == hx.handle(stacking)(hx.jit(f))(2.0) == 12.0
    assert hx.grad(handled)(2.0) == 12.0 and hx.vmap(handled)(hnp.ones(2)).tolist() == [3.0, 3.0]
    doubling = hx.handle(hx.handler({Ask: lambda op: 2.0}))
    g = lambda: hx.perform(Plate(2), lambda: hx.perform(Ask()))
    assert hx.handle(stacking)(doubling(g))().tolist() == doubling(hx.handle(stacking)(g))().tolist() == [2.0, 2.0]


def test_a_final_clause_inside_ends_the_program_through_the_function():
    stop = hx.handle(hx.handler({Fail: hx.final(lambda op: -1.0)}))

    def f(x):
        y = hx.perform(Region(), lambda x: (lax.cond(x > 5, lambda: hx.perform(Fail()), lambda: None), x * x)[1], x)
        return 2.0 * y

    outside, xs = hx.handle(calling), hnp.array([2.0, 6.0])
    for inner in (stop(f), hx.jit(stop(f)), stop(hx.jit(f))):
        assert [float(outside(inner)(x)) for x in (2.0, 6.0)] == [8.0, -1.0]
        assert outside(hx.vmap(inner))(xs).tolist() == hx.vmap(outside(inner))(xs).tolist() == [8.0, -1.0]
        for derived in (outside(hx.grad(inner)), hx.grad(outside(inner)), outside(hx.jit(hx.grad(inner)))):
            assert [float(derived(x)) for x in (2.0, 6.0)] == [8.0, 0.0]


def test_loops_until_a_test_take_it_in_body_and_test():
    less = lambda c: hx.perform(Region(), lambda c: c < 50.0, c)
    f = lambda x: lax.while_loop(less, lambda c: hx.perform(Region(), lambda c: c * c, c), x)
    both = lambda f: hx.handle(counting, 0)(hx.handle(attempting)(f))
    assert both(f)(2.0) == both(hx.jit(f))(2.0) == (14, 256.0)
    n, ys = both(hx.vmap(f))(hnp.array([2.0, 3.0, 60.0]))
    assert n == 26 and ys.tolist() == [256.0, 81.0, 60.0]
    assert both(lambda x: hx.jvp(f, (x,), (1.0,)))(2.0) == (14, (256.0, 1024.0))
    with pytest.raises(errors.CannotCross, match="would be performed a second time"):
        both(hx.grad(f))(2.0)


def test_without_a_derivative_it_is_performed_on_values():
    @hx.effect(scopes=1, diff="stop")
    class Fixed:
        pass

    f = lambda x: x * hx.perform(Fixed(), lambda x: x * x, x)
    doubling = hx.handle(hx.handler({Fixed: lambda op, body, *xs: 2.0 * body(*xs)}))
    assert doubling(hx.grad(f))(3.0) == 18.0 and hx.grad(doubling(f))(3.0) == 54.0


def test_a_stepper_executes_it_as_one():
    stepper = hx.step(lambda x: hx.perform(Region(), lambda x: 2.0 * x, x))(1.0)
    refused(errors.BadArgument, "region has none: its clause decides", stepper.into)


# Refusals


def refused(kind, text, f, *args):
    with pytest.raises(kind, match=text):
        f(*args)


def test_what_cannot_cross_is_refused_while_it_is_traced():
    plate = lambda x: hx.perform(Plate(2), lambda x: (hx.perform(Tick()), x * x)[1], x).sum()
    outside = hx.handle(stacking)
    counted = hx.handle(counting, 0)(plate)
    refused(errors.CannotCross, "its results are not those of its function", outside(counted), 1.0)
    refused(errors.CannotCross, "plate: this effect cannot cross vmap", outside(hx.vmap(plate)), hnp.ones(2))
    refused(errors.NotDifferentiable, "plate: an operand of this effect, or what", outside(hx.grad(plate)), 1.0)
    resumed = hx.handle(hx.handler({Tick: hx.ctl(lambda resume, op: resume(None))}))
    inside = hx.handle(calling)(resumed(ticking))
    refused(errors.CannotCross, "region: a clause that takes resume, of tick", inside, 1.0)
    assert resumed(hx.handle(calling)(ticking))(2.0) == 4.0
    ragged = hx.Ragged(hnp.arange(5.0), hnp.array([2, 3]))
    rows = hx.vmap(lambda row: hx.perform(Region(), lambda row: row.sum(), row), in_axes=hx.ragged_axis)
    refused(errors.CannotCross, "region: lanes have values of different types", hx.handle(calling)(rows), ragged)


def test_lanes_that_part_ways_need_effects_that_are_per_lane():
    @hx.effect(vmap="once")
    class Once:
        def result_type(op):
            return None

    f = hx.vmap(lambda x: hx.perform(Region(), lambda x: (hx.perform(Once()), x)[1], x))
    once = hx.handle(hx.handler({Once: lambda op: None}))
    refused(errors.CannotCross, r"only some of them would perform once\.", once(hx.handle(calling)(f)), hnp.ones(2))


@pytest.mark.parametrize("f", [ticking, hx.jit(ticking)], ids=["eager", "jit"])
def test_without_a_handler_it_is_unhandled(f):
    refused(errors.UnhandledEffect, "nobody handles Region\\(\\)", hx.handle(counting, 0)(f), 1.0)


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, abs)], ids=["none", "an array", "an array first"])
def test_a_function_is_needed(args):
    refused(errors.BadCall, "region: it takes a function before its operands", hx.perform, Region(), *args)
    refused(errors.BadCall, "attempt: it takes 2 functions before its operands", hx.perform, Attempt(), *args)


def test_functions_of_one_effect_return_one_type():
    f = lambda x: hx.perform(Attempt(), lambda x: (x,), lambda x: x, x)
    refused(errors.TreeMismatch, "attempt: all branches must give trees of one structure", f, 1.0)
    g = lambda x: hx.perform(Attempt(), lambda x: hnp.zeros(2), lambda x: hnp.float32(0.0), x)
    refused(errors.StateTypeError, "attempt: all branches must give the same types", g, 1.0)


CLAUSES = {
    "other operands": (lambda op, body, *xs: body(), errors.BadCall, "takes .*, as it was performed with, got"),
    "another arity": (lambda op, body: body(), errors.BadCall, "region: the clause takes .*, it is called with"),
    "another type": (lambda op, body, *xs: hnp.zeros(3), errors.ShapeMismatch, "region: the answer of a clause"),
    "no answer": (lambda op, body, *xs: None, errors.TreeMismatch, "region: the clause must give 1 result"),
}


@pytest.mark.parametrize("name", CLAUSES)
def test_mistakes_in_a_clause_are_explained(name):
    clause, kind, text = CLAUSES[name]
    refused(kind, text, hx.handle(hx.handler({Region: clause, Tick: lambda op: None}))(ticking), 1.0)


def test_a_clause_without_the_state_is_explained():
    both = hx.handler({Region: lambda s, op, body, *xs: body(*xs), Tick: lambda s, op: (s, None)})
    refused(errors.BadCall, "takes .*, as it was performed with, got", hx.handle(both, 0)(ticking), 1.0)


def test_an_answer_without_the_state_of_a_handler_inside_is_refused():
    ignoring = hx.handle(hx.handler({Region: lambda op, body, *xs: 0.0}))(hx.handle(counting, 0)(ticking))
    refused(errors.TreeMismatch, "region: the clause must give 2 results", ignoring, 1.0)


def test_declarations_are_checked():
    class Block:
        pass

    once = lambda: hx.effect(scopes=1, vmap="once")
    refused(errors.BadArgument, "vmap must be 'bodies', 'per_lane' or 'refuse'", once)
    refused(errors.BadArgument, "diff must be 'stop' or 'refuse'", lambda: hx.effect(diff="bodies"))
    refused(errors.BadArgument, "scopes must be a number of functions", lambda: hx.effect(scopes=-1))
    refused(errors.RegistrationError, "has no base class", hx.effect(scopes=1), type("Child", (Block,), {}))
    fields = {"__annotations__": {"carry": "int"}}
    refused(errors.RegistrationError, "a field must not be called 'carry'", hx.effect(scopes=1), type("B", (), fields))
    defined = type("B", (), {"groups": lambda op: 1})
    refused(errors.RegistrationError, "a block must not define 'groups'", hx.effect(scopes=1), defined)
    rule = lambda op, primals, tangents: (hx.perform(op, *primals), tangents[0])
    block = type("B", (), {"jvp": rule})
    refused(errors.RegistrationError, "a block with scopes has no jvp rule", hx.effect(scopes=1, vmap="bodies"), block)
    refused(errors.RegistrationError, "B: a block with scopes has no jvp rule", hx.effect(scopes=1, diff="stop"), block)
    refused(errors.RegistrationError, "Region: a block with scopes has no jvp", hx.columns.jvp.rule(Region), rule)
    labelled = hx.effect(scopes=1)(type("B", (), {"label": "b", "name": "labelled"}))
    assert labelled().label == "b"
    ends = {Region: lambda op, body, *xs: body(*xs), Tick: hx.final(lambda op: 0.0)}
    refused(errors.BadArgument, "is answered by clauses that answer once", hx.handler, ends)
    refused(errors.BadArgument, "is answered by clauses", hx.handler, {Region: hx.final(lambda op, body, *xs: 0.0)})


def test_an_effect_that_takes_functions_leaves_the_laws_of_nests_alone():
    with evaluated():
        assert float(hx.handle(attempting)(lambda x: hx.perform(Attempt(), hnp.sin, hnp.cos, x))(0.0)) == 0.0
