"""``prefetch``: what an iterator gives, in its order, on devices; a thread that ends with what it is for."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from helpers.many_processes import in_processes
from helpers.new_process import in_new_process

import handlax as hx
from handlax import NamedSharding, P
from handlax import numpy as hnp

MESH = hx.make_mesh((4,), ("a",))
CUT = NamedSharding(MESH, P("a"))


def rows():
    return ({"x": np.arange(8.0) + i, "n": i} for i in range(5))


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("handlax prefetch")]


def soon(holds):
    """Whether this becomes true within a minute."""
    until = time.monotonic() + 60
    while not holds() and time.monotonic() < until:
        time.sleep(0.001)
    return holds()


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("sharding", [
    None, hx.devices()[1], hx.memory.Space.Host, {"x": CUT, "n": NamedSharding(MESH, P())},
], ids=str)
def test_the_elements_are_those_of_the_iterator_in_its_order(sharding, size):
    found, expected = [*hx.prefetch(rows(), sharding, size)], [hx.device_put(row, sharding) for row in rows()]
    for row, other in zip(found, expected, strict=True):
        for name in row:
            assert row[name].type == other[name].type
            assert row[name].tolist() == other[name].tolist() and row[name].sharding == other[name].sharding
            assert row[name].dtype == other[name].dtype and row[name].committed == other[name].committed


def test_what_the_iterator_raises_comes_after_what_it_gave():
    asked = []

    def failing():
        for i in range(3):
            asked.append(i)
            yield np.float32(i)
        raise ZeroDivisionError("the third")

    found, trees = [], hx.prefetch(failing(), size=5)
    with pytest.raises(ZeroDivisionError, match="the third"):
        found.extend(x.item() for x in trees)
    assert found == asked == [0, 1, 2] and [*trees] == []


def test_an_iterator_is_not_asked_again_after_it_raised():
    class Failing:
        asked = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.asked += 1
            raise ZeroDivisionError

    failing = Failing()
    with pytest.raises(ZeroDivisionError):
        next(hx.prefetch(failing, size=4))
    assert soon(lambda: not threads()) and failing.asked == 1


@pytest.mark.parametrize("size", [1, 3])
def test_so_many_are_made_ahead_and_one_more_is_alive(size):
    made = []

    def counted():
        for i in range(9):
            made.append(i)
            yield np.full(1237, i)

    def alive():
        return len([x for x in hx.live_arrays() if x.shape == (1237,)])

    trees = hx.prefetch(counted(), size=size)
    for used in range(9):
        x = next(trees)
        ahead = min(size, 8 - used)
        assert soon(lambda: (len(made), alive()) == (used + 1 + ahead, 1 + ahead)), (made, alive())
        assert x[0].item() == used


ENDINGS = {
    "closed": lambda trees: trees[0].close(),
    "forgotten": lambda trees: trees.clear() or gc.collect(),
    "exhausted": lambda trees: sum(1 for _ in trees[0]),
}


@pytest.mark.parametrize("begun", [0, 1])
@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_its_thread_ends_and_lets_go_of_the_iterator(end, begun):
    source = rows()
    trees, gone = [hx.prefetch(source)], weakref.ref(source)
    del source
    assert threads()
    for _ in range(begun):
        next(trees[0])
    end(trees)
    assert soon(lambda: not threads()) and soon(lambda: gone() is None or end is ENDINGS["closed"])


def test_python_ends_in_the_midst_of_an_infinite_iterator():
    code = """
import itertools, handlax as hx, numpy as np
trees = hx.prefetch(np.full(3, i) for i in itertools.count())
print([next(trees)[0].item() for _ in range(3)])
"""
    assert in_new_process(code) == "[0, 1, 2]"


def test_arrays_do_not_see_later_changes_of_the_iterators_memory():
    buffer = np.zeros(64, np.float32)

    def filled():
        for i in range(4):
            buffer[:] = i
            yield buffer

    for sharding in (None, CUT):
        assert [x[0].item() for x in hx.prefetch(filled(), sharding, 3)] == [0, 1, 2, 3]


def test_settings_in_force_hold_in_the_thread_and_handlers_do_not():
    louder = hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)})
    sines = lambda: [*hx.prefetch(hnp.sin(hnp.ones(8)) * i for i in range(2))]
    expected = sines()[1]
    assert hx.handle(louder)(sines)()[1].tolist() == expected.tolist()
    with hx.configure(default_float="float64"), hx.set_mesh(MESH):
        assert sines()[1].dtype == "float64" != expected.dtype
        assert next(hx.prefetch([np.ones(8)], P("a"))).sharding == CUT


def test_mistakes_say_what_is_needed_and_where():
    with pytest.raises(hx.errors.BadArgument, match="prefetch: an iterator is needed, got int"):
        hx.prefetch(3)
    with pytest.raises(hx.errors.BadArgument, match="prefetch: size must be at least 1, got 0"):
        hx.prefetch([], size=0)
    with pytest.raises(hx.errors.BadArgument, match="prefetch: the device must be"):
        hx.prefetch([], "cpu")
    with pytest.raises(hx.errors.NotAnArray) as raised:
        next(hx.prefetch([{"x": "text"}]))
    assert "at test_prefetch.py:" in str(raised.value)
    with pytest.raises(hx.errors.ShapeMismatch):
        next(hx.prefetch([np.ones(3)], CUT))
    with pytest.raises(hx.errors.TreeMismatch, match="prefetch"):
        next(hx.prefetch([np.ones(4)], {"x": CUT}))


def test_each_process_passes_what_its_own_devices_hold():
    code = """
import numpy as np
from handlax import NamedSharding, P
me = hx.process_index()
cut = NamedSharding(hx.make_mesh((4,), ("a",)), P("a"))
rows = (np.arange(4.0) + 4 * me + 100 * i for i in range(3))
total = hx.jit(lambda x: (x * np.arange(8)).sum())
print([total(x).item() for x in hx.prefetch(rows, cut)])
"""
    expected = str([float(((np.arange(8) + 100 * i) * np.arange(8)).sum()) for i in range(3)])
    assert [lines[-1] for lines in in_processes(code, 2, 2, timeout=300)] == [expected] * 2
