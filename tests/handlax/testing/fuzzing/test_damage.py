"""Damage depends on the seed alone, stays short, and reaches all bytes; what is reduced does what it did."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from handlax.testing import reduced
from handlax.testing.fuzzing import damaged, smaller_bytes
from handlax.testing.fuzzing.damage import MOST


@given(st.binary(max_size=50), st.integers(0, 2**32), st.lists(st.binary(max_size=5)), st.lists(st.binary(max_size=5)))
def test_equal_seeds_damage_equally_and_bytes_stay_short(data, seed, others, words):
    found = [damaged(data, Random(seed), others, words) for _ in range(2)]
    assert found[0] == found[1] and len(found[0]) <= MOST


def test_words_take_the_places_of_words():
    rng = Random(0)
    found = {damaged(b"program f() -> ()", rng, (), (b"WORD",)) for _ in range(3000)}
    assert {b"WORD f() -> ()", b"program WORD() -> ()"} <= found
    assert len(found) > 100


@given(st.binary(max_size=60))
def test_reduced_bytes_keep_what_is_asked_and_no_byte_more(data):
    holds = lambda data: data.count(7) >= 2
    assert reduced(data + bytes([7, 1, 7]), holds, smaller_bytes) == bytes([7, 7])
