"""The step of examples/parallel_transformer.py: what devices give, and what grows with their number."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import handlax as hx

FILE = Path(__file__).resolve().parents[2] / "examples" / "parallel_transformer.py"
SPEC = importlib.util.spec_from_file_location("parallel_transformer", FILE)
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

SMALL = example.Sizes(width=8, head=2, hidden=16, length=4, layers=4)
MESHES = [(2, 2, 2), (8, 8, 8), (64, 8, 8), (4, 16, 64)]


@pytest.mark.sweep  # the example itself compares them, over another mesh
def test_loss_and_gradients_over_devices_are_those_of_one():
    """The step subtracts a multiple of the gradient, which is so compared."""
    w, tokens = example.initial(SMALL, seed=1)
    expected = hx.jit(example.plain_step)(w, tokens)
    found = hx.jit(example.step_over(hx.make_mesh((1, 2, 4), example.AXES)))(w, tokens)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for name in w:
        gradients = [(w[name] - new[1][name]) / 0.1 for new in (found, expected)]
        np.testing.assert_allclose(*gradients, rtol=1e-2, atol=2e-6, err_msg=name)
        assert np.abs(gradients[1]).max() > 1e-3


def equations(program):
    return sum(1 + sum(map(equations, op.bodies)) if op.bodied else 1 for op in program.ops)


def without_numbers(text):
    """Constants that are equal by chance are one, so that there may be fewer."""
    return re.sub(r"\d+", "0", "\n".join([line for line in text.splitlines() if "stablehlo.constant" not in line]))


def test_the_program_does_not_grow_with_the_mesh():
    """But for the pairs of the pipeline: forward and backward one table each."""
    counts, texts = set(), set()
    for sizes in MESHES:
        step, args = example.planned(*sizes)
        tables, text = hx.jit(step).lower(*args).as_text().split("module @")
        counts.add((equations(hx.make_program(step)(*args)), len(tables.splitlines())))
        texts.add(without_numbers(text))
    assert len(texts) == 1 and {tables for _, tables in counts} == {2} and len(counts) == 1


def test_what_is_sent_along_an_axis_depends_on_its_own_size():
    sent = {sizes: hx.costs(example.planned(*sizes)[0])(*example.planned(*sizes)[1]).links for sizes in MESHES}
    few, some, many = [sent[sizes] for sizes in MESHES[:3]]
    assert some["model"] == many["model"] and some["stage"] == many["stage"]
    # the loss and each gradient, whatever the number of microbatches
    sums = 1 + len(example.Sizes().weights)
    assert [links["data"].number for links in (few, some, many)] == [sums] * 3
    assert some["data"].bytes / many["data"].bytes == pytest.approx((7 / 8) / (63 / 64), rel=1e-6)
