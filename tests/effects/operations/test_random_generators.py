"""The generators beside Threefry-2x32: their published answers, counters that overflow, and the laws of keys."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import random
from handlax.effects.operations import random_blocks
from handlax.interpreters.core.record import record
from handlax.lowering.compile.placement import over
from handlax.lowering.compile.stablehlo_modules import lower_program

GENERATORS = ("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")
WORDS = {"threefry2x32": 2, "threefry4x32": 4, "philox2x32": 1, "philox4x32": 2, "rbg": 4, "unsafe_rbg": 4}
ALL = 0xFFFFFFFF

# Random123, kat_vectors: all words of key and counter, answer
VECTORS = [
    ("philox2x32", 3, 0, (0xFF1DAE59, 0x6CD10DF2)),
    ("philox2x32", 3, ALL, (0x2C3F628B, 0xAB4FD7AD)),
    ("philox4x32", 6, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ("philox4x32", 6, ALL, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ("threefry4x32", 8, 0, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
    ("threefry4x32", 8, ALL, (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
]


def words(keys):
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize(("name", "count", "word", "answer"), VECTORS)
def test_a_block_function_gives_the_published_answers(name, count, word, answer):
    f, operands = getattr(random_blocks, name), [np.asarray(word, np.uint32)] * count
    assert tuple(map(int, f(*operands))) == answer == tuple(map(int, hx.jit(f)(*operands)))


@pytest.mark.parametrize("factor", [1, 10, 0xD2511F53, ALL])
def test_the_words_of_a_product_are_those_of_64_bits(factor):
    x = np.random.default_rng(0).integers(0, 2**32, 100).astype(np.uint32)
    high, low = random_blocks.product(x, factor)
    assert ((high.astype(np.uint64) << np.uint64(32) | low) == x.astype(np.uint64) * np.uint64(factor)).all()


@pytest.mark.each_choice
@pytest.mark.parametrize("impl", GENERATORS)
@pytest.mark.parametrize("way", ["vmap", "jit(vmap)", "map"])
def test_transformations_draw_for_each_key_what_it_draws_alone(impl, way):
    keys = random.split(random.key(3, impl=impl), 3)

    def draws(k):
        return [
            random.bits(k, (5,)), random.bits(k, (2, 3), "uint64"), random.bits(k, (), "uint8"),
            random.key_data(random.split(k, (2, 2))), random.key_data(random.fold_in(k, 7)), random.bits(k, (0, 2)),
        ]

    lanes = [draws(random.wrap_key_data(data, impl=impl)) for data in words(keys)]
    together = {"vmap": hx.vmap(draws), "jit(vmap)": hx.jit(hx.vmap(draws)), "map": lambda ks: hx.lax.map(draws, ks)}
    for found, alone in zip(together[way](keys), zip(*lanes), strict=True):
        assert (np.asarray(found) == np.stack(alone)).all()


@pytest.mark.parametrize("impl", GENERATORS)
def test_keys_say_their_generator_and_are_wrapped_again(impl):
    key = random.key(5, impl=impl)
    assert random.key_impl(key) == impl and key.dtype == random.key_dtype(impl)
    assert words(key).shape == (WORDS[impl],)
    again = random.wrap_key_data(random.key_data(key), dtype=key.dtype)
    assert again.type is key.type and (words(again) == words(key)).all()
    assert len({tuple(row) for row in words(random.split(key, 100))}) == 100
    assert len(np.unique(np.asarray(random.bits(key, (1000,))))) == 1000


@pytest.mark.parametrize("impl", GENERATORS)
def test_the_default_generator_is_that_of_keys_and_raw_words(impl):
    with hx.default_prng_impl(impl):
        assert random.key_impl(random.key(0)) == impl == random.key_impl(random.PRNGKey(0))
        raw = random.PRNGKey(9)
        assert np.asarray(random.normal(raw, (3,))) == pytest.approx(
            np.asarray(random.normal(random.key(9, impl=impl), (3,)))
        )
        assert random.split(raw, 2).shape == (2, WORDS[impl])
    assert random.key_impl(random.key(0)) == "threefry2x32"


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_the_counter_of_a_stream_overflows_into_the_next_word(impl):
    key = random.wrap_key_data(np.array([1, 2, ALL, ALL], np.uint32), impl=impl)
    first, second = random_blocks.Philox4x32(), np.asarray(random.bits(key, (8,)))
    blocks = [first.formula(*[np.array([w], np.uint32) for w in (1, 2, *counter)]) for counter in (
        (ALL, ALL, 1, 2), (0, 0, 2, 2)
    )]
    assert (np.concatenate([np.concatenate(block) for block in blocks]) == second).all()


@pytest.mark.parametrize("impl", GENERATORS)
def test_uniform_numbers_have_the_moments_of_their_distribution(impl):
    u = np.asarray(random.uniform(random.key(1, impl=impl), (20_000,)))
    assert u.mean() == pytest.approx(0.5, abs=0.01) and u.var() == pytest.approx(1 / 12, abs=0.005)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03


@pytest.mark.parametrize(("wide", "seed", "data"), [
    (False, 2**40 + 5, (0, 5)), (False, -(2**31) - 1, (0, 2**31 - 1)), (None, 2**40 + 5, (256, 5)),
    (None, -1, (0, ALL)), (True, -1, (ALL, ALL)), (True, 2**32 - 1, (0, ALL)),
])
def test_the_high_word_of_a_seed_is_kept_as_the_width_of_integers_says(wide, seed, data):
    with hx.configure(enable_x64=wide):
        assert tuple(words(random.key(seed))) == data


def test_narrow_settings_draw_the_same_bits():
    with hx.configure(enable_x64=False):
        narrow = [np.asarray(hx.jit(random.bits)(random.key(4, impl=impl))) for impl in GENERATORS]
    assert narrow == [np.asarray(random.bits(random.key(4, impl=impl))) for impl in GENERATORS]


def test_arrays_like_keys_have_keys_or_a_number_in_every_word():
    keys = random.split(random.key(0, impl="rbg"))
    assert (words(hx.numpy.full_like(keys, 100)) == 100).all()
    assert (words(hx.numpy.full((2,), 7, keys.dtype)) == np.full((2, 4), 7)).all()
    assert (words(hx.numpy.full_like(keys, keys[1])) == words(keys)[1]).all()


@pytest.mark.parametrize("impl", rest_in_sweep(GENERATORS, ("threefry2x32", "philox2x32", "rbg")))
def test_a_chain_of_keys_compiles_to_a_program_linear_in_its_length(impl):
    """Else each draw computes all keys before its own again."""

    def walk(key, x, steps):
        for _ in range(steps):
            key, own = random.split(key)
            x = x + random.uniform(own, x.shape)
        return x

    def size(steps):
        compiled = hx.jit(walk, static_argnames="steps").lower(random.key(0, impl=impl), np.ones(3), steps=steps)
        return compiled.compile().as_text().count(" xor(")

    assert size(2) <= 2.2 * size(1)


@pytest.mark.parametrize(("platform", "stored"), [("cpu", True), ("cuda", False)])
def test_words_are_stored_where_kernels_run_one_after_the_other(platform, stored):
    program = record(lambda key: [random.bits(key, (5,))], [random.key(0).type])
    text = lower_program(program, "f", placement=over(hx.sharding.AbstractMesh((2,), ("i",))), platform=platform).text
    assert ("optimization_barrier" in text) == stored
