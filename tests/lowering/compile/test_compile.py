"""Programs with boundaries between their repeats do all that those without do."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest
from helpers.deep_models import MODELS

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import FoundNaN
from handlax.interpreters.analysis import repeats
from handlax.lowering.xla import disk_cache
from handlax.lowering.xla.lazy import runtime

DEPTH = 8
WS = 0.05 * np.random.default_rng(0).normal(size=(DEPTH, 8, 8)).astype("float32")
X = np.linspace(-1.0, 1.0, 64, dtype="float32").reshape(8, 8)
CROSSING = re.compile(r'optimization_barrier|inlineable = "false"')
WHOLE = {"split_repeats": False}


@pytest.fixture(autouse=True)
def boundaries_between_all_repeats(monkeypatch):
    """Also in programs that gain nothing by them, such as these, which are short, without their gradients."""
    monkeypatch.setattr(repeats, "LEAST_DUPLICATION", 0.0)
    monkeypatch.setattr(repeats, "LEAST_SAVED", 30)
    hx.clear_caches()
    yield
    hx.clear_caches()


def block(w, x):
    return x + hnp.tanh(x @ w - hnp.mean(x)) * hnp.exp(-x * x)


def loss(ws, x, block=block):
    for i in range(DEPTH):
        x = block(ws[i], x)
    return (x * x).mean()


def crossings(f, *args):
    return len(CROSSING.findall(f.lower(*args).as_text()))


def same(f, *args, **options):
    """The compiled results of a function, which are those without boundaries, of which it has some."""
    whole = hx.jit(lambda *xs: f(*xs), compiler_options=WHOLE, **options)
    split = hx.jit(lambda *xs: f(*xs), **options)
    assert crossings(split, *args) - crossings(whole, *args) >= DEPTH - 1
    expected = [np.asarray(y) for y in hx.tree.leaves(whole(*hx.tree.map(hnp.array, args)))]
    results = split(*hx.tree.map(hnp.array, args))
    for y, z in zip(hx.tree.leaves(results), expected):
        np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)
    return results


def test_gradients_and_second_derivatives():
    same(hx.value_and_grad(loss), WS, X)
    same(lambda ws, x: hx.jvp(hx.grad(loss), (ws, x), (ws, x)), WS, X)


def adam(loss):
    def step(ps, m, v, x):
        value, g = hx.value_and_grad(loss)(ps, x)
        m = hx.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = hx.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        return value, hx.tree.map(lambda p, m, v: p - 1e-3 * m / (hnp.sqrt(v) + 1e-3), ps, m, v), m, v

    return step


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_models_and_their_training_steps(name):
    loss, ps, x = MODELS[name]
    zeros = hx.tree.map(hnp.zeros_like, ps)
    for f, args in ((loss, (ps, x)), (hx.value_and_grad(loss), (ps, x)), (adam(loss), (ps, zeros, zeros, x))):
        split, whole = hx.jit(f), hx.jit(f, compiler_options=WHOLE)
        for y, z in zip(hx.tree.leaves(split(*args)), hx.tree.leaves(whole(*args))):
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-6 * max(1.0, float(hnp.abs(z).max())))
    assert crossings(split, *args) > crossings(whole, *args)


def test_bodies_of_loops_and_branches():
    def looped(ws, x):
        step = lambda c, _: (c - 0.1 * hx.grad(loss, 1)(ws, c), c.sum())
        return lax.scan(step, x, length=3)

    same(looped, WS, X)
    same(lambda ws, x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] - loss(ws, c[1])), (0, x)), WS, X)
    same(lambda ws, x: lax.cond(x.sum() > -1e9, loss, lambda ws, x: 0.0, ws, x), WS, X)


def test_loops_and_branches_in_the_blocks():
    def branching(w, x):
        y, _ = lax.scan(lambda c, row: (c + lax.cond(row.sum() > 0, hnp.sin, hnp.cos, row), None), x[0], x)
        return block(w, x + y)

    same(hx.grad(lambda ws, x: loss(ws, x, branching)), WS, X)


def test_checkpoints_with_and_without_merging():
    for prevent_cse in (True, False):
        same(hx.grad(lambda ws, x: loss(ws, x, hx.checkpoint(block, prevent_cse=prevent_cse))), WS, X)


def test_custom_rules():
    @hx.custom_vjp
    def own(w, x):
        return block(w, x)

    own.defvjp(lambda w, x: hx.vjp(block, w, x), lambda pull, ct: pull(ct))
    same(hx.grad(lambda ws, x: loss(ws, x, own)), WS, X)


def test_donated_arguments():
    same(lambda ws, x: hx.tree.map(lambda w, g: w - g, ws, hx.grad(loss)(ws, x)), WS, X, donate_argnums=0)


def test_callbacks_and_their_order():
    seen = []

    def told(w, x):
        hx.debug.callback(lambda s: seen.append(float(s)), x.sum(), ordered=True)
        return block(w, x) + hx.pure_callback(np.sin, x, x)

    same(lambda ws, x: loss(ws, x, told), WS, X)
    hx.effects_barrier()
    assert len(seen) == 2 * DEPTH and seen[:DEPTH] == pytest.approx(seen[DEPTH:], rel=1e-5)


def test_effects_and_their_handlers():
    @hx.effect
    class Level:
        def result_type(op, x):
            return x

    def levelled(w, x):
        return block(w, hx.perform(Level(), x))

    same(hx.handle(hx.handler({Level: lambda op, x: x * 0.9}))(lambda ws, x: loss(ws, x, levelled)), WS, X)


def test_the_first_nan_is_named_with_its_line():
    def failing(w, x):
        return block(w, hnp.sqrt(x))

    f = hx.jit(lambda ws, x: loss(ws, x, failing))
    assert crossings(f, WS, X) >= DEPTH - 1
    with hx.debug_nans(), pytest.raises(FoundNaN, match="sqrt") as caught:
        f(WS, X)
    assert __file__ in "".join(traceback.format_exception(caught.value))


@pytest.mark.filterwarnings("error")
def test_stages_and_costs():
    lowered = hx.jit(hx.grad(loss)).lower(WS, X)
    whole = hx.jit(hx.grad(loss), compiler_options=WHOLE).lower(WS, X)
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(WS, X), whole.compile()(WS, X), rtol=1e-5, atol=1e-6)
    assert compiled.cost_analysis()["flops"] > 0
    assert lowered.cost_analysis()["flops"] == pytest.approx(whole.cost_analysis()["flops"], rel=0.05)
    with pytest.raises(hx.errors.BadArgument, match="split_repeats"):
        lowered.compile(WHOLE)


def test_another_process_finds_the_program_on_disk(tmp_path):
    run = lambda: np.asarray(hx.jit(hx.grad(loss))(WS, X))
    with hx.configure(compilation_cache_dir=str(tmp_path)):
        hx.clear_caches()
        first = run()
        disk_cache.COUNTS.clear()
        hx.clear_caches()
        np.testing.assert_array_equal(run(), first)
        assert disk_cache.COUNTS["hit"] == 1 and not disk_cache.COUNTS["written"]


def test_equal_programs_have_equal_texts():
    made = [hx.jit(lambda ws, x: hx.grad(loss)(ws, x)).lower(WS, X).as_text() for _ in range(2)]
    assert made[0] == made[1]


COLLECTIVE = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def test_shardings_have_no_more_collectives():
    mesh = hx.make_mesh((4, 2), ("data", "model"))
    ws = hx.device_put(WS, hx.NamedSharding(mesh, hx.P(None, None, "model")))
    x = hx.device_put(X, hx.NamedSharding(mesh, hx.P("data")))
    step = hx.value_and_grad(loss)
    split, whole = hx.jit(lambda *a: step(*a)), hx.jit(lambda *a: step(*a), compiler_options=WHOLE)
    assert (crossings(split, ws, x) > 0) == runtime.KEEPS_BARRIERS
    for y, z in zip(hx.tree.leaves(split(ws, x)), hx.tree.leaves(whole(ws, x))):
        np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)
    count, plain = [len(COLLECTIVE.findall(f.lower(ws, x).compile().as_text())) for f in (split, whole)]
    assert 0 < count <= plain


@pytest.mark.parametrize("shared", [False, True])
def test_gradients_of_data_parallel_weights_are_reduced_at_once(shared):
    """The sum of a shared weight's gradients over all blocks crosses no boundary: they are reduced together."""
    mesh = hx.make_mesh((4,), ("data",))
    w = hx.device_put(hnp.eye(8) / 3 if shared else WS, hx.NamedSharding(mesh, hx.P()))
    x = hx.device_put(X, hx.NamedSharding(mesh, hx.P("data")))
    step = hx.grad(lambda w, x: loss([w] * len(WS) if shared else [w[i] for i in range(len(WS))], x))
    made = [hx.jit(lambda *a: step(*a), compiler_options=o).lower(w, x).compile().as_text() for o in (None, WHOLE)]
    counts = [len(COLLECTIVE.findall(text)) for text in made]
    assert counts[0] == counts[1] > 0


def test_shard_map():
    mesh = hx.make_mesh((8,), ("i",))
    mapped = hx.shard_map(
        lambda ws, x: lax.psum(loss(ws, x), "i"), mesh=mesh, in_specs=(hx.P(), hx.P("i")), out_specs=hx.P()
    )
    made = [hx.jit(lambda *a: hx.grad(mapped)(*a), compiler_options=o)(WS, X) for o in (None, WHOLE)]
    np.testing.assert_allclose(*made, rtol=1e-5, atol=1e-6)


def test_the_option_is_a_bool():
    for value in (3, 1, 0, 1.0, [1], None):
        with pytest.raises(hx.errors.BadArgument, match="split_repeats must be True or False"):
            hx.jit(loss, compiler_options={"split_repeats": value})


@pytest.mark.parametrize(("line", "reason"), [
    ("neg", "neg: it takes 1 operand, got 0"), ("add a", "add: it takes 2 operands, got 1"),
    ("transpose[permutation=(1,)] a", "is no permutation of the dimensions"), ("concatenate[dimension=7] a a", "range"),
    ("rev[dimensions=(0, 0)] a", "dimensions must be distinct"), ("integer_pow[y=1.5] a", "y must be of the type int"),
])
def test_a_program_that_is_not_well_formed_is_refused_with_its_equation(line, reason):
    p = hx.Program.parse(f"program f(a: f32[3]) -> (f32[3]) {{\n  b: f32[3] = {line}\n  return (b)\n}}")
    for refused in (hx.jit(p), hx.jit(p).lower):
        with pytest.raises(hx.errors.HandlaxError, match=re.escape(f"equation 0, b: f32[3] = {line}: ")) as caught:
            refused(hnp.ones(3)).compile()
        assert reason in caught.value.what


def test_a_name_in_any_script_is_compiled():
    def größe(x):
        return x * x - 41.0

    def 長さ(x):
        return hx.jit(größe)(x) + hx.jit(größe)(2 * x)

    assert float(hx.jit(größe)(7.0)) == 8.0 and float(hx.jit(長さ)(7.0)) == 8.0 + 155.0
