"""Layouts and formats: values, and where a sharding is taken."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax.experimental.layout import Format, Layout
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
