"""Pictures of shardings: a box for each part, its devices in it, in the proportions of the array."""

import re

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.inspection.sharding_picture import picture, visualize_sharding
from handlax.sharding import NamedSharding, P, SingleDeviceSharding

MESH = hx.make_mesh((2, 4), ("a", "b"), devices=hx.devices("cpu"))


def named(*entries):
    return NamedSharding(MESH, P(*entries))


@pytest.mark.parametrize(("shape", "entries", "drawn"), [
    ((8,), ("b",), """
┌─────────┬─────────┬─────────┬─────────┐
│ CPU 0,4 │ CPU 1,5 │ CPU 2,6 │ CPU 3,7 │
└─────────┴─────────┴─────────┴─────────┘
"""),
    ((4, 8), ("a", "b"), """
┌───────┬───────┬───────┬───────┐
│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │
├───────┼───────┼───────┼───────┤
│ CPU 4 │ CPU 5 │ CPU 6 │ CPU 7 │
└───────┴───────┴───────┴───────┘
"""),
    ((8, 4), ("a",), """
┌─────────────┐
│ CPU 0,1,2,3 │
├─────────────┤
│ CPU 4,5,6,7 │
└─────────────┘
"""),
])
def test_a_box_for_each_part(shape, entries, drawn, capsys):
    visualize_sharding(shape, named(*entries), scale=0.4)
    assert capsys.readouterr().out == drawn[1:]


@pytest.mark.parametrize("entries", [("a", "b"), ("b", "a"), (None, "b"), (("b", "a"),), (None, ("a", "b")), ()])
@pytest.mark.parametrize("shape", [(8, 8), (64, 8), (8, 640)])
def test_the_boxes_are_where_the_parts_are(shape, entries):
    sharding = named(*entries)
    grid = sharding.tiles(2).grid
    lines = picture(shape, sharding).splitlines()
    assert {len(line) for line in lines} == {len(lines[0])}
    rows = [re.findall(r"CPU ([\d,]+)", line) for line in lines if "CPU" in line]
    part, drawn = sharding.shard_shape(shape), {}
    for device, index in sharding.devices_indices_map(shape).items():
        place = tuple((cut.start or 0) // size for cut, size in zip(index, part))
        drawn.setdefault(place, []).append(str(device.id))
    assert (len(rows), len(rows[0])) == grid
    assert all(rows[i][j] == ",".join(ids) for (i, j), ids in drawn.items())


def test_the_picture_has_the_size_that_is_asked_for():
    sharding = named(None, "a")
    narrow, wide = (picture((8, 8), sharding, scale=scale) for scale in (1, 2))
    assert len(wide.splitlines()) > 1.5 * len(narrow.splitlines())
    assert len(picture((1, 1000), named(), max_width=40).splitlines()[0]) <= 41
    assert len(picture((1000, 1), named("a"), min_width=40).splitlines()[0]) >= 40


def test_colours_are_those_of_the_map():
    painted = picture((8,), named("a"), colors=lambda number: (number, 0, 1, 1))
    assert "\x1b[48;2;0;0;255m" in painted and "\x1b[48;2;128;0;255m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == picture((8,), named("a"))


@pytest.mark.parametrize(("shape", "sharding"), [((), named()), ((8, 8, 8), named("a")), ((3,), named("a"))])
def test_what_has_no_picture(shape, sharding):
    with pytest.raises(ValueError, match="got"):
        visualize_sharding(shape, sharding)


def test_an_array_is_drawn_by_its_sharding(capsys):
    x = hx.device_put(np.arange(8), named("a"))
    hx.debug.visualize_array_sharding(x, use_color=False)
    assert capsys.readouterr().out == picture((8,), named("a")) + "\n"
    seen = []
    hx.debug.inspect_array_sharding(x, callback=seen.append)
    hx.debug.inspect_array_sharding(np.arange(8), callback=seen.append)
    assert seen == [named("a"), SingleDeviceSharding(hx.devices("cpu")[0])]


def squared(x, seen):
    y = hnp.sin(x)
    hx.debug.inspect_array_sharding({"y": y, "turned": y.T}, callback=seen.append)
    return (y**2).sum()


def test_the_compiler_says_how_it_cuts_a_value():
    seen: list = []
    f = hx.jit(lambda x: squared(x, seen), in_shardings=named("a", "b"))
    for _ in range(2):
        f(np.ones((8, 8), "float32"))
    assert seen == [named("b", "a"), named("a", "b")], "once, when it is compiled"
    f.lower(np.ones((8, 16), "float32")).compile()
    assert len(seen) == 4
    seen.clear()
    hx.jit(lambda x: squared(x, seen))(np.ones((8, 8), "float32"))
    assert seen == [SingleDeviceSharding(hx.devices()[0])] * 2


@pytest.mark.parametrize(("transformed", "shape", "axes", "cut"), [
    (hx.grad, (8, 8), "ab", [("a", "b"), ("b", "a")]),
    (hx.checkpoint, (8, 8), "ab", [("a", "b"), ("b", "a")]),
    (hx.vmap, (2, 8, 8), (None, *"ab"), [(None, "a", "b"), (None, "b", "a")]),
    (lambda f: lambda x: lax.map(f, x), (2, 8, 8), (None, *"ab"), [("a", "b"), ("b", "a")]),
])
def test_shardings_are_inspected_under_transformations(transformed, shape, axes, cut):
    seen: list = []
    x, f = np.ones(shape, "float32"), transformed(lambda x: squared(x, seen))
    hx.jit(f, in_shardings=named(*axes))(x)
    assert {*seen} == {named(*entries) for entries in cut}
    seen.clear()
    f(x)
    assert {*seen} == {SingleDeviceSharding(hx.devices()[0])}


def test_pieces_of_a_shard_map_have_no_sharding():
    seen: list = []
    inspect = lambda x: hx.debug.inspect_array_sharding(x, callback=seen.append) or x
    over = hx.shard_map(inspect, mesh=named().mesh, in_specs=hx.P("a"), out_specs=hx.P("a"))
    assert hx.jit(over)(np.arange(8)).tolist() == [*range(8)] and seen == [named()]


@pytest.mark.parametrize("called", [lambda f: f, hx.jit, lambda f: hx.jit(f, in_shardings=named("a"))])
def test_an_error_of_the_function_is_raised_where_it_is_called(called):
    def fails(sharding):
        raise ValueError(f"not {sharding.num_devices}")

    f = called(lambda x: hx.debug.inspect_array_sharding(x, callback=fails) or x)
    with pytest.raises(hx.errors.CallbackError, match=r"fails raised ValueError: not \d") as caught:
        f(np.arange(8))
    assert type(caught.value.__cause__) is ValueError and "test_sharding_picture.py" in str(caught.value)
