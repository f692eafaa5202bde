"""What collectives send along an axis, beside JAX's experimental roofline, whose model of a ring is ours."""

import importlib

import pytest

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

COLLECTIVES = {
    "psum": lambda lax, x, n: lax.psum(x, "b"),
    "all_gather": lambda lax, x, n: lax.all_gather(x, "b"),
    "psum_scatter": lambda lax, x, n: lax.psum_scatter(x, "b", tiled=True),
    "ppermute": lambda lax, x, n: lax.ppermute(x, "b", [(i, (i + 1) % n) for i in range(n)]),
    "two": lambda lax, x, n: lax.psum(lax.psum(x, "b"), "a"),
}


def mapped(root, f, n):
    lib = importlib.import_module(root)
    lax, sharding = importlib.import_module(f"{root}.lax"), importlib.import_module(f"{root}.sharding")
    mesh = sharding.AbstractMesh((2, n), ("a", "b"), axis_types=(sharding.AxisType.Auto,) * 2)
    spec = sharding.PartitionSpec(("a", "b"))
    return lib, lambda x: f(lax, x, n), {"mesh": mesh, "in_specs": spec, "out_specs": spec}


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_bytes_along_an_axis(name, n):
    hx, ours, options = mapped("handlax", COLLECTIVES[name], n)
    x = hx.ShapeDtypeStruct((2 * n * 64,), "float32")
    sent = hx.costs(hx.shard_map(ours, **options))(x).links
    jax, theirs, options = mapped("jax", COLLECTIVES[name], n)
    roofline = importlib.import_module("jax.experimental.roofline").roofline
    _, found = roofline(theirs, **options)(jax.ShapeDtypeStruct((2 * n * 64,), "float32"))
    assert {axis: link.bytes for axis, link in sent.items()} == found.ici_bytes
