"""Runs that examples/interpreters record and compare, and shapes with names, against runs at known sizes."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from helpers.interpreter_examples import FOLDER, example, folder

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp
from handlax.library import autocast
from handlax.operations import Exp

__all__ = ["folder"]    # a fixture, which pytest finds here


# The first difference: faults that are put into one operation, where NumPy's loop says that they strike first.

def faulty(limit):
    """Exponentials of more than the limit are wrong."""
    return hx.handle(hx.handler({Exp: lambda op, x: hx.perform(op, x) * hnp.where(x > limit, 1.1, 1.0)}))


def growing(x):
    step = lambda c, r: (c + 0.1 * hnp.exp(hnp.float32(0.1) * c) * r, c)
    return lax.scan(step, x, hnp.ones(50))


def first_large(limit):
    c = np.float32(0.5)
    for i in range(50):
        if np.float32(0.1) * c > limit:
            return i
        c = c + np.float32(0.1) * np.exp(np.float32(0.1) * c)
    return None


@pytest.mark.parametrize("limit", [0.04, 0.1, 0.3, 0.6, 5.0])
@pytest.mark.parametrize("around", ["loop", "jit", "branch", "vmap", "grad"])
def test_the_first_difference_is_where_the_fault_strikes(limit, around):
    f = {
        "loop": growing, "jit": hx.jit(growing), "vmap": lambda x: hx.vmap(growing)(hnp.stack([x, x])),
        "branch": lambda x: lax.cond(x > 0, growing, lambda x: growing(2 * x), x),
        "grad": hx.grad(lambda x: growing(x)[0]),
    }[around]
    expected = first_large(limit)
    found = example("first_difference").first_difference(f, hnp.float32(0.5), otherwise=faulty(limit))
    assert (found is None) == (expected is None)
    if found is not None:
        line = growing.__code__.co_firstlineno + 1
        assert (found.op.name, found.iterations, found.line) == ("exp", (expected,), line)
        assert np.allclose(np.asarray(found.found), 1.1 * np.asarray(found.expected))


def test_the_first_difference_is_found_behind_a_loop_of_unknown_length():
    def f(x, y):
        x = lax.while_loop(lambda x: x < y, lambda x: x + y, x)
        return hnp.exp(x)

    found = example("first_difference").first_difference(f, 0.5, 2.0, otherwise=faulty(1.0))
    assert (found.op.name, found.line) == ("exp", f.__code__.co_firstlineno + 2)


def test_the_first_difference_is_found_in_nested_loops_and_backwards():
    def f(xs):
        inner = lambda c, i: lax.fori_loop(0, 7, lambda j, c: c + hnp.exp(hnp.where((i == 3) & (j == 5), 1.0, -9.0)), c)
        return lax.scan(lambda c, i: (inner(c, i), c), 0.0, xs, reverse=True)

    found = example("first_difference").first_difference(f, hnp.arange(10), otherwise=faulty(0.0))
    assert (found.op.name, found.iterations) == ("exp", (6, 5))


def test_a_recorded_run_is_compared_in_another_process(tmp_path):
    module, file = example("first_difference"), tmp_path / "run.npz"
    module.record(module.f, 0.5, otherwise=hx.jit).save(file)
    command = [sys.executable, str(FOLDER / "first_difference.py"), "compare", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    same, other = done.stdout.splitlines()
    line = module.f.__code__.co_firstlineno + 2
    assert same == "None" and re.match(rf"exp at first_difference.py:{line} in iteration \d+: ", other)


def by_numpy(f):
    def executed(*xs):
        with hx.disable_jit():
            return f(*xs)

    return executed


OPTIONS = {
    "compiled": hx.jit,
    "not optimised": lambda f: hx.jit(f, compiler_options={"xla_backend_optimization_level": 0}),
    "by NumPy": by_numpy,
    "in float64": hx.handle(autocast("float64", over=lambda op: op.name in ("add", "cos", "exp", "mul", "sin"))),
}


@pytest.mark.parametrize("otherwise", OPTIONS.values(), ids=OPTIONS)
def test_a_recorded_run_is_the_same_under_other_options(otherwise):
    module = example("first_difference")
    f = lambda x: hx.grad(lambda x: growing(lax.cond(x > 0, hnp.sin, hnp.cos, x))[0])(x)
    recorded = module.record(f, hnp.float32(0.5))
    assert module.first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise) is None
    less = module.first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise, tolerance=0.0)
    assert less is None or less.line


def test_a_run_in_another_dtype_is_compared_with_a_recorded_one():
    module, x = example("first_difference"), np.linspace(0.1, 1.0, 12).reshape(3, 4)
    f = lambda x: hnp.tanh(x @ x.T)
    recorded = module.record(f, x)
    assert module.first_difference(f, x.astype("float32"), expected=recorded) is None
    narrow = module.first_difference(f, x, expected=recorded, otherwise=hx.handle(autocast("bfloat16")))
    assert (narrow.op.name, narrow.line) == ("dot_general", f.__code__.co_firstlineno)


def test_a_recorded_run_of_another_program_or_of_other_shapes_is_refused():
    module = example("first_difference")
    recorded = module.record(growing, hnp.float32(0.5))
    with pytest.raises(hx.errors.BadArgument, match="recorded of another program"):
        module.first_difference(lambda x: growing(hnp.sin(x)), 0.5, expected=recorded)
    with pytest.raises(hx.errors.BadArgument, match="or of other shapes"):
        module.first_difference(hnp.sin, hnp.ones(3), expected=module.record(hnp.sin, hnp.ones(2)))


# Shapes with names: those of runs at sizes that are known.

def attention_scores(x, w):
    weights = nn.softmax(x @ w @ w.T @ x.T)
    return lax.fori_loop(0, 3, lambda i, y: hnp.tanh(weights @ y), x)


SHAPED = {
    "matrices": (lambda x, w: (x @ w, hnp.concatenate([x, 2 * x]), x.reshape(-1), x[1:]), ("n, m", "m, k")),
    "loops": (attention_scores, ("n, m", "m, k")),
    "scan": (lambda x, w: lax.scan(lambda c, row: (c + row, row @ w), x[0], x), ("n, m", "m, k")),
    "branches": (lambda x, w: lax.cond(x.sum() > 0, lambda: x @ w, lambda: 0.0 * (x @ w)), ("n, m", "m, k")),
    "jit": (hx.jit(attention_scores), ("n, m", "m, k")),
    "gradient": (hx.grad(lambda x, w: attention_scores(x, w).sum(), argnums=(0, 1)), ("n, m", "m, k")),
    "lanes": (hx.vmap(lambda x, w: hnp.outer(x, w @ w), in_axes=(0, None)), ("n, m", "k, k")),
    "while": (lambda x, w: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + abs(x @ w), x @ w), ("n, m", "m, k")),
}


def shapes_by_place(values, shape):
    """The shapes of floats by operation; those of indices are computed otherwise where sizes are names."""
    found = {}
    for v in values:
        if hnp.issubdtype(v.type.dtype, hnp.floating):
            found.setdefault((v.around, v.op), set()).add(shape(v))
    return found


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_with_names_are_those_of_runs(name):
    module = example("symbolic_shapes")
    f, shapes = SHAPED[name]
    values = module.symbolic_shapes(f, *shapes)
    assert values
    for sizes in ({"n": 2, "m": 3, "k": 4}, {"n": 5, "m": 1, "k": 2}):
        args = [hnp.ones([sizes[size] for size in shape.split(", ")]) for shape in shapes]
        concrete = module.interpreted(program := hx.make_program(f)(*args), program.in_avals)
        named = shapes_by_place(values, lambda v: v.at(**sizes))
        found = shapes_by_place(concrete, lambda v: v.type.shape)
        assert len(common := named.keys() & found.keys()) > len(found) // 2
        assert {place: named[place] for place in common} == {place: found[place] for place in common}


def test_the_largest_value_depends_on_the_sizes():
    module = example("symbolic_shapes")
    values = module.symbolic_shapes(lambda x: hnp.sum(x @ x.T), "time, width")
    assert str(module.largest(values, time=100, width=3).bytes) == "4*time*time"
    with pytest.raises(hx.errors.ShapeMismatch):
        module.symbolic_shapes(lambda x, y: x + y, "n", "m")
