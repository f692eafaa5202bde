"""Numbers that clauses bring into compiled functions are operands: with other numbers nothing is compiled anew."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.programs.higher_order import Call
from handlax.operations import Mul, Sin
from handlax.testing import counted

X = hnp.float32(0.7)


@hx.effect(vmap="once", diff="stop")
class Ask:
    """A setting."""

    def result_type(op):
        return hx.ArrayType((), "float32")


@hx.effect(vmap="per_lane")
class Pulse:
    def result_type(op):
        return None


def plain(x):
    return hnp.sin(x) * 2.0 + hnp.sin(x * 2.0)


def looping(x):
    return lax.scan(lambda c, _: (hnp.sin(c) * 2.0, hnp.sin(c)), x, None, length=3)


def branching(x):
    return lax.cond(x > 0.5, lambda x: hnp.sin(x) * 2.0, lambda x: 3.0 - hnp.sin(x), x)


def nested(x):
    return lax.scan(lambda c, _: (branching(hx.jit(plain)(c)), None), x, None, length=2)[0]


def until(x):
    return lax.while_loop(lambda c: c + hnp.sin(c) * 0.01 < 5.0, lambda c: c + 1.0 + hnp.sin(c) ** 2, x)


@hx.custom_jvp
def ruled(x):
    return hnp.sin(x) * 2.0


ruled.defjvp(lambda x, dx: (ruled(*x), hnp.sin(*x) * dx[0]))


def asking(x):
    return x * hx.perform(Ask()) * 2.0


def pulsing(x):
    def step(c, _):
        hx.perform(Pulse())
        return hnp.sin(c), None

    return lax.scan(step, x, None, length=3)[0]


def stateless(scale):
    return hx.handle(hx.handler({Sin: lambda op, y: scale * hx.perform(op, y)}))


def otherwise(scale):
    clause = lambda op, *xs: scale * hx.perform(op, *xs) if isinstance(op, Sin) else hx.perform(op, *xs)
    return hx.handle(hx.handler(otherwise=clause, over=hx.is_pure))


def stateful(scale):
    return hx.handle(hx.handler({Sin: lambda s, op, y: (s * scale + 0.5, hx.perform(op, y) + s)}), 1.0)


def logging(scale):
    return hx.handle(hx.handler({Sin: lambda log, op, y: ((*log, scale), hx.perform(op, y))}, moves=hx.append), ())


def array(scale):
    return hx.handle(hx.handler({Sin: lambda op, y: hnp.sum(np.array([scale, 1.0], "float32")) * y}))


def final(scale):
    ending = hx.final(lambda op: hnp.float32(scale))
    return hx.handle(hx.handler({Sin: lambda op, y: scale * hx.perform(op, y), Pulse: ending}))


def in_two(scale):
    inner = hx.handle(hx.handler({Sin: lambda op, y: hx.perform(op, y) / scale}))
    return lambda f: stateless(scale)(inner(f))


HANDLERS = [stateless, otherwise, stateful, array, final, in_two]
FUNCTIONS = [plain, looping, branching, nested, until, ruled]
AROUND = {
    "": lambda h, g: h(g),
    "vmap": lambda h, g: lambda x: hx.vmap(h(g))(hnp.array([0.1, 0.9]) + x),
    "grad": lambda h, g: hx.grad(lambda x: sum([hnp.sum(y) for y in hx.tree.leaves(h(g)(x))])),
    "inside of grad": lambda h, g: h(hx.grad(lambda x: sum([hnp.sum(y) for y in hx.tree.leaves(g(x))]))),
    "inside of vmap": lambda h, g: lambda x: h(hx.vmap(g))(hnp.array([0.1, 0.9]) + x),
}
SCALES = [0.1, 0.2, 0.3, 2.0, 0.5, 1.0, 3.0]  # some are literals of the functions and of the clauses


def leaves(y):
    return [np.asarray(x) for x in hx.tree.leaves(y)]


def check(handled, g, f, around, x=X):
    """Compiles for one number alone, and gives what literals give."""
    run = AROUND[around]
    run(handled(0.9), g)(x)
    counts = [counted(lambda s=s: run(handled(s), g)(x)).compiles for s in SCALES]
    assert counts == [0] * len(SCALES)
    for scale in SCALES[:4]:
        for got, wanted in zip(leaves(run(handled(scale), g)(x)), leaves(hx.jit(run(handled(scale), f))(x))):
            np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.each_choice
@pytest.mark.parametrize("handled", HANDLERS)
@pytest.mark.parametrize("f", [plain, looping])
def test_with_another_number_a_compiled_function_is_not_compiled_anew(handled, f):
    check(handled, hx.jit(f), f, "")


@pytest.mark.parametrize("f", [branching, nested, until, ruled])
def test_it_crosses_branches_loops_and_rules(f):
    check(stateless, hx.jit(f), f, "")


@pytest.mark.parametrize("around", AROUND)
def test_it_crosses_transformations_around_and_inside(around):
    check(stateless, hx.jit(looping), looping, around)


@pytest.mark.sweep
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("handled", HANDLERS)
def test_every_handler_crosses_every_function_under_every_transformation(handled, f, around):
    if f is until and around in ("grad", "inside of grad"):
        pytest.skip("a loop until a test has no reverse mode")
    if f is ruled and around == "grad":
        pytest.skip("a rule is recorded when it is differentiated, with numbers as literals")
    if around in ("vmap", "inside of vmap") and handled is final:
        pytest.skip("it ends one lane")
    check(handled, hx.jit(f), f, around)


def test_an_eager_loop_is_a_compiled_function_too():
    check(stateless, looping, looping, "")


def test_an_answer_is_a_number_that_the_clause_brings():
    check(lambda scale: hx.handle(hx.handler({Ask: lambda op: scale})), hx.jit(asking), asking, "")


def test_a_log_has_the_numbers_that_its_clause_appends():
    check(logging, hx.jit(looping), looping, "")


def test_a_clause_that_ends_the_program_brings_numbers_too():
    check(final, hx.jit(pulsing), pulsing, "")


def test_a_function_is_traced_once_and_its_clauses_called_on_every_call():
    g = hx.jit(plain)
    stateless(0.5)(g)(X)
    assert counted(lambda: [stateless(scale)(g)(X) for scale in SCALES]).traces == 0


def test_numbers_stay_numbers_of_python_in_the_clause():
    def deciding(scale):
        def clause(op, y):
            return hx.perform(op, y) * scale if scale > 0.5 else hx.perform(op, y) - scale

        return hx.handle(hx.handler({Sin: clause}))

    g = hx.jit(plain)
    assert counted(lambda: [deciding(scale)(g)(X) for scale in (0.1, 0.9)]).compiles == 2
    assert counted(lambda: [deciding(scale)(g)(X) for scale in (0.2, 0.8, 0.3, 0.7)]).compiles == 0


def test_a_static_use_of_a_number_compiles_for_each():
    powers = lambda n: hx.handle(hx.handler({Sin: lambda op, y: hx.perform(op, y) ** n}))
    g = hx.jit(plain)
    powers(2)(g)(X)
    assert counted(lambda: powers(3)(g)(X)).compiles == 1
    assert counted(lambda: powers(2)(g)(X)).compiles == 0


def literals(program):
    inner = [x for op in program.ops if op.bodied for body in op.bodies for x in literals(body)]
    return [float(x) for x in program.consts] + inner


def test_literals_of_the_function_stay_literals():
    kept = hx.handle(hx.handler({Mul: lambda op, x, y: hx.perform(op, x, y) * 4.0}))
    seen = []

    def see(op, *xs):
        seen.append((op, xs))
        return hx.perform(op, *xs)

    hx.handle(hx.handler({Call: see}))(kept(hx.jit(plain)))(X)
    ((op, operands),) = seen
    assert [float(x) for x in operands] == [4.0, pytest.approx(0.7)]
    assert sorted({*literals(op.bodies[0])}) == [2.0]


def test_inside_of_a_trace_numbers_are_literals():
    program = hx.make_program(stateless(0.25)(hx.jit(plain)))(X)
    assert 0.25 in literals(program) and len(program.ops) == 1 and len(program.args[0]) == 1


def test_a_function_without_handlers_lowers_to_the_same_text():
    before = hx.jit(plain).lower(X).as_text()
    stateless(0.1)(hx.jit(plain))(X)
    assert hx.jit(plain).lower(X).as_text() == before and "constant dense<0x40000000>" in before
