"""``ragged_all_to_all`` against its loop over senders and slices; and its derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.lanes import mapped, partition

import handlax as hx
from handlax import errors, lax


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


@pytest.mark.parametrize("seed", range(6))
def test_slices_are_where_the_loop_over_messages_puts_them(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(1, 4)), int(rng.integers(1, 4))]
    lanes, each = sizes[0] * sizes[1], int(rng.integers(1, 3))
    groups = partition(rng, lanes, True) if seed % 2 else None
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
