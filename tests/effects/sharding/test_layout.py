"""Layouts and formats: values, and where a sharding is taken."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.experimental.layout import Format, Layout, with_layout_constraint
from handlax.experimental.serialize_executable import deserialize_and_load, serialize
from handlax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

MESH = Mesh(np.array(hx.devices()[:4]), ("a",))
CUT = NamedSharding(MESH, PartitionSpec("a"))
ROWS, COLUMNS = Layout((0, 1)), Layout((1, 0))


def test_layouts_and_formats_are_values():
    assert Layout((0, 1)) == ROWS != COLUMNS and hash(Layout(major_to_minor=(0, 1))) == hash(ROWS)
    assert pickle.loads(pickle.dumps(Format(ROWS, CUT))) == Format(ROWS, CUT) != Format(None, CUT)
    assert Format().layout is None and Format().sharding is None
    with pytest.raises(errors.BadArgument, match="must come with a sharding"):
        Format(ROWS)


@pytest.mark.parametrize("form", [Format(None, CUT), Format(ROWS, CUT)])
def test_a_row_major_format_is_taken_where_its_sharding_is(form):
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    assert hx.device_put(x, form).sharding == CUT
    assert hx.jit(lambda x: x + 1, in_shardings=form, out_shardings=form)(x).sharding == CUT
    assert hx.jit(lambda x: hx.lax.with_sharding_constraint(x, form))(x).tolist() == x.tolist()
    assert hx.device_put(x, Format()).tolist() == x.tolist()


def test_arrays_and_compiled_functions_tell_their_formats():
    x = hx.device_put(np.ones((4, 2), np.float32), CUT)
    assert x.format == Format(ROWS, CUT) and hx.numpy.float32(1).format.layout == Layout(())
    compiled = hx.jit(lambda x, unused, y: {"z": x[0] + y}).lower(x, x, np.float32(1)).compile()
    (first, unused, last), named = compiled.input_formats
    assert (first, unused, last.layout, named) == (Format(ROWS, CUT), None, Layout(()), {})
    assert compiled.output_formats["z"].layout == Layout((0,))
    assert compiled.output_formats["z"].sharding == compiled.output_shardings["z"]
    assert compiled(x, x, np.float32(1))["z"].format == compiled.output_formats["z"]


X = np.arange(12, dtype=np.float32).reshape(4, 3)
HERE = SingleDeviceSharding(hx.devices()[0])
PLACES = [HERE, SingleDeviceSharding(hx.devices()[3]), CUT, NamedSharding(MESH, PartitionSpec())]
DTYPES = ["bool", "int4", "int8", "uint32", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.each_choice
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_an_array_has_the_layout_asked_for_and_the_same_elements(order, place):
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    asked = Format(Layout(order), place)
    identity = hx.jit(lambda x: x, out_shardings=asked)
    for y in (hx.device_put(x, asked), hx.device_put(hnp.asarray(x), asked), identity(x)):
        assert y.format == asked and y.committed and hx.typeof(y) == hx.typeof(hnp.asarray(x))
        assert np.array_equal(y, x) and hx.device_put(y, asked) is y
        assert all(part.data.format.layout == asked.layout for part in y.addressable_shards)
        assert all(np.array_equal(part.data, x[part.index]) for part in y.addressable_shards)
        for other in PLACES:
            moved = hx.device_put(y, other)
            assert moved.format == Format(Layout((0, 1, 2)), other) and np.array_equal(moved, x)
            back = hx.device_put(moved, asked)
            assert back.format == asked and np.array_equal(back, x)
            assert np.array_equal(hx.device_put(y, Format(Layout((2, 0, 1)), other)), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_back(dtype):
    x = np.asarray(hnp.asarray(np.arange(12).reshape(4, 3) % 7, dtype))
    y = hx.device_put(x, Format(COLUMNS, HERE))
    assert y.format.layout == COLUMNS and np.array_equal(y, x) and y.tolist() == x.tolist()
    assert np.array_equal(hx.jit(lambda y: y)(y), x) and np.array_equal(copy.copy(y), x)
    assert np.array_equal(pickle.loads(pickle.dumps(y)), x) and np.array_equal(np.stack([*y]), x)
    if dtype not in ("int4", "bfloat16"):
        assert np.array_equal(np.from_dlpack(y), x)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_operations_and_programs_take_an_array_as_it_lies(place):
    y, twice = hx.device_put(X, Format(COLUMNS, place)), hx.jit(lambda x: 2 * x)
    for _ in range(2):  # the slow and the fast path
        assert np.array_equal(twice(y), 2 * X) and np.array_equal(twice(hx.device_put(X, place)), 2 * X)
    compiled = twice.lower(y).compile()
    assert compiled.input_formats[0][0] == y.format and np.array_equal(compiled(y), 2 * X)
    assert np.array_equal(compiled(hx.device_put(X, place)), 2 * X)
    for f in (lambda x: x + 1, lambda x: x.T @ x, lambda x: x[1:, 0], lambda x: hnp.concatenate([x, x]), np.asarray,
              hx.grad(lambda x: (x**3).sum()), hx.vmap(lambda row: row[::-1]), hnp.copy, hnp.zeros_like,
              lambda x: hx.lax.scan(lambda c, row: (c + row, row), x[0], x)[0], lambda x: hnp.sort(x, 0)):
        assert np.allclose(f(y), f(hnp.asarray(X)))


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_program_takes_and_gives_the_layouts_asked_for(place):
    form, plain = Format(COLUMNS, place), Format(ROWS, place)
    f = hx.jit(lambda x, y: {"a": x + y, "b": x - y}, in_shardings=(form, None), out_shardings={"a": form, "b": plain})
    text = f.lower(X, X).as_text()
    assert text.count('mhlo.layout_mode = "{0,1}"') == 2 and "aliasing" not in text
    for x in (X, hx.device_put(X, form), hnp.asarray(X)):
        made = f(x, X)
        assert (made["a"].format, made["b"].format) == (form, plain)
        assert np.array_equal(made["a"], 2 * X) and not made["b"].any()
    compiled = f.lower(hx.ShapeDtypeStruct(X.shape, X.dtype, sharding=form), X).compile()
    assert compiled.input_formats[0][0] == compiled.output_formats["a"] == form
    assert compiled.output_formats["b"] == plain and np.array_equal(compiled(X, X)["a"], 2 * X)
    with pytest.raises(errors.BadArgument, match=r"in_shardings say Layout\(.*\(1, 0\).* of x, which has .*\(0, 1\)"):
        f(hx.device_put(X, place), X)


def test_an_argument_in_a_layout_is_donated():
    form = Format(COLUMNS, HERE)
    for result in (form, None):
        f = hx.jit(lambda x: x + 1, donate_argnums=0, in_shardings=form, out_shardings=result)
        for _ in range(2):
            y = hx.device_put(X, form)
            assert np.array_equal(f(y), X + 1) and y.is_deleted()


def test_a_captured_array_lies_as_it_is():
    y = hx.device_put(X, Format(COLUMNS, HERE))
    f = hx.jit(lambda x: x @ y.T, in_shardings=Format(COLUMNS, HERE), out_shardings=Format(COLUMNS, HERE))
    assert np.allclose(f(X), X @ X.T) and f(X).format.layout == COLUMNS
    assert np.allclose(f.lower(X).compile()(X), X @ X.T)


def test_a_stored_executable_has_its_layouts():
    form = Format(COLUMNS, HERE)
    compiled = hx.jit(lambda x: 2 * x, in_shardings=form, out_shardings=form).lower(X).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    assert loaded.input_formats[0][0] == loaded.output_formats == form and np.array_equal(loaded(X), 2 * X)


def test_the_compiler_chooses_the_layout():
    form = Format(Layout.AUTO)
    assert form.sharding is None and repr(form.layout) == "AUTO" and pickle.loads(pickle.dumps(form)) == form
    columns = Format(COLUMNS, HERE)
    f = hx.jit(lambda x, y: (x, x @ y), in_shardings=(columns, form), out_shardings=form)
    compiled = f.lower(X, X.T).compile()
    assert 'mhlo.layout_mode = "auto"' in f.lower(X, X.T).as_text()
    assert compiled.output_formats[0].layout == COLUMNS, "XLA gives the argument as it lies"
    for call in (f, compiled):
        x, product = call(X, X.T)
        assert (x.format, product.format) == compiled.output_formats and x.committed
        assert np.array_equal(x, X) and np.allclose(product, X @ X.T) and np.array_equal(x + 1, X + 1)
    described = hx.ShapeDtypeStruct(X.shape, X.dtype, sharding=form)
    assert described.format == form and described.update(shape=(2, 3)).layout is Layout.AUTO
    assert hx.jit(lambda x: x).lower(described).compile().input_formats[0][0].layout == ROWS
    assert hx.device_put(X, Format(Layout.AUTO, CUT)).format == Format(ROWS, CUT)


def test_parts_of_any_layout_are_one_array():
    indices = CUT.devices_indices_map(X.shape)
    parts = [hx.device_put(X[i], Format(COLUMNS, SingleDeviceSharding(d))) for d, i in indices.items()]
    y = hx.make_array_from_single_device_arrays(X.shape, CUT, parts)
    assert y.format == Format(ROWS, CUT) and np.array_equal(y, X) and np.array_equal(y + 1, X + 1)
    form = Format(COLUMNS, CUT)
    for made in (hx.make_array_from_single_device_arrays(X.shape, form, parts),
                 hx.make_array_from_callback(X.shape, form, lambda index: X[index]),
                 hx.make_array_from_process_local_data(form, X)):
        assert made.format == form and np.array_equal(made, X)


@pytest.mark.parametrize("place", [hx.device_put, hx.lax.with_sharding_constraint])
def test_inside_of_a_program_a_format_is_a_constraint(place):
    for where in (CUT, HERE):
        f = hx.jit(lambda x, where=where: place(x * 2, Format(COLUMNS, where)))
        assert "@LayoutConstraint" in f.lower(X).as_text() and np.array_equal(f(X), 2 * X)
    assert place is hx.device_put or np.array_equal(place(X, Format(COLUMNS, CUT)), X)


@pytest.mark.parametrize(("layout", "message"), [
    (Layout((0,)), "name each dimension of the array once"),
    (Layout((0, 0)), "name each dimension of the array once"),
    (Layout((0, 1), tiling=((8, 128),)), "without tiles"),
    (Layout((0, 1), sub_byte_element_size_in_bits=4), "without tiles"),
])
def test_a_layout_that_arrays_cannot_have_is_refused(layout, message):
    form = Format(layout, HERE)
    for use in (lambda: hx.device_put(X, form), lambda: hx.jit(lambda x: x, in_shardings=form)(X),
                lambda: hx.jit(lambda x: x, out_shardings=form)(X),
                lambda: hx.jit(lambda x: x).lower(hx.ShapeDtypeStruct(X.shape, X.dtype, sharding=form)),
                lambda: with_layout_constraint(X, layout)):
        with pytest.raises(errors.BadArgument, match=message):
            use()


def test_random_keys_and_the_memory_of_the_host_are_row_major():
    keys = hx.random.split(hx.random.key(0), (2, 3))
    assert hx.device_put(keys, Format(ROWS, HERE)).format.layout == ROWS
    assert hx.jit(lambda k: k, out_shardings=Format(Layout.AUTO))(keys).format.layout == ROWS
    with pytest.raises(errors.BadArgument, match="random keys are row-major"):
        hx.device_put(keys, Format(COLUMNS, HERE))
    far = HERE.with_memory_kind("pinned_host")
    with pytest.raises(errors.BadArgument, match="memory of the host are row-major"):
        hx.device_put(X, Format(COLUMNS, far))
    x = hx.device_put(hx.device_put(X, Format(COLUMNS, HERE)), far)
    assert x.format == Format(ROWS, far) and np.array_equal(x, X)
