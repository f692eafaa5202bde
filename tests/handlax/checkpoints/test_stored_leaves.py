"""What is stored of a leaf: the chunks of an array, the process that writes each, and copies."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import NamedSharding, P
from handlax import numpy as hnp
from handlax.checkpoints import stored_leaves
from handlax.checkpoints.stored_leaves import _chunk_shape, described, own_pieces, writers
from handlax.testing.strategies import shardings

SHAPES = st.lists(st.integers(1, 12), max_size=3).map(tuple)


@given(data=st.data(), shape=SHAPES, most=st.integers(1, 200))
def test_chunks_are_within_parts_and_have_few_bytes(data, shape, most):
    parts = data.draw(st.tuples(*[st.sampled_from([1, 1, 2, 3]) for _ in shape]))
    whole = tuple([size * count for size, count in zip(shape, parts)])
    before, stored_leaves._CHUNK_BYTES = stored_leaves._CHUNK_BYTES, most
    try:
        chunk = _chunk_shape(whole, shape, 2)
    finally:
        stored_leaves._CHUNK_BYTES = before
    for size, count, n in zip(shape, parts, chunk, strict=True):
        assert n <= size and (size % n == 0 or count == 1)
    if set(parts) <= {1}:
        assert 2 * prod(chunk) <= max(most, 2)


def test_chunks_of_large_arrays():
    mebi, prime = 1 << 20, 1_000_000_007
    assert _chunk_shape((prime,), (prime,), 4) == (16_666_667,)
    assert _chunk_shape((2 * prime,), (prime,), 4) == (prime,)  # a part, which no few chunks divide
    assert _chunk_shape((1024, mebi), (512, mebi), 4) == (16, mebi)
    assert _chunk_shape((2, 100 * mebi), (1, 100 * mebi), 1) == (1, 50 * mebi)
    assert _chunk_shape((0, 3), (0, 3), 4) == (1, 3)


@given(data=st.data(), shape=st.sampled_from([(), (8,), (4, 8), (2, 4, 8)]), number=st.integers(0, 9))
def test_pieces_are_the_whole_array_each_element_once(data, shape, number):
    x = hx.device_put(np.arange(prod(shape)).reshape(shape), data.draw(shardings(shape)))
    seen, found = np.zeros(shape, int), np.zeros(shape, int)
    for index, elements in own_pieces(number, x):
        seen[index] += 1
        found[index] = elements
    assert (seen == 1).all() and (found == np.asarray(x)).all()


def test_devices_that_hold_the_same_part_write_it_in_turn():
    x = hx.device_put(np.arange(4), NamedSharding(hx.make_mesh((2, 4), ("a", "b")), P("a")))
    assert [[shard.device.id for shard in writers(number, x)] for number in (0, 1, 4)] == [[0, 4], [1, 5], [0, 4]]
    assert [shard.index for shard in writers(3, x)] == [(slice(0, 2),), (slice(2, 4),)]


def test_a_name_is_a_folder_that_tells_the_path():
    paths = ("", "['a']['b/../c']", ".layers[0]", "[" + "x" * 300 + "]")
    names = [described(7, path, np.zeros(2)).name for path in paths]
    assert names[:3] == ["7", "7.a.b.c", "7.layers.0"] and len(names[3]) < 120


def test_what_is_written_is_a_copy():
    x = np.arange(3)
    y = hnp.arange(3)
    pieces = [own_pieces(0, x)[0].data, own_pieces(0, y)[0].data]
    assert not any(np.shares_memory(data, one) for data in pieces for one in (x, np.asarray(y)))
