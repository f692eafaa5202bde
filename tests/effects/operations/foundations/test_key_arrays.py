"""Arrays of keys under operations that move elements: the words of a key move with it."""

import numpy as np

import handlax as hx
from handlax import numpy as hnp


def test_keys_move_with_their_words():
    keys = hx.random.split(hx.random.key(0), 6)
    words = np.asarray(hx.random.key_data(keys))
    moved = hx.jit(lambda k: hnp.concatenate([k[::-1].reshape(2, 3).T.reshape(-1), k[:1]]))(keys)
    turned = words[::-1].reshape(2, 3, 2).swapaxes(0, 1).reshape(-1, 2)
    np.testing.assert_array_equal(hx.random.key_data(moved), np.concatenate([turned, words[:1]]))
    assert moved.shape == (7,) and moved.dtype == keys.dtype


def test_keys_of_no_lanes_stay_keys():
    keys = hx.random.split(hx.random.key(0), 0)
    draw = hx.vmap(lambda key: hx.random.uniform(hx.random.split(key)[0], (3,)))
    assert draw(keys).shape == hx.jit(draw)(keys).shape == (0, 3)
    with hx.disable_jit():
        assert draw(keys).shape == (0, 3)
    assert hx.random.key_data(hx.random.split(hx.random.key(0), (0, 2))[:, 0]).shape == (0, 2)
    assert hx.vmap(hx.random.uniform)(hx.random.split(hx.random.key(0), (0, 2))[:, 0]).shape == (0,)
