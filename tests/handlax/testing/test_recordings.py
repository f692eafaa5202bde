"""Runs that are recorded and compared: the first difference is where NumPy's loop says that a fault strikes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.library import autocast
from handlax.operations import Add, Exp
from handlax.testing import first_difference, load, record_run

ROOT = Path(__file__).resolve().parents[3]


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
    found = first_difference(f, hnp.float32(0.5), otherwise=faulty(limit))
    assert (found is None) == (expected is None)
    if found is not None:
        line = growing.__code__.co_firstlineno + 1
        assert (found.op.name, found.iterations, found.line) == ("exp", (expected,), line)
        assert np.allclose(np.asarray(found.actual), 1.1 * np.asarray(found.expected))


def test_the_first_difference_is_found_behind_a_loop_of_unknown_length():
    def f(x, y):
        x = lax.while_loop(lambda x: x < y, lambda x: x + y, x)
        return hnp.exp(x)

    found = first_difference(f, 0.5, 2.0, otherwise=faulty(1.0))
    assert (found.op.name, found.line) == ("exp", f.__code__.co_firstlineno + 2)


@pytest.mark.parametrize("limit", [4.0, 30.0])
@pytest.mark.parametrize("around", [lambda f: f, hx.jit, lambda f: hx.vmap(f, in_axes=(0, None))])
def test_the_first_difference_is_found_in_a_loop_of_unknown_length(limit, around):
    def f(x, end):
        return lax.while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1.0, hnp.sign(hnp.exp(c[0]))), (x, x))[0]

    x = np.float32([0.0, 1.0]) if around(f) is not f and around is not hx.jit else np.float32(0.0)
    found = first_difference(around(f), x, 40.0, otherwise=faulty(limit - 0.5))
    assert (found.op.name, found.line) == ("exp", f.__code__.co_firstlineno + 1)
    assert found.iterations == (int(limit) - x.size + 1,)


def test_a_test_of_a_loop_that_ends_at_another_iteration_differs():
    def f(x):
        return lax.while_loop(lambda c: hnp.exp(c) < 50.0, lambda c: c + 1.0, x)

    for limit in (0.5, 2.5):
        found = first_difference(f, 0.0, otherwise=faulty(limit))
        assert (found.op.name, found.iterations) == ("exp", (int(limit + 0.5),))
    slower = hx.handle(hx.handler({Exp: lambda op, x: 1e-12 * hx.perform(op, x)}))
    assert first_difference(f, 0.0, otherwise=slower).iterations == (0,)


def test_runs_of_loops_of_other_lengths_are_compared_as_far_as_both_go(tmp_path):
    def f(x, end):
        inner = lambda c: lax.while_loop(lambda d: d < c, lambda d: d + hnp.exp(d) / hnp.exp(d), 0.0)
        return lax.while_loop(lambda c: c < end, lambda c: c + hnp.sign(inner(c)), x)

    record_run(f, 1.0, 20.0).save(tmp_path / "run.npz")
    recorded = load(tmp_path / "run.npz")
    assert first_difference(f, 1.0, 20.0, expected=recorded, otherwise=hx.jit) is None
    other = first_difference(f, 1.0, 5.0, expected=recorded)
    assert (other.op.name, other.iterations) == ("lt", (4,))


def test_the_first_difference_is_found_in_nested_loops_and_backwards():
    def f(xs):
        inner = lambda c, i: lax.fori_loop(0, 7, lambda j, c: c + hnp.exp(hnp.where((i == 3) & (j == 5), 1.0, -9.0)), c)
        return lax.scan(lambda c, i: (inner(c, i), c), 0.0, xs, reverse=True)

    found = first_difference(f, hnp.arange(10), otherwise=faulty(0.0))
    assert (found.op.name, found.iterations) == ("exp", (6, 5))


def test_a_difference_that_later_equations_hide_is_found():
    hidden = lambda x: hnp.sign(hnp.exp(x))
    found = first_difference(hidden, 2.0, otherwise=faulty(1.0))
    assert (found.op.name, found.iterations) == ("exp", ())


def test_a_difference_that_a_call_hides_is_found():
    hidden = hx.jit(lambda x: hnp.sign(hx.checkpoint(hnp.exp)(x)))
    assert first_difference(hidden, 2.0, otherwise=faulty(1.0)).op.name == "exp"


def test_a_difference_in_the_third_iteration_is_found_though_the_loop_hides_it():
    step = lambda c, i: (c + 1.0, hnp.sign(hnp.exp(hnp.where(i == 2, 2.0, 0.0))))
    found = first_difference(lambda xs: lax.scan(step, 0.0, xs), hnp.arange(5), otherwise=faulty(1.0))
    assert (found.op.name, found.iterations) == ("exp", (2,))
    assert np.isclose(found.expected[0], np.exp(2.0)) and np.isclose(found.actual[0], 1.1 * np.exp(2.0))


def test_a_difference_in_an_iteration_of_small_values_is_found_before_large_ones():
    step = lambda c, i: (100.0 * c * hnp.exp(hnp.where(i >= 2, 2.0, 0.0)), c)
    found = first_difference(lambda xs: lax.scan(step, 1e-9, xs), hnp.arange(9.0), otherwise=faulty(1.0))
    assert (found.op.name, found.iterations) == ("exp", (2,))
    small = lambda c, i: (100.0 * c, hnp.log(hnp.exp(hnp.where(i == 2, 1e-3, 0.0))) * c)
    found = first_difference(lambda xs: lax.scan(small, 1e-9, xs), hnp.arange(9.0), otherwise=faulty(1e-4))
    assert (found.op.name, found.iterations) == ("exp", (2,))


def test_a_difference_in_a_nested_branch_is_found_though_its_result_is_not_used():
    def f(x, n):
        inner = lambda x: lax.switch(n, [hnp.cos, lambda x: hnp.sign(hnp.exp(x)), hnp.sin], x)
        return lax.cond(x > 0, lambda x: 2.0 * inner(x), lambda x: x, x)

    found = first_difference(f, 2.0, 1, otherwise=faulty(1.0))
    assert (found.op.name, found.iterations) == ("exp", ())
    assert first_difference(f, 2.0, 2, otherwise=faulty(1.0)) is None
    assert first_difference(f, -2.0, 1, otherwise=faulty(1.0)) is None


def test_the_difference_that_is_executed_first_is_found_among_loops_in_loops():
    def f(x):
        hidden = lambda i, j: hnp.sign(hnp.exp(hnp.where(10 * i + j > 21, 2.0, 0.0)))
        inner = lambda i: lax.fori_loop(0, 4, lambda j, c: c + hidden(i, j), x)
        return lax.fori_loop(0, 3, lambda i, c: inner(i) + hnp.exp(hnp.where(i > 1, 2.0, c * 0.0)), x)

    found = first_difference(f, 0.0, otherwise=faulty(1.0))
    assert (found.op.name, found.iterations) == ("exp", (2, 2))


def test_a_loop_of_no_iterations_has_no_difference():
    f = lambda x: hnp.exp(lax.scan(lambda c, r: (hnp.exp(c), r), x, hnp.zeros((0, 2)))[0])
    assert first_difference(f, 0.0, otherwise=hx.jit) is None
    assert first_difference(f, 2.0, otherwise=faulty(1.0)).iterations == ()


@hx.effect(vmap="per_lane", diff="stop")
class Count:
    def result_type(op):
        return hx.ArrayType((), np.dtype("int32"))


def test_an_effect_in_a_branch_is_performed_once_in_a_recorded_run():
    counter = hx.handle(hx.handler({Count: lambda n, op: (n + 1, n)}), hnp.int32(0))

    def f(x):
        first = lax.cond(x > 0, lambda: hx.perform(Count()), lambda: hnp.int32(7))
        return first, hx.perform(Count())

    seen = []
    record_run(f, 1.0, otherwise=lambda g: lambda *xs: seen.append(counter(g)(*xs)) or seen[-1][1])
    assert seen[0][0] == 2


def test_what_lanes_perform_is_recorded():
    counter = hx.handler({Count: lambda n, op: (n + 1, n)})
    f = lambda xs: hx.vmap(lambda x: x * hnp.float32(hx.perform(Count()) + 5))(xs)
    recorded = record_run(f, hnp.ones(3), otherwise=lambda g: lambda *xs: hx.handle(counter, hnp.int32(0))(g)(*xs)[1])
    assert [5, 6, 7] in [leaf.tolist() for leaf in recorded.leaves if leaf.dtype == "int32"]
    assert recorded.leaves[-1].tolist() == [5.0, 6.0, 7.0]


# What is recorded is what the run had, bit for bit.

X64 = np.array(0.1, "float64")
BITS = {
    "a number": (lambda x: hnp.sin(x), 0.1),
    "a number of NumPy's": (lambda x: hnp.sin(x), np.float64(0.1)),
    "a number beside an array": (lambda x: hnp.asarray(X64) * x, np.float32(0.1)),
    "an integer": (lambda x: hnp.left_shift(x, 3), 5),
    "float64": (hnp.sin, X64),
    "float64 within": (lambda x: hnp.float64(x) * X64, np.float32(0.1)),
    "bfloat16": (hnp.sin, hnp.asarray(0.1, "bfloat16")),
    "int4": (lambda x: x + x, hnp.asarray([1, -3], "int4")),
    "complex": (hnp.exp, np.array([1j, 2.0])),
}


@pytest.mark.parametrize("otherwise", [lambda f: f, hx.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("x64", [None, True], ids=["", "x64"])
@pytest.mark.parametrize("case", BITS)
def test_a_recorded_run_has_the_bits_of_the_run(case, x64, otherwise, tmp_path):
    f, x = BITS[case]
    with hx.configure(enable_x64=x64):
        recorded, y = record_run(f, x, otherwise=otherwise), otherwise(f)(x)
    recorded.save(tmp_path / "run.npz")
    for leaf in (recorded.leaves[-1], load(tmp_path / "run.npz").leaves[-1]):
        assert (leaf.dtype, leaf.tobytes()) == (np.asarray(y).dtype, np.asarray(y).tobytes())


def test_random_keys_in_a_run_are_recorded(tmp_path):
    def f(seed):
        key = hx.random.key(seed)
        keys = lax.cond(seed > 2, lambda: hx.random.split(key), lambda: hx.random.split(hx.random.fold_in(key, 1)))
        return hx.random.normal(keys[0])

    recorded = record_run(f, 3)
    recorded.save(tmp_path / "run.npz")
    assert recorded.leaves[-1] == f(3)
    assert first_difference(f, 3, expected=load(tmp_path / "run.npz"), otherwise=hx.jit) is None


def test_narrow_floats_are_compared_as_what_they_are():
    f = lambda x: hnp.sin(hnp.exp(x) * 3.0)
    x = hnp.linspace(-1.0, 1.0, 50).astype("bfloat16")
    assert first_difference(f, x, otherwise=hx.jit) is None
    assert first_difference(f, x, otherwise=faulty(0.5)).op.name == "exp"


ANOTHER = """
import sys
import handlax as hx
from handlax import lax, numpy as hnp
from handlax.testing import first_difference, load, record_run

def f(x):
    return lax.fori_loop(0, 100, lambda i, c: c + 2e-2 * hnp.exp(-c) * hnp.cos(c), x)

if sys.argv[1] == "record":
    record_run(f, 0.5, otherwise=hx.jit).save(sys.argv[2])
else:
    worse = hx.handler({hx.operations.Exp: lambda op, x: hx.perform(op, x) * hnp.where(x < -0.6, 1.01, 1.0)})
    for otherwise in (hx.jit, hx.handle(worse)):
        print(first_difference(f, 0.5, expected=load(sys.argv[2]), otherwise=otherwise))
"""


def test_a_recorded_run_is_compared_in_another_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ANOTHER)
    run = lambda word, **env: subprocess.run(
        [sys.executable, program, word, tmp_path / "run.npz"], capture_output=True, text=True, check=True,
        env={**os.environ, **env}, cwd=ROOT, timeout=300,
    ).stdout.splitlines()
    run("record")
    same, other = run("compare", XLA_FLAGS="--xla_backend_optimization_level=0")
    assert same == "None" and re.match(r"exp at program.py:8 in iteration \d+: ", other)


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
    f = lambda x: hx.grad(lambda x: growing(lax.cond(x > 0, hnp.sin, hnp.cos, x))[0])(x)
    recorded = record_run(f, hnp.float32(0.5))
    assert first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise) is None
    less = first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise, tolerance=0.0)
    assert less is None or less.line


def test_a_run_in_another_dtype_is_compared_with_a_recorded_one():
    x = np.linspace(0.1, 1.0, 12).reshape(3, 4)
    f = lambda x: hnp.tanh(x @ x.T)
    recorded = record_run(f, x)
    assert first_difference(f, x.astype("float32"), expected=recorded) is None
    narrow = first_difference(f, x, expected=recorded, otherwise=hx.handle(autocast("bfloat16")))
    assert (narrow.op.name, narrow.line) == ("dot_general", f.__code__.co_firstlineno)


def test_a_recorded_run_of_another_program_or_of_other_shapes_is_refused():
    recorded = record_run(growing, hnp.float32(0.5))
    with pytest.raises(hx.errors.BadArgument, match="another program: its operation 0 is broadcast_in_dim, not sin"):
        first_difference(lambda x: growing(hnp.sin(x)), 0.5, expected=recorded)
    with pytest.raises(hx.errors.BadArgument, match="of other shapes"):
        first_difference(hnp.sin, hnp.ones(3), expected=record_run(hnp.sin, hnp.ones(2)))


def test_integers_that_are_one_float64_differ():
    many = hnp.asarray(2**60, "int64")
    found = first_difference(lambda x: x + 1, many, otherwise=hx.handle(hx.handler({Add: lambda op, x, y: x})))
    assert found.op.name == "add" and int(found.expected[0]) == int(found.actual[0]) + 1
