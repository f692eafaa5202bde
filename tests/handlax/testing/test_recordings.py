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
from handlax.operations import Exp
from handlax.testing import first_difference, record

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
        assert np.allclose(np.asarray(found.found), 1.1 * np.asarray(found.expected))


def test_the_first_difference_is_found_behind_a_loop_of_unknown_length():
    def f(x, y):
        x = lax.while_loop(lambda x: x < y, lambda x: x + y, x)
        return hnp.exp(x)

    found = first_difference(f, 0.5, 2.0, otherwise=faulty(1.0))
    assert (found.op.name, found.line) == ("exp", f.__code__.co_firstlineno + 2)


def test_the_first_difference_is_found_in_nested_loops_and_backwards():
    def f(xs):
        inner = lambda c, i: lax.fori_loop(0, 7, lambda j, c: c + hnp.exp(hnp.where((i == 3) & (j == 5), 1.0, -9.0)), c)
        return lax.scan(lambda c, i: (inner(c, i), c), 0.0, xs, reverse=True)

    found = first_difference(f, hnp.arange(10), otherwise=faulty(0.0))
    assert (found.op.name, found.iterations) == ("exp", (6, 5))


ANOTHER = """
import sys
import handlax as hx
from handlax import lax, numpy as hnp
from handlax.testing import first_difference, load, record

def f(x):
    return lax.fori_loop(0, 100, lambda i, c: c + 2e-2 * hnp.exp(-c) * hnp.cos(c), x)

if sys.argv[1] == "record":
    record(f, 0.5, otherwise=hx.jit).save(sys.argv[2])
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
        env={**os.environ, **env}, cwd=ROOT,
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
    recorded = record(f, hnp.float32(0.5))
    assert first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise) is None
    less = first_difference(f, hnp.float32(0.5), expected=recorded, otherwise=otherwise, tolerance=0.0)
    assert less is None or less.line


def test_a_run_in_another_dtype_is_compared_with_a_recorded_one():
    x = np.linspace(0.1, 1.0, 12).reshape(3, 4)
    f = lambda x: hnp.tanh(x @ x.T)
    recorded = record(f, x)
    assert first_difference(f, x.astype("float32"), expected=recorded) is None
    narrow = first_difference(f, x, expected=recorded, otherwise=hx.handle(autocast("bfloat16")))
    assert (narrow.op.name, narrow.line) == ("dot_general", f.__code__.co_firstlineno)


def test_a_recorded_run_of_another_program_or_of_other_shapes_is_refused():
    recorded = record(growing, hnp.float32(0.5))
    with pytest.raises(hx.errors.BadArgument, match="recorded of another program"):
        first_difference(lambda x: growing(hnp.sin(x)), 0.5, expected=recorded)
    with pytest.raises(hx.errors.BadArgument, match="or of other shapes"):
        first_difference(hnp.sin, hnp.ones(3), expected=record(hnp.sin, hnp.ones(2)))
