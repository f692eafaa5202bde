"""The text of collectives: read by the StableHLO specification it gives what the specification's examples give.

Source: the StableHLO specification, https://openxla.org/stablehlo/spec: the sections of the operations with their
examples, Replica groups, cross_partition, and flattened_ids.
"""

from __future__ import annotations

import itertools
import re
from functools import reduce

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import sdy, stablehlo

import handlax as hx
from handlax import lax
from handlax.sharding import AbstractMesh, Mesh, P

COMBINE = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")


def mesh_of(*sizes, names="abc"):
    return Mesh(np.array(hx.devices("cpu")[: np.prod(sizes)]).reshape(sizes), tuple(names[: len(sizes)]))


def lowered(f, mesh, *xs):
    """The text of a function of pieces, of which each device has one along the first dimension."""
    over = P(mesh.axis_names)
    return hx.jit(hx.shard_map(f, mesh=mesh, in_specs=over, out_specs=over)).lower(*xs).as_text()


def parsed(text):
    """The module; MLIR checks the constraints of each operation."""
    registry, context = ir.DialectRegistry(), ir.Context()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, sdy):
        dialect.register_dialect(context)
    return ir.Module.parse(text, context)


def operations(block_owner):
    """The operations of the first region of an operation."""
    return [op.operation for op in block_owner.regions[0].blocks[0].operations]


def device_region(module):
    """The operation whose region every device executes; it lives as long as the module."""
    (main,) = [op for op in operations(module.operation) if op.name == "func.func"]
    (region,) = [op for op in operations(main) if op.name == "sdy.manual_computation"]
    return region


def process_groups(op, mesh):
    """The partitions that meet, in order: what the specification calls process groups, for one replica."""
    handle, kind = map(int, re.findall(r"\d+", str(op.attributes["channel_handle"])))
    assert handle > 0 and kind == 1
    global_ids = "use_global_device_ids" in op.attributes
    assert global_ids == (op.name in ("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.reduce_scatter"))
    if op.name == "stablehlo.collective_permute":
        return np.array(op.attributes["source_target_pairs"]).tolist()
    groups = op.attributes["replica_groups"]
    parts = re.findall(r'axis_ref<name = "(\w+)"(?:, sub_axis_info = \((\d+)\)(\d+))?>', str(groups))
    if not parts:
        return [[number for number in group if number >= 0] for group in np.array(groups).tolist()]
    shape, meeting = [], []  # the mesh with each axis split into what is before a part, the part, and what is after
    for name in mesh.axis_names:
        cuts = {1, mesh.shape[name]}
        whole = mesh.shape[name]
        mine = [(i, int(pre or 1), int(size or whole)) for i, (n, pre, size) in enumerate(parts) if n == name]
        for _, before, size in mine:
            cuts |= {before, before * size}
        for low, high in itertools.pairwise(sorted(cuts)):
            meeting += [(i, len(shape)) for i, before, size in mine if (before, before * size) == (low, high)]
            shape.append(high // low)
    order = [place for _, place in sorted(meeting)]
    numbers = np.moveaxis(np.arange(mesh.size).reshape(shape), order, range(-len(order), 0))
    return numbers.reshape(-1, int(np.prod([shape[place] for place in order]))).tolist()


def meaning(op, groups, values):
    """The result of each partition, of their operands: the sections ``Semantics``."""
    number = lambda name: ir.IntegerAttr(op.attributes[name]).value
    results = [np.zeros_like(x) for x in values]
    for group in groups:
        xs = [values[process] for process in group]
        if op.name == "stablehlo.collective_permute":
            results[group[1]] = xs[0]
            continue
        if op.name == "stablehlo.all_gather":
            ys = [np.concatenate(xs, number("all_gather_dim"))] * len(group)
        elif op.name == "stablehlo.all_to_all":
            parts = [np.split(x, number("split_count"), number("split_dimension")) for x in xs]
            ys = [np.concatenate([part[i] for part in parts], number("concat_dimension")) for i in range(len(group))]
        else:
            combiner = operations(op)[0].name.removeprefix("stablehlo.")
            total = reduce(COMBINE[combiner], xs)
            scatters = op.name == "stablehlo.reduce_scatter"
            ys = np.split(total, len(group), number("scatter_dimension")) if scatters else [total] * len(group)
        for process, y in zip(group, ys):
            results[process] = y
    return results


def names_in(text):
    """The names of the operations that every device executes."""
    module = parsed(text)
    return [op.name.removeprefix("stablehlo.") for op in operations(device_region(module))]


def by_specification(text, mesh, pieces):
    """The results of each partition: ``pieces`` has for every operand one array for each."""
    module = parsed(text)
    region = device_region(module)
    values = {}
    for argument, xs in zip(region.regions[0].blocks[0].arguments, pieces):
        values[argument.get_name()] = [x.reshape(argument.type.shape) for x in xs]
    for op in operations(region):
        operands = [values[operand.get_name()] for operand in op.operands]
        if op.name == "sdy.return":
            return [[x[0] for x in xs] for xs in operands]
        if op.name == "stablehlo.reshape":
            made = [x.reshape(op.results[0].type.shape) for x in operands[0]]
        elif op.name == "stablehlo.transpose":
            made = [x.transpose([*ir.DenseI64ArrayAttr(op.attributes["permutation"])]) for x in operands[0]]
        else:
            made = meaning(op, process_groups(op, mesh), operands[0])
        assert [*made[0].shape] == op.results[0].type.shape
        values[op.results[0].get_name()] = made
    raise AssertionError("the region returns nothing")


# name: the function, the operands of each process, and the results: of the examples in the specification
EXAMPLES = {
    "all_gather": (
        lambda *xs: lax.all_gather(xs, "a", axis=1, tiled=True),
        [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[11, 12], [13, 14]], [[15, 16], [17, 18]]]],
        [[[[1, 2, 5, 6], [3, 4, 7, 8]]] * 2, [[[11, 12, 15, 16], [13, 14, 17, 18]]] * 2],
    ),
    "all_reduce": (
        lambda *xs: lax.psum(xs, "a"),
        [[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]],
        [[[6, 8, 10, 12]] * 2, [[22, 24, 26, 28]] * 2],
    ),
    "all_to_all": (
        lambda *xs: lax.all_to_all(xs, "a", 1, 0, tiled=True),
        [[[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]],
         [[[17, 18, 19, 20], [21, 22, 23, 24]], [[25, 26, 27, 28], [29, 30, 31, 32]]]],
        [[[[1, 2], [5, 6], [9, 10], [13, 14]], [[3, 4], [7, 8], [11, 12], [15, 16]]],
         [[[17, 18], [21, 22], [25, 26], [29, 30]], [[19, 20], [23, 24], [27, 28], [31, 32]]]],
    ),
    "collective_permute": (
        lambda x: [lax.ppermute(x, "a", [(0, 1), (1, 2)])],
        [[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]],
        [[[[0, 0], [0, 0]], [[1, 2], [3, 4]], [[5, 6], [7, 8]]]],
    ),
    "reduce_scatter": (
        lambda x: [lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True)],
        [[[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]],
        [[[[10, 12], [18, 20]], [[14, 16], [22, 24]]]],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_specification(name):
    f, operands, results = EXAMPLES[name]
    pieces = [[np.array(x, np.int64) for x in xs] for xs in operands]
    mesh = mesh_of(len(pieces[0]))
    whole = [np.concatenate(xs) for xs in pieces]
    text = lowered(f, mesh, *whole)
    assert names_in(text).count(name) == len(pieces)
    read = by_specification(text, mesh, pieces)
    executed = hx.jit(hx.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a")))(*whole)
    for said, done, expected in zip(read, executed, results, strict=True):
        np.testing.assert_array_equal(said, expected)
        np.testing.assert_array_equal(done, np.concatenate(expected))


def test_the_example_of_collective_broadcast():
    """It is a sum of which all terms but one are 0. Processes in no group would get 0; here each is in one."""
    f = lambda x: lax.pbroadcast(x, "a", 0, axis_index_groups=[[2, 1], [0, 3]])
    mapped = hx.jit(hx.shard_map(f, mesh=mesh_of(4), in_specs=P("a"), out_specs=P("a")))
    np.testing.assert_array_equal(mapped(np.arange(1, 9).reshape(4, 2)), [[1, 2], [5, 6], [5, 6], [1, 2]])


RING = [(i, (i + 3) % 8) for i in range(8)]
HALVES = [[0, 1, 2, 3], [7, 6, 5, 4]]
CASES = {
    "two axes": lambda x: lax.psum(x, ("a", "c")),
    "in another order": lambda x: lax.all_gather(x, ("c", "a"), axis=1),
    "the largest": lambda x: lax.pmax(x, "b"),
    "the smallest of a few": lambda x: lax.pmin(x, ("a", "b", "c"), axis_index_groups=[[0, 3, 5], [1, 2, 4, 6, 7]]),
    "a product": lambda x: lax.pprod(x, ("b", "a")),
    "groups gathered": lambda x: lax.all_gather(x, ("a", "b", "c"), axis_index_groups=HALVES),
    "scattered": lambda x: lax.psum_scatter(x, ("b", "c"), scatter_dimension=0, tiled=True),
    "scattered in groups": lambda x: lax.psum_scatter(x, ("c", "b", "a"), axis_index_groups=HALVES),
    "exchanged": lambda x: lax.all_to_all(x, ("a", "b"), 0, 1, tiled=True),
    "exchanged in groups": lambda x: lax.all_to_all(x, ("a", "b", "c"), 0, 0, axis_index_groups=HALVES),
    "around": lambda x: lax.ppermute(x, ("b", "c", "a"), RING),
    "around one axis": lambda x: lax.ppermute(x, "b", [(0, 1), (1, 0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_text_says_is_what_devices_do(case):
    """One operation of StableHLO, whose groups are in the order of the names."""
    f, mesh = CASES[case], mesh_of(2, 2, 2)
    pieces = np.random.RandomState(0).randint(1, 9, (8, 4, 4)).astype(np.float32)
    whole = pieces.reshape(32, 4)
    text = lowered(f, mesh, whole)
    assert len([name for name in names_in(text) if name in COLLECTIVES]) == 1
    (read,) = by_specification(text, mesh, [pieces])
    over = P(mesh.axis_names)
    executed = hx.jit(hx.shard_map(f, mesh=mesh, in_specs=over, out_specs=over))(whole)
    np.testing.assert_array_equal(np.concatenate(read), executed)


BLOCKS = [[0, 1, 2, 3], [4, 5, 6, 7]]
FAR = [[0, 4], [1, 5], [2, 6], [3, 7]]
ACROSS = [[0, 2, 4, 6], [1, 3, 5, 7]]
PAIRS = [[0, 2], [1, 3], [4, 6], [5, 7]]


@pytest.mark.parametrize("sizes", [(8,), (2, 4), (4, 2)])
@pytest.mark.parametrize("groups", [BLOCKS[::-1], FAR, ACROSS, PAIRS])
def test_groups_that_are_parts_of_axes_are_said_without_a_table(sizes, groups):
    mesh, pieces = mesh_of(*sizes), np.random.RandomState(0).rand(8, 1, 3).astype(np.float32)
    f = lambda x: lax.all_gather(x, mesh.axis_names, axis_index_groups=groups)
    text = lowered(f, mesh, pieces.reshape(8, 3))
    assert "#table" not in text
    (read,) = by_specification(text, mesh, [pieces])
    of_group = {lane: [pieces[other] for other in group] for group in groups for lane in group}
    expected = [np.stack(of_group[i]) for i in range(8)]
    np.testing.assert_array_equal(read, expected)
    over = P(mesh.axis_names)
    executed = hx.jit(hx.shard_map(f, mesh=mesh, in_specs=over, out_specs=over))(pieces.reshape(8, 3))
    np.testing.assert_array_equal(executed, np.concatenate(expected))


@pytest.mark.parametrize(("sizes", "groups"), [
    ((8,), [[1, 0, 2, 3], [4, 5, 6, 7]]), ((8,), [[0, 1], [2, 3, 4, 5], [6, 7]]), ((2, 3), [[0, 1], [2, 3], [4, 5]]),
    ((2, 3), [[0, 2, 4], [1, 3, 5]]), ((3, 2), [[0, 3], [1, 4], [2, 5]]),
    ((8,), [[0, 3], [1, 2], [4, 7], [5, 6]]), ((8,), [[lane] for lane in range(8)]),
])
def test_other_groups_are_a_table(sizes, groups):
    mesh = mesh_of(*sizes)
    n = mesh.size
    f = lambda x: lax.psum(x, mesh.axis_names, axis_index_groups=groups)
    text = lowered(f, mesh, np.ones((n, 1)))
    assert "#table" in text
    (read,) = by_specification(text, mesh, [np.arange(float(n)).reshape(n, 1, 1)])
    assert np.ravel(read).tolist() == [float(sum(group)) for lane in range(n) for group in groups if lane in group]


LARGER = [(4, 4, 4), (8, 8, 8), (16, 16, 16)]
SYMBOLIC = {
    "psum": lambda x: lax.psum(x, ("a", "c")),
    "pmax": lambda x: lax.pmax(x, "b"),
    "all_gather": lambda x: lax.all_gather(x, ("c", "a"), axis=1),
    "psum_scatter": lambda x: lax.psum_scatter(x, "b", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, ("a", "b"), 0, 1, tiled=True),
    "axis_index": lambda x: x + lax.axis_index(("a", "b", "c")),
    "pbroadcast": lambda x: lax.pbroadcast(x, "b", 1),
    "pargmax": lambda x: lax.pargmax(x, "b"),
    "neighbours": lambda x: lax.psum(x, "b", axis_index_groups=[(i, i + 1) for i in range(0, lax.axis_size("b"), 2)]),
    "gradient": hx.grad(lambda x: lax.psum(x * lax.pmean(x, "a"), ("b", "c")).sum()),
}


def over_abstract(f, sizes):
    mesh = AbstractMesh(sizes, ("a", "b", "c"))
    return lowered(f, mesh, hx.ShapeDtypeStruct((256 * mesh.size, 256), "float32"))


def without_numbers(text):
    return re.sub(r"\d+", "0", text)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_along_whole_axes_the_text_is_that_of_any_mesh_but_for_the_sizes(name):
    few, some, many = [over_abstract(SYMBOLIC[name], sizes) for sizes in LARGER]
    assert without_numbers(few) == without_numbers(some) == without_numbers(many)
    assert "#table" not in few


def test_pairs_are_the_table_that_grows_and_stand_once():
    """StableHLO has no symbolic form of pairs; operations with the same ones share a table, and so do gradients."""

    def ring(x, times=3):
        n = lax.axis_size("b")
        for _ in range(times):
            x = lax.ppermute(x, "b", [(i, (i + 1) % n) for i in range(n)])
        return x

    texts = [over_abstract(ring, sizes) for sizes in LARGER]
    for text, sizes in zip(texts, LARGER):
        (table,) = [line for line in text.splitlines() if line.startswith("#table")]
        assert f"tensor<{np.prod(sizes)}x2xi64>" in table and text.count("source_target_pairs = #table") == 3
        assert without_numbers(text.split("\n", 1)[1]) == without_numbers(texts[0].split("\n", 1)[1])
    back = over_abstract(hx.grad(lambda x: (ring(x) ** 2).sum()), LARGER[0])
    assert back.count("collective_permute") == 6 and back.count("= dense<[[") == 2
