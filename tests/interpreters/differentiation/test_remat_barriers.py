"""Delaying: the second computation waits behind barriers for the cotangent that needs it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name
from handlax.effects.control.checkpoint import Checkpoint
from handlax.interpreters.differentiation.remat_barriers import delayed
from handlax.testing.generator.unrolled import evaluated

pytestmark = pytest.mark.optimised

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 64)).astype("float32")
W = (RNG.normal(size=(64, 64)) / 8).astype("float32")


def chain(x, w):
    for i in range(16):
        x = hnp.tanh(hnp.sin(x @ w) * x)
        if i % 4 == 3:
            x = checkpoint_name(x, "quarter")
    return hnp.sum(x)


def adjoint(f, *args):
    program = hx.make_program(hx.grad(f))(*args)
    (op,) = [op for op in program.ops if isinstance(op, Checkpoint) and op.differentiated]
    return op.bodies[0]


def test_it_changes_no_value():
    def linear(x, ct):
        a = hnp.sin(x)
        b = hnp.cos(a)
        return ct * b * a + ct * x

    program = hx.make_program(linear)(X, W)
    made = delayed(program, 1)
    assert "optimization_barrier" in str(made)
    np.testing.assert_array_equal(made(X, W)[0], program(X, W)[0])


def test_each_kept_value_waits_for_its_own_cotangent():
    keep = hx.checkpoint_policies.save_only_these_names("quarter")
    names = [op.name for op in adjoint(hx.checkpoint(chain, policy=keep), X, W).ops]
    barriers = [i for i, name in enumerate(names) if name == "optimization_barrier"]
    assert len(barriers) == 4
    assert all(names[a:b].count("dot_general") >= 4 for a, b in itertools.pairwise(barriers))


def quarters(x, w):
    def quarter(x, w):
        for _ in range(4):
            x = hnp.tanh(hnp.sin(x @ w) * x)
        return x

    for _ in range(4):
        x = hx.checkpoint(quarter)(x, w)
    return hnp.sum(x)


def test_a_kept_name_saves_as_much_memory_as_a_block_of_its_own():
    keep = hx.checkpoint_policies.save_only_these_names("quarter")
    temporary = lambda f: hx.jit(hx.grad(f, (0, 1))).lower(X, W).compile().memory_analysis().temp_size_in_bytes
    assert temporary(hx.checkpoint(chain, policy=keep)) <= temporary(quarters)


def test_an_equation_that_nothing_needs_goes():
    def linear(x, ct):
        hnp.exp(x)
        return ct * hnp.sin(x)

    made = delayed(hx.make_program(linear)(X, W), 1)
    assert "exp" not in {op.name for op in made.ops}


def test_without_anything_to_repeat_there_is_no_barrier():
    program = hx.make_program(lambda x, ct: ct * x)(X, W)
    assert delayed(program, 1) == program


def test_the_adjoint_of_a_delayed_adjoint_is_right():
    f = lambda x: hnp.sum(hnp.sin(hnp.sin(x)))
    twice = lambda f: hx.grad(lambda x: hnp.sum(hx.grad(f)(x) ** 2))
    with evaluated():
        np.testing.assert_array_equal(twice(hx.checkpoint(f))(X), twice(f)(X))


def test_in_a_lane_cotangents_may_have_different_lengths():
    def lane(x):
        f = hx.checkpoint(lambda x: (hnp.cos(hnp.sin(x)), hnp.sin(x).prod()))
        loss = lambda x: (lambda y, z: (y * y).sum() + z * z)(*f(x))
        return hx.grad(loss)(x)

    lanes = [np.arange(3.0), np.array([0.5]), np.array([2.0, -1.0])]
    x = hx.Ragged.from_list(lanes)
    y = hx.vmap(lane, hx.ragged_axis, hx.ragged_axis)(x).data[:6]
    np.testing.assert_allclose(y, np.concatenate([lane(row) for row in lanes]), rtol=1e-6)
