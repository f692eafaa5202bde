"""Parts of the ragged axis, whose lengths derive from those of the lanes: each equals the loop over lanes."""

import pytest
from helpers.ragged_lanes import R, RaggedCase, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


def chunks(x):
    return x[: x.shape[0] // 2 * 2].reshape(-1, 2, 3).sum(1)


def halves(x):
    return hnp.concatenate([x[x.shape[0] // 2 :], x[: x.shape[0] // 2]]) * x


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "x[1:], x[:-1]": (lambda x: x[1:] * x[:-1], "rows", R),
    "both ends": (lambda x: (x[:2], x[1:3, 1:], x[-2:], x[:-1][-1:]), "rows", (R, R, R, R)),
    "steps": (lambda x: (x[::2], x[1::3], x[::-2], x[-2:0:-1]), "rows", (R, R, R, R)),
    "second difference": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], "rows", R),
    "diff, trapezoid": (lambda x: (hnp.diff(x, axis=0), hnp.trapezoid(x, axis=0)), "rows", (R, 0)),
    "bounds of the length": (halves, "rows", R),
    "chunks": (chunks, "rows", R),
    "flat": (lambda x: hnp.diff(x, axis=0).reshape(-1)[::2], "rows", R),
    "places": (lambda x: x[1:] * hnp.arange(x.shape[0] - 1)[:, None], "rows", R),
    "orders and prefixes": (lambda x: hnp.cumsum(x[1:], 0) * hnp.sort(x[:-1], 0), "rows", R),
    "a loop along it": (
        lambda x: lax.scan(lambda c, a: (c + a[0] * a[1], c), hnp.zeros(3), (x[1:], x[:-1])), "rows", (0, R)),
    "split at indices": (lambda x: hnp.split(x, [1, 3]), "rows", [R, R, R]),
    "pieces": (lambda x: hnp.concatenate(hnp.array_split(x, 3)[::-1]) * x, "rows", R),
    "interior padding": (lambda x: lax.pad(x, 2.0, ((1, 2, 1), (0, -1, 0))), "rows", R),
    "roll": (lambda x, s: hnp.roll(hnp.roll(x, 1, 0), (3 * s).astype(int), 0), "rows number", R),
    "of two ragged axes": (lambda x: ((x @ x.T)[1:, :-1] * 2).sum(1), "rows", R),
    "reversed, of two": (
        lambda x: (hnp.flip(x @ x.T)[:, ::2] * hnp.arange((x.shape[0] + 1) // 2)).sum(1), "rows", R),
    "padded, of two": (lambda x: lax.pad(x @ x.T, 2.0, ((0, 0, 0), (1, 0, 1))).sum(1), "rows", R),
    "products of parts": (lambda x: (x @ x[1:].T) @ x[:-1], "rows", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)


@pytest.mark.each_choice
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("f", "out"), [
    (lambda x: lax.slice(x, (1, 0), (3, 3)), 0),
    (lambda x: lax.slice_in_dim(x, 1, None), R),
    (lambda x: hnp.gradient(x, axis=0), R),
    (lambda x: lax.pad(x, 2.0, ((-2, 1, 0), (0, 0, 0))), R),
])
def test_parts_of_lanes_that_have_them(f, out, static):
    case = RaggedCase(f, "rows", out, [3, 4, 3], static)
    case.check(*hx.jit(case.computed)(case.args, case.data))


def test_a_vmap_around_parts():
    x = hnp.arange(24.0).reshape(2, 4, 3)
    f = lambda rows: hx.vmap(lambda y: y[1:] * y[:-1], R, R)(hx.Ragged(rows, (3, 1))).data
    both = hx.vmap(f)(x)
    for i in range(2):
        assert hnp.allclose(both[i], f(x[i]))
