"""``ragged_all_to_all`` against its loop over senders and slices; and its derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.lanes import mapped
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import errors, lax
from handlax.testing.strategies import lane_groups


def by_loop(x, out, start, count, to, groups, each):
    """The definition: the messages of every group, one after the other."""
    y = np.array(out)
    for group in groups:
        for receiver, sender, r in itertools.product(range(len(group)), range(len(group)), range(each)):
            k, i = group[sender], receiver * each + r
            a, n, t = start[k, i], count[k, i], to[k, i]
            y[group[receiver], t : t + n] = x[k, a : a + n]
    return y


def tables(rng, lanes, size, each):
    start, to = rng.integers(0, 3, (2, lanes, size * each), dtype=np.int32)
    return start, rng.integers(0, 3, (lanes, size * each), dtype=np.int32), to


@settings(max_examples=6)
@given(st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 2), st.integers(0, 99), st.data())
def test_slices_are_where_the_loop_over_messages_puts_them(sizes, each, seed, data):
    rng, lanes = np.random.default_rng(seed), sizes[0] * sizes[1]
    groups = data.draw(st.none() | lane_groups(lanes, equal=True))
    size = lanes if groups is None else len(groups[0])
    x, out = rng.normal(size=(lanes, 5, 2)), rng.normal(size=(lanes, 6, 2))
    start, count, to = tables(rng, lanes, size, each)
    expected = by_loop(x, out, start, count, to, groups or [range(lanes)], each)

    def f(*operands):
        return lax.ragged_all_to_all(*operands, operands[3], axis_name=("i", "j"), axis_index_groups=groups)

    operands = [v.reshape(*sizes, *v.shape[1:]) for v in (x, out, start, count, to)]
    for order in ((0, 1), (1, 0)):
        found = np.asarray(mapped(f, "ij", sizes, order)(*operands))
        assert np.array_equal(found.reshape(expected.shape), expected)


def test_a_row_that_is_sent_twice_gets_the_sum_of_both_cotangents():
    rng = np.random.default_rng(0)
    start, count, to = tables(rng, 3, 3, 1)
    x, out, u = rng.normal(size=(3, 5)), rng.normal(size=(3, 6)), rng.normal(size=(3, 6))

    def lanes(x, out, u, *slices):
        f = lambda x, out: lax.ragged_all_to_all(x, out, *slices, slices[1], axis_name="i")
        return hx.vjp(f, x, out)[1](u)

    dx, dout = hx.vmap(lanes, axis_name="i")(x, out, u, start, count, to)
    y = by_loop(x, out, start, count, to, [range(3)], 1)
    zero = by_loop(0 * x, 0 * out, start, count, to, [range(3)], 1)
    assert np.vdot(y - zero, u) == pytest.approx(np.vdot(dx, x) + np.vdot(dout, out))


def test_rows_that_do_not_agree_are_refused():
    def f(x):
        i = np.zeros(3, np.int32)
        return lax.ragged_all_to_all(x, np.zeros((2, 4)), i, i, i, i, axis_name="i")

    with pytest.raises(errors.ShapeMismatch, match="rows of operand and output"):
        hx.vmap(f, axis_name="i")(np.zeros((3, 5)))


@pytest.mark.parametrize("grouped", [False, True])
def test_devices_exchange_what_lanes_do_and_the_loop_says(grouped):
    rng = np.random.default_rng(5)
    groups = [[2, 0], [1, 3]] if grouped else None
    size = 2 if grouped else 4
    x, out = rng.normal(size=(4, 5, 2)).astype("float32"), rng.normal(size=(4, 6, 2)).astype("float32")
    start, count, to = tables(rng, 4, size, 2)
    expected = by_loop(x, out, start, count, to, groups or [range(4)], 2)

    def f(x, out, *slices):
        return lax.ragged_all_to_all(x, out, *slices, slices[1], axis_name="i", axis_index_groups=groups)

    def loss(mapped):
        return lambda x, out: (mapped(f, axis_name="i")(x, out, start, count, to) ** 2).sum()

    mesh = hx.make_mesh((4,), ("i",))
    rows = lambda *xs: f(*[v[0] for v in xs])[None]
    over = lambda checked: hx.shard_map(
        rows, mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"), check_vma=checked
    )
    for run in (hx.pmap(f, axis_name="i"), hx.vmap(f, axis_name="i"), over(True), over(False)):
        assert np.array_equal(run(x, out, start, count, to), expected)
    by_lanes = hx.grad(loss(hx.vmap), (0, 1))(x, out)
    by_devices = hx.grad(loss(hx.pmap), (0, 1))(x, out)
    checked = hx.grad(lambda x, out: (over(True)(x, out, start, count, to) ** 2).sum(), (0, 1))(x, out)
    for found in (by_devices, checked):
        for y, z in zip(found, by_lanes):
            np.testing.assert_allclose(y, z, rtol=1e-5)
