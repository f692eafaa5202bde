"""Repeats are found, and boundaries between them change no value."""

import itertools

import numpy as np
import pytest
from helpers.random_programs import programs
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.control.checkpoint import Boundary
from handlax.effects.programs.program import interpret
from handlax.interpreters.analysis import repeats as analysis
from handlax.interpreters.analysis.repeats import repeats, split, weight, with_boundaries
from handlax.interpreters.analysis.simplify import dead_code_elimination
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.testing.generator.equations import arguments


@pytest.fixture
def everywhere(monkeypatch):
    """Boundaries also in programs that gain nothing by them."""
    monkeypatch.setattr(analysis, "LEAST_DUPLICATION", 0.0)
    hx.clear_caches()
    yield
    hx.clear_caches()


def block(w, x):
    return x + hnp.tanh(x @ w - hnp.mean(x)) * hnp.exp(-x)


def deep(n, block=block):
    def model(ws, x):
        for i in range(n):
            x = block(ws[i], x)
        return x.sum()

    return model, ([hnp.full((4, 4), 0.1 * (i + 1)) for i in range(n)], hnp.linspace(-1.0, 1.0, 8).reshape(2, 4))


def program_of(f, args):
    return hx.make_program(f)(*args)


def boundaries(program):
    inner = [boundaries(body) for op in program.ops if op.bodied for body in op.bodies]
    return sum(isinstance(op, Boundary) for op in program.ops) + sum(inner)


def test_the_blocks_of_a_model_are_a_repeat(everywhere):
    f, args = deep(20)
    program = program_of(f, args)
    (found,) = repeats(program)
    assert found.times == 20
    assert found.period * 20 <= len(program.ops) < found.period * 21
    assert boundaries(with_boundaries(program)) == 19


def test_so_are_those_of_its_gradient_forward_and_backward():
    f, args = deep(20)
    found = repeats(program_of(hx.grad(f), args))
    assert [repeat.times >= 19 for repeat in found] == [True, True]


def test_numbers_and_places_that_differ_do_not_hide_a_repeat(everywhere):
    def model(x):
        for i in range(30):
            x = x * (1.0 + 0.1 * i) + hnp.sin(x[i % 4]) + hnp.cos(x) * x.mean()
        return x

    (found,) = repeats(program_of(model, [hnp.ones(4)]))
    assert found.times == 30


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_program_with_few_repeats_stays_itself(n):
    program = program_of(*deep(n))
    assert repeats(program) == ()
    assert with_boundaries(program) is program


def test_a_body_that_is_called_many_times_is_visited_once():
    def twice(f):
        return lambda x: f(f(x))

    f = lambda x: hnp.sin(x) * x
    for _ in range(60):
        f = twice(hx.jit(f))
    program = program_of(f, [hnp.ones(())])
    assert weight(program) > 2**60 and with_boundaries(program) is program


@pytest.mark.parametrize("n", [40, 200])
def test_chains_of_cheap_steps_are_one_kernel_and_stay_whole(n):
    def chain(x, r):
        for _ in range(n):
            x = r * x * (1 - x)
        return x.sum()

    def two_terms(a, b):
        for _ in range(n):
            a, b = b, hnp.sin(a + b)
        return a

    for f in (chain, two_terms):
        for g in (f, hx.grad(f), hx.jvp, hx.grad(hx.checkpoint(f))):
            transformed = g if g is not hx.jvp else lambda x, y: hx.jvp(f, (x, y), (x, y))
            program, _ = dead_code_elimination(program_of(transformed, [hnp.ones(()), hnp.ones(())]))
            assert with_boundaries(program) is program


def test_blocks_whose_states_are_stored_stay_whole():
    """A product reads each state, so that its chain ends there: nothing is computed twice."""
    recurrent = lambda w, x: hnp.tanh(x @ w)
    euler = lambda w, x: x + 0.1 * hnp.tanh(x @ w)
    for cell in (recurrent, euler):
        f, args = deep(40, cell)
        for g in (f, hx.grad(f)):
            assert repeats(program_of(g, args)) == ()


def test_steps_that_nothing_stores_are_split():
    """Each parameter's gradient is a sum over a long axis, whose kernel would compute all steps again."""
    def euler(p, x, y):
        for _ in range(20):
            x, y = x + 0.05 * y, y + 0.05 * (p * (1 - x * x) * y - x)
        return hnp.mean(x * y)

    found = repeats(program_of(hx.grad(euler), [1.0, hnp.ones(100), hnp.ones(100)]))
    assert found and all(repeat.times >= 17 for repeat in found)


@pytest.mark.parametrize("steps", [40, 150])
def test_neighbours_that_share_an_equation_are_both_split(steps):
    """A recurrence that gains nothing stands after blocks that do, and may be the longer part."""
    def model(ws, u, x):
        for w in ws:
            x = block(w, x)
        h = x
        for _ in range(steps):
            h = hnp.tanh(h @ u + x)
        return hnp.mean(h * h)

    _, (ws, x) = deep(24)
    found = repeats(program_of(hx.grad(model), [ws, hnp.eye(4), x]))
    assert [repeat.times for repeat in found if repeat.period > 6] == [24, 23]
    assert all(a.stop <= b.start for a, b in itertools.pairwise(found))


def test_results_are_stored():
    def chain(x):
        ys = []
        for _ in range(40):
            x = hnp.sin(x) * 2.0 + hnp.cos(x)
            ys.append(x)
        return ys

    assert repeats(program_of(chain, [hnp.ones(3)])) == ()


@pytest.mark.parametrize("fold", [lambda x, f: lax.reduce(x, 0.0, f, (0,)),
                                  lambda x, f: lax.reduce_window(x, 0.0, f, (2,), (1,), "VALID")])
def test_functions_of_scalars_are_not_split(fold):
    def add(a, b):
        t = a
        for _ in range(40):
            t = hnp.sin(t) * b + hnp.cos(t) - hnp.tanh(t * b)
        return a + b + 0 * t

    f, x = lambda x: fold(x, add), hnp.linspace(0.1, 1.0, 8)
    assert boundaries(with_boundaries(program_of(f, [x]))) == 0
    np.testing.assert_allclose(hx.jit(f)(x), f(x), rtol=1e-5)


def test_blocks_of_different_shapes_are_none():
    def model(x):
        for i in range(40):
            x = hnp.tanh(hnp.concatenate([x, x[:1]])) * (1.0 + i)
        return x

    assert repeats(program_of(model, [hnp.ones(4)])) == ()


def test_a_boundary_is_where_the_fewest_bytes_cross(everywhere):
    def wide_inside(w, x):
        return hnp.mean(hnp.sin(x[:, None] * hnp.ones(1000)) + hnp.cos(x)[:, None] * hnp.tanh(x)[:, None], axis=1)

    f, args = deep(30, wide_inside)
    program = with_boundaries(program_of(lambda x: f(args[0], x), [hnp.ones(3)]))
    crossing = [types for op, types in zip(program.ops, program.types) if type(op) is Boundary]
    assert len(crossing) == 29
    assert {t.shape for types in crossing for t in types} == {(3,)}


@pytest.mark.parametrize("wrap", [hx.jit, hx.checkpoint], ids=["jit", "checkpoint"])
def test_a_block_that_is_one_call_counts_as_its_body(wrap, everywhere):
    f, args = deep(20, wrap(block))
    program = program_of(f, args)
    (found,) = repeats(program)
    assert found.times == 20
    assert weight(program) >= 20 * weight(program_of(block, [args[0][0], args[1]]))


def test_bodies_of_loops_and_branches_have_boundaries_of_their_own(everywhere):
    f, (ws, x) = deep(20)

    def inside(x):
        y, _ = lax.scan(lambda c, w: (c + lax.cond(c > 0, lambda: f(ws, x * w), lambda: 0.0), None), 0.0, hnp.ones(3))
        return y

    program = program_of(inside, [x])
    assert boundaries(program) == 0
    assert boundaries(with_boundaries(program)) == 19


@given(programs(effects=True, size=30), st.data())
def test_values_types_and_effects_are_the_same(p, data):
    args = arguments(p)
    places = data.draw(st.sets(st.integers(1, max(len(p.ops) - 1, 1)), max_size=len(p.ops) // 2))
    runs = {i: data.draw(st.integers(1, i)) for i in sorted(places)}
    q = typecheck(split(p, runs, data.draw(st.booleans())))
    assert q.in_types == p.in_types and q.out_types == p.out_types
    assert [op for op in q.ops if type(op) is not Boundary] == [*p.ops]
    if not p.effects:
        for y, z in zip(interpret(p, args), interpret(q, args)):
            np.testing.assert_array_equal(y.value, z.value)


def in_lanes(f):
    return hx.vmap(f, in_axes=(None, 0))


SAME = lambda f: f


@pytest.mark.parametrize(("wrap", "transform"), [
    pytest.param(wrap, transform, id=f"{name} {of}", marks=[pytest.mark.sweep] * (name != "plain" and of != "grad"))
    for name, wrap in {"plain": SAME, "jit": hx.jit, "checkpoint": hx.checkpoint}.items()
    for of, transform in {"f": SAME, "grad": hx.grad, "vmap": in_lanes}.items()
])
def test_compiled_values_are_those_without_boundaries(wrap, transform, everywhere):
    f, args = deep(20, wrap(block))
    split, whole = [hx.jit(transform(f), compiler_options={"split_repeats": yes}) for yes in (True, False)]
    for y, z in zip(hx.tree.leaves(split(*args)), hx.tree.leaves(whole(*args))):
        np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)
    texts = [g.lower(*args).as_text() for g in (split, whole)]
    crossings = [len(text.split("optimization_barrier")) + len(text.split('inlineable = "false"')) for text in texts]
    assert crossings[0] - crossings[1] >= 19
