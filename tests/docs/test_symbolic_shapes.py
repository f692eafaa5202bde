"""Shapes with names, of examples/interpreters/symbolic_shapes.py, against runs at known sizes."""

from __future__ import annotations

import pytest
from helpers.interpreter_examples import example, folder

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp

__all__ = ["folder"]    # a fixture, which pytest finds here


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
