"""The registry of containers."""

from dataclasses import dataclass
from typing import Any

import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.core.containers import is_container, mapped_by


class Box:
    pass


class Corner:
    pass


def register(data_type=Box, spec_type=Corner):
    hx.register_vmappable(data_type, spec_type, int, lambda cont, get_idx, x, spec: x, lambda cont, n, y, spec: y)


def test_a_type_is_registered_once_until_it_is_unregistered():
    register()
    with pytest.raises(hx.errors.BadArgument, match=r"Box is mapped by Corner already\.\n(.*\n)?  hint: hx.unreg"):
        register()
    hx.unregister_vmappable(Box)
    assert not is_container(Box())
    with pytest.raises(hx.errors.BadArgument, match="Box is not registered"):
        hx.unregister_vmappable(Box)
    for cls in (tuple, type(hx.numpy.ones(2)), "Box"):
        with pytest.raises(hx.errors.BadArgument, match="a type of its own, got"):
            register(cls)
    for cls in (tuple, dict, list, type(None), type(hx.numpy.ones(2)), "Corner"):
        with pytest.raises(hx.errors.BadArgument, match="a spec has a type of its own, got"):
            register(spec_type=cls)
    with pytest.raises(hx.errors.BadArgument, match="axis_size_type is int or a type with an __index__, got 3"):
        hx.register_vmappable(Box, Corner, 3, lambda *_: None, lambda *_: None)
    assert not is_container(Box())
    with pytest.raises(hx.errors.NotAFunction, match="to_elt"):
        hx.register_vmappable(Box, Corner, int, None, lambda *_: None)


def test_several_containers_may_share_a_spec():
    other = type("Other", (), {})
    register()
    register(other)
    try:
        assert [kind.data_type for kind in mapped_by(Corner)] == [Box, other]
        hx.unregister_vmappable(other)
        assert [kind.data_type for kind in mapped_by(Corner)] == [Box]
    finally:
        hx.unregister_vmappable(Box)


def test_threads_register_and_map_at_the_same_time():
    kinds = [type(f"Kind{i}", (), {}) for i in range(40)]

    def run(i):
        for kind in kinds[i::4]:
            register(kind, kind)
            hx.vmap(lambda x: x + 1, in_axes=(0,))(hx.numpy.arange(3))
            hx.unregister_vmappable(kind)

    together(4, run)
    assert not any([is_container(kind()) for kind in kinds])


@hx.tree_util.register_dataclass
@dataclass(frozen=True)
class Node:
    data: Any


def test_jitted_functions_see_the_registry():
    """As eager ones do: before a type is registered, while it is, and after."""
    def f(x):
        return hx.vmap(lambda e: e.data if isinstance(e, Node) else e)(x)

    ways = [f, hx.jit(f), hx.jit(hx.jit(f)), lambda x: hx.jvp(hx.jit(f), (x,), (x,))[1]]
    ways += [lambda x: lax.scan(lambda c, _: (c, f(x)), 0, length=1)[1][0], hx.checkpoint(f)]
    traced = []
    counted = hx.jit(lambda x: (traced.append(0), x)[1])
    x = Node(hnp.arange(3.0))
    for factor in (2, 3):
        assert all([(way(x) == x.data).all() for way in ways])
        hx.register_vmappable(Node, int, int, lambda cont, _, x, axis: factor * cont(x.data, axis), lambda *_: None)
        try:
            assert all([(way(x) == factor * x.data).all() for way in ways])
        finally:
            hx.unregister_vmappable(Node)
        counted(1.0)
    assert len(traced) == 1                  # the registry that it was traced for is in force again


RAGGED = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
HERE = hx.ragged_axis


def on_a_mesh(f, *args):
    return hx.shard_map(f, mesh=hx.make_mesh((1,), ("d",)), in_specs=hx.sharding.P(), out_specs=hx.sharding.P())(*args)


def merged(x):
    with hx.set_mesh(hx.make_mesh((1,), ("d",))):
        return hx.smap(lambda r: r.data, in_axes=0, out_axes=0, axis_name="d")(x)


def in_a_mesh(in_axes):
    inner = lambda v: hx.pmap(lambda r: r.data, in_axes=in_axes)(hx.Ragged(v, (3, 1, 4)))
    return lambda x: on_a_mesh(inner, x.data)


@pytest.mark.parametrize(("name", "run"), [
    ("scan", lambda x: lax.scan(lambda c, r: (c, r.data), 0, x)),
    ("scan", lambda x: hx.jit(lambda x: lax.scan(lambda c, r: (c, r["x"].data), 0, {"x": x}))(x)),
    ("map", lambda x: lax.map(lambda r: r.data * 2, x)),
    ("map", lambda x: lax.map(lambda r: r[1].data * 2, (x.data, x), batch_size=2)),
    ("associative_scan", lambda x: lax.associative_scan(lambda a, b: hx.tree.map(hnp.add, a, b), x)),
    ("vtile", lambda x: hx.vtile(lambda r: r.data, tile_size=2)(x)),
    ("vtile", lambda x: hx.vtile(lambda *, x: x.data, (), tile_size=2)(x=x)),
    ("pmap", lambda x: hx.pmap(lambda r: r.data)(hx.Ragged(hnp.ones(1), (1,)))),
    ("pmap", in_a_mesh(0)),
    ("smap", merged),
    ("xmap", lambda x: hx.xmap(lambda r: r.data, {0: "i"}, {0: "i"})(x)),
])
def test_what_cuts_arrays_refuses_containers(name, run):
    words = f"^{name}: an axis of arrays is cut, and a Ragged has lanes of its own(.|\n)*in_axes=hx.ragged_axis maps"
    with pytest.raises(hx.errors.BadArgument, match=words):
        run(RAGGED)


@pytest.mark.parametrize(("name", "run"), [
    ("vtile", lambda x: hx.vtile(lambda r: r, (HERE,), tile_size=2)(x)),
    ("vtile", lambda x: hx.vtile(lambda r: r, 0, HERE, tile_size=2)(x.data)),
    ("pmap", lambda x: hx.pmap(lambda r: r, in_axes=HERE)(x)),
    ("pmap", lambda x: hx.pmap(lambda r: r, out_axes=(HERE, 0))(x)),
    ("pmap", in_a_mesh(HERE)),
    ("smap", lambda x: hx.smap(lambda r: r, in_axes=HERE, out_axes=0, axis_name="d")(x)),
    ("xmap", lambda x: hx.xmap(lambda r: r, HERE, {0: "i"})(x)),
])
def test_what_maps_arrays_alone_refuses_specs(name, run):
    words = f"^{name}: axes are those of arrays, and ragged_axis is one of Ragged(.|\n)*hint: hx.vmap maps by it"
    with pytest.raises(hx.errors.BadArgument, match=words):
        run(RAGGED)


def test_containers_cross_whole_what_cuts_others():
    y = hnp.arange(2.0)
    total = RAGGED.data.sum()
    carry, _ = lax.scan(lambda c, v: (hx.tree.map(lambda d: d + v, c), None), RAGGED, y)
    assert carry.segment_lengths == (3, 1, 4) and (carry.data == RAGGED.data + 1).all()
    assert (lax.map(lambda v: RAGGED.data.sum() * v, y) == total * y).all()
    assert (hx.vtile(lambda v, r: v * r.data.sum(), (0, None))(y, RAGGED) == total * y).all()
    assert hx.pmap(lambda v, r: v + r.data.sum(), in_axes=(0, None))(y[:1], RAGGED) == total
    assert (hx.xmap(lambda v, r: v * r.data.sum(), ({0: "i"}, {}), {0: "i"})(y, RAGGED) == total * y).all()
    assert lax.fori_loop(0, 2, lambda i, r: r, RAGGED).segment_lengths == (3, 1, 4)
