"""Layouts and formats: values, and where a sharding is taken."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax.experimental.layout import Format, Layout, with_layout_constraint
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


def test_another_layout_is_refused():
    x = np.ones((4, 2), np.float32)
    columns = Format(COLUMNS, SingleDeviceSharding(hx.devices()[0]))
    with pytest.raises(errors.BadArgument, match="row-major"):
        hx.device_put(x, columns)
    with pytest.raises(errors.BadArgument, match="row-major"):
        hx.jit(lambda x: x, out_shardings=columns)(x)
    with pytest.raises(errors.BadArgument, match="row-major"):
        hx.jit(lambda x: x, in_shardings=Format(Layout((0, 1), tiling=((8, 128),)), CUT))(x)


def test_arrays_and_compiled_functions_tell_their_formats():
    x = hx.device_put(np.ones((4, 2), np.float32), CUT)
    assert x.format == Format(ROWS, CUT) and hx.numpy.float32(1).format.layout == Layout(())
    compiled = hx.jit(lambda x, unused, y: {"z": x[0] + y}).lower(x, x, np.float32(1)).compile()
    (first, unused, last), named = compiled.input_formats
    assert (first, unused, last.layout, named) == (Format(ROWS, CUT), None, Layout(()), {})
    assert compiled.output_formats["z"].layout == Layout((0,))
    assert compiled.output_formats["z"].sharding == compiled.output_shardings["z"]
    assert compiled(x, x, np.float32(1))["z"].format == compiled.output_formats["z"]


def test_the_layout_that_the_compiler_chooses_is_row_major():
    form = Format(Layout.AUTO)
    assert form.sharding is None and repr(form.layout) == "AUTO" and pickle.loads(pickle.dumps(form)) == form
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    compiled = hx.jit(lambda x: x[:, 0], in_shardings=form, out_shardings=form).lower(x).compile()
    ((chosen,), _) = compiled.input_formats
    assert chosen.layout == ROWS and compiled(x).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert hx.device_put(x, Format(Layout.AUTO, CUT)).format == Format(ROWS, CUT)


def test_a_layout_within_a_program_is_row_major_or_refused():
    x = np.ones((2, 3), np.float32)
    f = hx.jit(lambda x: with_layout_constraint({"a": x.T, "b": x}, ROWS))
    assert hx.tree.map(np.shape, f(x)) == {"a": (3, 2), "b": (2, 3)}
    assert hx.grad(lambda x: with_layout_constraint(x, ROWS).sum())(x).tolist() == x.tolist()
    refused = r"with_layout_constraint: (arrays are row-major|a Layout of rank 2)"
    for wrong in (COLUMNS, Layout((0,)), Layout((0, 1), tiling=((8, 128),)), "rows"):
        with pytest.raises(errors.BadArgument, match=refused):
            hx.jit(lambda x, wrong=wrong: with_layout_constraint(x, wrong))(x)
    with pytest.raises(errors.TreeMismatch, match="with_layout_constraint"):
        with_layout_constraint({"a": x}, {"b": ROWS})
