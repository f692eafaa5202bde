"""Arrays of keys under operations that move elements: the words of a key move with it."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.operations import SelectN


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


KEYS = random.split(random.key(0), 3)


@pytest.mark.parametrize("which", [True, np.array([True, False, True])], ids=["one", "each"])
@pytest.mark.parametrize("cases", [(KEYS, KEYS[::-1]), (KEYS[0], KEYS[1]), (KEYS, KEYS[1])], ids=["all", "two", "both"])
def test_keys_are_chosen_whole(which, cases):
    chosen = lambda which, *cases: random.key_data(lax.select_n(which, *[hnp.broadcast_to(k, (3,)) for k in cases]))
    alone = lambda which, *cases: random.key_data(hx.perform(SelectN(), which, *cases))
    wanted = np.where(np.reshape(which, (-1, 1)), *[np.broadcast_to(random.key_data(k), (3, 2)) for k in cases[::-1]])
    for found in (chosen(which, *cases), np.broadcast_to(alone(which, *cases), (3, 2))):
        np.testing.assert_array_equal(found, wanted)


def test_lanes_that_choose_a_key_draw_as_each_alone():
    draw = lambda p: random.normal(lax.cond(p, lambda k: random.split(k)[0], lambda k: k, KEYS[0]))
    ps = np.array([True, False])
    np.testing.assert_allclose(hx.vmap(draw)(ps), [float(draw(p)) for p in ps], rtol=1e-6)
