"""How many times over kernels compute the operations of a program, as XLA's compiler for CPUs fuses them."""

import re

import pytest
from helpers.deep_models import MODELS

import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.analysis import fusion, repeats
from handlax.interpreters.analysis.fusion import duplication

pytestmark = pytest.mark.optimised

X, W = hnp.linspace(-1.0, 1.0, 32).reshape(4, 8), hnp.eye(8)


def fused(f, *args):
    program = hx.make_program(f)(*args)
    return duplication(program, 0, len(program.ops)) * len(program.ops)


def test_a_chain_is_one_kernel():
    assert fused(lambda x: hnp.tanh(hnp.sin(x) + x) * 2.0, X) == 4


def test_what_several_kernels_read_is_computed_in_each():
    """Both products read -2 x, which is computed in either kernel; neither is an operation that is fused."""
    assert fused(lambda x, w: ((-x) @ w, (-x).T @ x), X, W) == 3  # two negatives, one of them within a transpose


def test_an_expensive_value_that_is_read_twice_is_stored():
    assert fused(lambda x: (hnp.exp(x) + 1.0, hnp.exp(x) * 2.0), X) == 2 + 2


def test_an_expensive_value_that_is_a_result_and_is_read_is_stored():
    assert fused(lambda x: (lambda y: (y, y + 1.0))(hnp.exp(x)), X) == 2


def test_a_sum_is_stored_where_a_product_reads_it_too():
    assert fused(lambda x, w: (lambda y: y @ w + y)(x + x.mean() * x), X, W) < 8


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["plain", "jit"])
def test_called_functions_count_as_their_bodies(wrap):
    block = wrap(lambda x: x + hnp.tanh(x @ W - hnp.mean(x)) * hnp.exp(-x))

    def loss(x):
        for _ in range(12):
            x = block(x)
        return x.sum()

    program = hx.make_program(hx.grad(loss))(X)
    assert 2.0 < duplication(program, 0, len(program.ops)) < 4.0


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_part_of_a_program_has_its_own(size):
    program = hx.make_program(lambda x: hnp.sin(x) * x + hnp.cos(x) * hnp.exp(x))(X)
    assert 0.0 <= duplication(program, 0, size) <= size


def instructions(f, *args, **options):
    """The instructions in all kernels of the compiled function."""
    text = hx.jit(lambda *args: f(*args), compiler_options=options).lower(*args).compile().as_text()
    kernels = [part for part in re.split(r"\n(?=%|ENTRY)", text) if "fused" in part.partition("(")[0]]
    return sum([len(re.findall(r"\n +\S+ = \S+ (?!parameter|constant)", part)) for part in kernels])


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_programs_of_high_duplication_are_those_that_boundaries_make_smaller(name, monkeypatch):
    loss, ps, x = MODELS[name]
    gradient = hx.value_and_grad(loss)
    program = hx.make_program(gradient)(ps, x)
    monkeypatch.setattr(fusion, "MOST", 1 << 20)
    predicted = duplication(program, 0, len(program.ops))
    monkeypatch.setattr(repeats, "LEAST_DUPLICATION", 0.0)
    hx.clear_caches()
    ratio = instructions(gradient, ps, x, split_repeats=False) / instructions(gradient, ps, x)
    assert (ratio > 1.3) == (predicted > 2.0), (ratio, predicted)
