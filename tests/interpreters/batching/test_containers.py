"""The registry of containers."""

import threading

import pytest

import handlax as hx
from handlax.interpreters.batching.containers import is_container, mapped_by


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
    failures = []

    def run(mine):
        try:
            for kind in mine:
                register(kind, kind)
                hx.vmap(lambda x: x + 1, in_axes=(0,))(hx.numpy.arange(3))
                hx.unregister_vmappable(kind)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(kinds[i::4],)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures and not any([is_container(kind()) for kind in kinds])
