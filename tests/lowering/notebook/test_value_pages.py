"""Pages of arrays: what is shown of values, and that no more than a sample of them is read."""

import re
import xml.etree.ElementTree as ET
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.core.arrays import concrete
from handlax.effects.types.array_type import array_type
from handlax.lowering.notebook import value_pages
from handlax.lowering.notebook.page import describe


def words(x):
    """The text of a page, without its styles."""
    page = ET.fromstring(x._repr_html_())
    page.remove(page.find("style"))
    return " ".join(" ".join(page.itertext()).split())


def computed(shape):
    """Ones that a device alone has."""
    return hx.jit(lambda: hnp.ones(shape))()


def devices_are_asked(monkeypatch):
    """Nothing is read whole, as of large arrays on an accelerator."""
    monkeypatch.setattr(value_pages, "SMALL", 0)
    monkeypatch.setattr(value_pages, "VIEWED", ())


@pytest.fixture
def sent(monkeypatch):
    """The sizes of what devices are asked for; more is refused."""
    sizes = []
    read = value_pages._on_its_device

    def counted(f, x, *args):
        values = read(f, x, *args)
        sizes.append(values.size)
        return values

    monkeypatch.setattr(value_pages, "_on_its_device", counted)
    return sizes


def test_a_page_says_type_size_place_range_and_few_values():
    x = hnp.array([[1.0, -2.5], [0.0, 4.0]])
    assert words(x) == "f32[2,2] float32, 16 B, in NumPy's memory f32[2,2] from -2.5 to 4 [[ 1. -2.5] [ 0. 4. ]]"
    assert words(hx.device_put(3, hx.devices()[2])) == "i32[]~ int32, 4 B, on CPU 2 3"
    assert words(hnp.zeros((0, 3))) == "f32[0,3] float32, 0 B, in NumPy's memory []"


def test_what_no_device_has_is_not_transferred_for_its_page():
    x = hnp.ones((300, 300))
    assert "a sample of 3,600 of 90,000" in words(x)
    assert x._buffer is None


def test_values_that_are_not_finite_are_counted_also_where_they_are_errors():
    x = hnp.array([1.0, np.nan, -np.inf])
    with hx.debug_nans(True):
        assert "from 1 to 1, 2 not finite" in words(x)
    assert "no finite number, 1 not finite" in words(x[1:2])


@pytest.mark.parametrize("dtype", ["bool", "int4", "uint8", "bfloat16", "float8_e4m3fn", "complex64"])
def test_numbers_of_every_kind_have_a_picture(dtype):
    assert "from 0 to 1" in words(hnp.arange(2).astype(dtype))


def test_keys_have_no_numbers():
    assert words(hx.random.key(0)).startswith("key<fry>[] key<fry>, 8 B, in NumPy's memory Array((), dtype=key<fry>)")


def test_a_deleted_array_says_so():
    x = hx.device_put(np.ones(3, np.float32))
    x.delete()
    assert words(x) == "f32[3] deleted"


@given(st.lists(st.integers(1, 90), min_size=1, max_size=3))
def test_a_sample_has_elements_at_equal_distances(shape):
    x = np.arange(prod(shape)).reshape(shape)
    found = value_pages.sample(concrete(array_type(tuple(shape), np.dtype("int64")), x))
    assert found.shape[-1] <= 64 and prod(found.shape[:-1]) <= 64
    for places, size in zip(np.unravel_index(found, shape), shape):  # each element is its own number
        chosen = np.unique(places)
        assert chosen[0] == 0 and len({*np.diff(chosen)}) <= 1
        assert size - chosen[-1] <= (chosen[1] if len(chosen) > 1 else size)


@pytest.mark.parametrize("spec", [hx.P(), hx.P("a"), hx.P(None, "b"), hx.P("a", "b"), hx.P(("a", "b"))])
def test_of_each_shard_its_device_sends_a_few_elements(sent, monkeypatch, spec):
    devices_are_asked(monkeypatch)
    mesh = hx.make_mesh((2, 4), ("a", "b"), axis_types=(hx.sharding.AxisType.Auto,) * 2)
    data = np.arange(200.0 * 168, dtype=np.float32).reshape(200, 168)
    x = hx.device_put(data, hx.NamedSharding(mesh, spec))
    found = value_pages.sample(x, x.sharding)
    assert np.array_equal(found, data[::4, ::3])
    assert sum(sent) == found.size
    assert x._value is None
    assert f"over 8 devices by {spec}" in words(x)


def test_handlers_in_force_and_traces_see_nothing_of_a_page(sent, monkeypatch):
    devices_are_asked(monkeypatch)
    x = computed((100, 100))

    def refused(op, *xs):
        raise AssertionError(op.name)

    @hx.handle(hx.handler(otherwise=refused))
    def page():
        return words(x)

    assert "from 1 to 1 in a sample of 2,500" in page()
    program = hx.make_program(lambda y: words(x) and y)(1.0)
    assert len(program.ops) == 0 and len(sent) == 2


def test_a_traced_value_is_described_by_its_type():
    seen = []
    hx.vmap(hx.jit(lambda x: seen.append(words(x)) or x))(hnp.ones((2, 3)))
    hx.grad(lambda x: seen.append(words(x)) or x)(1.0)
    assert seen[0] == "f32[3] under jit a traced value: its numbers are not known"
    assert seen[1] == "f32[]~ under grad a traced value: its numbers are not known"


def test_a_picture_shows_where_an_array_is_cut():
    mesh = hx.make_mesh((2, 4), ("a", "b"))
    x = hx.device_put(np.ones((8, 8), np.float32), hx.NamedSharding(mesh, hx.P("a", "b")))
    (path,) = re.findall(r'<path d="([^"]*)"', x._repr_html_())
    assert path == "M0 0H8V8H0Z" + "M0 4H8" + "M2 0V8M4 0V8M6 0V8"


def strips(x):
    """The lengths of the strips of a ragged array's picture."""
    (path,) = re.findall(r'<path d="([^"]*)"', x._repr_html_())
    return [int(n) for n in re.findall(r"H(\d+)V", path)]


def test_a_ragged_array_is_drawn_as_strips_of_its_lengths():
    assert strips(hx.Ragged(hnp.arange(20.0), (3, 0, 12))) == [3, 12]
    assert strips(hx.Ragged(hnp.ones((300, 2)), (200, 100))) == [50, 25]
    assert "Ragged i:2 => f32[[1,2].i] 2 lanes 2 lanes, 1 to 2 rows long" in words(hx.Ragged(hnp.ones(3), (1, 2)))
    assert words(hx.Ragged(hnp.ones(3), (0, 0))).endswith("no rows")


def test_many_lanes_are_shown_in_part():
    x = hx.Ragged({"a": hnp.ones((40, 2)), "b": hnp.ones(40)}, (1,) * 40)
    assert len(strips(x)) == 32
    assert "40 lanes, 1 to 1 rows long; 8 more lanes, the first number of each row and f32[40]" in words(x)


def test_of_a_large_ragged_array_its_device_sends_the_sampled_rows(sent, monkeypatch):
    devices_are_asked(monkeypatch)
    data = computed((300, 2))
    assert strips(hx.Ragged(data, hnp.array([200, 100]))) == [50, 25]
    assert sent == [75] and data._value is None


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize("spec", [hx.P("x"), hx.P(None, "x"), hx.P()])
def test_a_ragged_array_of_several_devices_is_drawn_as_one_of_a_single_device(monkeypatch, spec, ask):
    if ask:
        devices_are_asked(monkeypatch)
    data = np.arange(1.0, 33.0, dtype=np.float32).reshape(8, 4)
    spread = hx.device_put(data, hx.NamedSharding(hx.make_mesh((4,), ("x",)), spec))
    monkeypatch.setattr(value_pages, "SMALL", 0)
    assert hx.Ragged(spread, (3, 5))._repr_html_() == hx.Ragged(hnp.array(data), (3, 5))._repr_html_()


def test_a_page_of_many_shards_compiles_nothing_where_they_are_seen_as_they_lie(sent, monkeypatch):
    monkeypatch.setattr(value_pages, "SMALL", 0)
    data = np.arange(800.0, dtype=np.float32).reshape(8, 100)
    x = hx.device_put(data, hx.NamedSharding(hx.make_mesh((8,), ("x",)), hx.P("x")))
    assert np.array_equal(value_pages.sample(x, x.sharding), data[:, ::2])
    assert not sent


def test_strips_whose_values_are_not_read_say_so():
    keys = hx.Ragged(hx.random.split(hx.random.key(0), 8), (3, 5))
    assert strips(keys) == [3, 5]
    assert words(keys).endswith("2 lanes, 3 to 5 rows long, no values are read")
    partial_sums = hx.P(unreduced={"x"})
    zeros = hx.device_put(np.zeros(8, np.float32), hx.NamedSharding(hx.make_mesh((4,), ("x",)), partial_sums))
    assert words(hx.Ragged(zeros, (3, 5))).endswith("no values are read")


def test_first_lanes_without_rows_have_no_strips():
    assert strips(hx.Ragged(hnp.ones(2), (0,) * 32 + (2,))) == [1]  # the frame


@pytest.mark.parametrize("deleted", ["data", "lengths"])
def test_a_ragged_array_over_deleted_data_says_so(deleted):
    data, lengths = hx.device_put(np.ones(8, np.float32)), hx.device_put(np.array([3, 5], np.int32))
    x = hx.Ragged(data, lengths)
    {"data": data, "lengths": lengths}[deleted].delete()
    assert words(x).endswith("deleted")


def test_a_traced_ragged_array_is_described_by_its_type():
    seen = []
    hx.jit(lambda x: seen.append(describe(x).title) or x)(hx.Ragged(hnp.ones(3), (1, 2)))
    hx.jit(lambda n: seen.append(words(hx.Ragged(hnp.ones(3), n))) or n)(hnp.array([1, 2]))
    assert seen[0] == "Ragged i:2 => f32[[1,2].i]"
    assert seen[1].endswith("traced values: their numbers are not known")
