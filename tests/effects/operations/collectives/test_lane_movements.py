"""Edges of movements between lanes: no axes, axes of size one, dimensions among the names."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax


def test_over_no_axes_there_is_one_lane():
    x = np.arange(6.0).reshape(2, 3)
    assert lax.all_gather(x, ()).shape == (1, 2, 3)
    assert lax.all_gather(x, (), axis=-1).shape == (2, 3, 1)
    assert lax.all_gather(x, (), tiled=True).shape == (2, 3)
    assert lax.ppermute(x, (), [(0, 0)]).tolist() == x.tolist()
    assert not lax.ppermute(x, (), []).any()
    assert lax.psum_scatter(x[:1], ()).tolist() == x[0].tolist()
    assert lax.all_to_all(x[:1], (), 0, 1).tolist() == x[:1].T.tolist()
    assert lax.pbroadcast(x, (), 0).tolist() == x.tolist()
    assert lax.axis_index(()) == 0
    assert lax.pgather(x, np.array([1, 0]), (0,)).tolist() == x[::-1].tolist()
    assert lax.pcumsum(x, ()).tolist() == x.tolist()


def test_an_axis_of_size_one_is_a_lane_like_any_other():
    assert not hx.vmap(lambda x: lax.ppermute(x, "i", []), axis_name="i")(np.ones(1)).any()
    assert hx.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(np.ones(1)) == 1


@pytest.mark.parametrize("names", [("i",), ("j", "i"), ("i", 0), (-1, "j"), ("j", 1, "i"), (0,), (1, 0)])
@pytest.mark.parametrize("mapped", [(), (0,), (0, 1)])
def test_pgather_counts_lanes_and_dimensions_as_one(names, mapped):
    """The index may differ from lane to lane; the adjoint adds up what is read twice."""
    rng = np.random.default_rng(0)
    x, sizes = rng.normal(size=(2, 3, 4, 5)), {"i": 2, "j": 3, 0: 4, 1: 5, -1: 5}
    where = {"i": 0, "j": 1, 0: 2, 1: 3, -1: 3}
    index = rng.integers(np.prod([sizes[n] for n in names]), size=(*[(2, 3)[k] for k in mapped], 3))
    order = [where[n] for n in names]

    def lane(i, j):
        own = x
        for k, at in sorted({0: i, 1: j}.items(), reverse=True):
            if k not in order:
                own = np.take(own, at, k)
        kept = [d for d in range(4) if d in order or d > 1]
        front = np.moveaxis(own, [kept.index(d) for d in order], range(len(order)))
        chosen = index[tuple((i, j)[k] for k in mapped)]
        return front.reshape(-1, *front.shape[len(order) :])[chosen]

    expected = np.array([[lane(i, j) for j in range(3)] for i in range(2)])

    def f(x, index):
        return lax.pgather(x, index, names)

    def nested(f):
        inner = hx.vmap(f, axis_name="j", in_axes=(0, 0 if 1 in mapped else None, 0))
        return hx.vmap(inner, axis_name="i", in_axes=(0, 0 if 0 in mapped else None, 0))

    u = rng.normal(size=expected.shape)
    found = nested(lambda x, index, u: f(x, index))(x, index, u)
    assert np.array_equal(found, expected)
    back = nested(lambda x, index, u: hx.vjp(lambda x: f(x, index), x)[1](u)[0])(x, index, u)
    assert np.vdot(found, u) == pytest.approx(np.vdot(x, back))


MOVES = {
    "gather": lambda x: lax.all_gather(x, "i"),
    "broadcast": lambda x: lax.pbroadcast(x, "i", 2),
    "ring": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (3, 0)]),
    "exchange": lambda x: lax.all_to_all(x, "i", 0, 0),
    "at": lambda x: lax.pgather(x, np.array([3, 1]), "i"),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", ["int4", "uint2", "float4_e2m1fn", "bool", "float16", "complex64", "key"])
def test_what_moves_between_devices_keeps_every_bit(name, dtype):
    if dtype == "key":
        x, bits = hx.random.split(hx.random.key(0), (4, 4, 3)), hx.random.key_data
    else:
        x = hx.numpy.asarray(np.random.default_rng(0).integers(0, 2, (4, 4, 3)) * (-0.0 if "f" in dtype else 1), dtype)
        bits = lambda y: np.asarray(y).view(np.uint8)
    mesh = hx.make_mesh((4,), ("i",))
    pieces = hx.shard_map(lambda x: MOVES[name](x[0])[None], mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"))
    assert np.array_equal(bits(pieces(x)), bits(hx.vmap(MOVES[name], axis_name="i")(x)))
