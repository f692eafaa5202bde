"""Layouts inside of programs: they change no value, and cross every transformation."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.experimental.layout import Layout, with_layout_constraint

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROWS, COLUMNS = Layout((0, 1)), Layout((1, 0))


def f(x):
    return with_layout_constraint(hnp.sin(x), COLUMNS) * 2


def test_the_value_is_that_without_it():
    assert np.allclose(hx.jit(f)(X), 2 * np.sin(X)) and np.allclose(f(X), 2 * np.sin(X))
    assert np.allclose(hx.jit(hx.grad(lambda x: f(x).sum()))(X), 2 * np.cos(X))
    made = hx.jit(lambda x: with_layout_constraint({"a": x.T, "b": x}, ROWS))(X)
    assert hx.tree.map(np.shape, made) == {"a": (3, 2), "b": (2, 3)}
    by_row = hx.NamedSharding(hx.make_mesh((2,), ("a",)), hx.P("a"))
    over_two = hx.jit(f, in_shardings=by_row, out_shardings=by_row)
    assert over_two(X).sharding == by_row and np.allclose(over_two(X), 2 * np.sin(X))
    keys = hx.random.split(hx.random.key(0), (2, 3))
    assert (hx.jit(lambda k: with_layout_constraint(k, ROWS))(keys) == keys).all()


def test_the_program_says_it():
    text = hx.jit(f).lower(X).as_text()
    assert "@LayoutConstraint" in text and text.count("dense<[0, 1]> : tensor<2xindex>") == 2
    backward = hx.make_program(hx.grad(lambda x: f(x).sum()))(X)
    assert [op.layout for op in backward.ops if op.name == "layout_constraint"] == [COLUMNS] * 2
    restored = hx.export.deserialize(hx.export.export(hx.jit(f))(X).serialize())
    assert np.allclose(restored.call(X), 2 * np.sin(X))


@pytest.mark.parametrize("axis", range(3))
def test_lanes_are_the_slowest_dimension(axis):
    xs = np.stack([X, X + 1, X + 2, X + 3], axis)
    mapped = hx.vmap(f, axis, axis)
    program = hx.make_program(mapped)(xs)
    (order,) = [op.layout.major_to_minor for op in program.ops if op.name == "layout_constraint"]
    assert order == (axis, *[d for d in (2, 1, 0) if d != axis])
    assert np.allclose(hx.jit(mapped)(xs), 2 * np.sin(xs))


def test_what_is_no_layout_of_the_array_is_refused():
    refused = r"with_layout_constraint: a (layout must name each dimension|Layout is needed)"
    for wrong in (Layout((0,)), "rows"):
        with pytest.raises(errors.BadArgument, match=refused):
            hx.jit(lambda x, wrong=wrong: with_layout_constraint(x, wrong))(X)
    with pytest.raises(errors.TreeMismatch, match="with_layout_constraint"):
        with_layout_constraint({"a": X}, {"b": ROWS})
