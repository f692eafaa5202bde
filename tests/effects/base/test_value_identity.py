"""When two values are one."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

import handlax.numpy as hnp
from handlax.effects.base.errors import BadStaticArgument
from handlax.effects.base.value_identity import (
    ByBytes,
    ByData,
    ByEquality,
    ByIdentity,
    array_key,
    bits,
    leaf_key,
    same_data,
)
from handlax.effects.control.callbacks import UnhashableFunction
from handlax.effects.functions.keys import KeyedValue, static_key

NAN = float("nan")
DIFFERENT = [
    1, 1.0, True, 1 + 0j, "1", b"1", None, 0, 0.0, -0.0, False, complex(0.0, 0.0), complex(0.0, -0.0), NAN, (1,),
    (1.0,), (), np.float32(1), np.float64(1), np.int32(1), np.float32(-0.0), np.float32(0.0), frozenset((1,)),
    frozenset((1.0,)),
]


@pytest.mark.parametrize("key", [bits, ByData, KeyedValue, static_key])
def test_values_of_other_types_or_bits_differ(key):
    keys = {(type(x), key(x)) for x in DIFFERENT}
    assert len(keys) == len(DIFFERENT)


def test_equal_bits_are_one_key():
    for x in DIFFERENT:
        again = pickle.loads(pickle.dumps(x))
        assert bits(x) == bits(again) and hash(bits(x)) == hash(bits(again))
        assert leaf_key(x) == leaf_key(again) or isinstance(x, np.generic | tuple | frozenset)


def test_what_cannot_be_hashed_has_no_bits():
    for x in ([], ([],), {}, np.ones(1)):
        with pytest.raises(TypeError):
            bits(x)


def test_data_is_compared_by_type_and_value():
    for x, y in (
        ((1, ("a", [2])), (1, ("a", [2]))), ({"a": [1], 2: 0.0}, {2: 0.0, "a": [1]}), ([NAN], [NAN]),
        (np.array([1.0, NAN]), np.array([1.0, NAN])),
    ):
        assert same_data(x, y)
    for x, y in (
        (1, True), (0.0, -0.0), ((1,), (1.0,)), ((1,), (1, 2)), ([1], (1,)), ([1], [1.0]), ([0.0], [-0.0]),
        ({"a": 1}, {"a": True}), ({1: 2}, {True: 2}), ({1: 2}, {}), (np.zeros(2), -np.zeros(2)),
        (np.zeros(2), np.zeros(2, "float32")), (np.zeros(2), np.zeros((2, 1))),
    ):
        assert not same_data(x, y)
    assert ByData((1, 2)) == ByData((1, 2)) != ByData((1, 2.0))


def test_what_has_no_truth_in_its_comparison_is_named():
    class Vague:
        def __eq__(self, other):
            return np.zeros(2)

    with pytest.raises(BadStaticArgument, match="Vague"):
        same_data([Vague()], [Vague()])


def test_identity_keeps_its_value_alive_and_compares_nothing():
    class Silent:
        __hash__ = None

        def __eq__(self, other):
            raise AssertionError

    x, y = Silent(), Silent()
    assert ByIdentity(x) == ByIdentity(x) != ByIdentity(y)
    assert len({ByIdentity(x), ByIdentity(x), ByIdentity(y)}) == 2


def test_equality_is_what_a_value_says_of_itself():
    assert ByEquality([1]) == ByEquality([1]) != ByEquality([2])
    assert ByEquality(np.ones(2)) != ByEquality(np.ones(2))
    x = math.nan
    assert ByEquality(x) == ByEquality(x)
    assert ByEquality([1]) != [1]


@pytest.mark.parametrize("size", [3, 5000])
def test_arrays_are_compared_by_type_and_bytes(size):
    x, y, z = (hnp.asarray(np.full(size, value, np.float32)) for value in (0.0, 0.0, -0.0))
    assert array_key(x) == array_key(y) and hash(array_key(x)) == hash(array_key(y))
    assert array_key(x) != array_key(z)
    assert isinstance(array_key(x), ByBytes) == (size == 5000)


def test_arrays_of_one_hash_are_told_apart():
    zeros = np.zeros(1 << 18, np.float32)
    one, other = zeros.copy(), zeros.copy()
    one[0], other[1] = 1.0, 1.0  # the first is in the sample of bytes
    x, y, z, turned = map(hnp.asarray, (zeros, one, other, zeros.reshape(2, -1)))
    keys = [ByBytes(x), ByBytes(y), ByBytes(z), ByBytes(turned), ByBytes(x).array]
    assert [keys[0] == key for key in keys] == [True, False, False, False, False]
    assert ByBytes(x) == ByBytes(hnp.asarray(zeros)) and hash(ByBytes(x)) == hash(ByBytes(y)) == hash(ByBytes(z))


@pytest.mark.parametrize("key", [ByIdentity, ByData, ByEquality, KeyedValue])
def test_a_key_equals_no_value(key):
    x = (1, 2)
    assert key(x) == key(x) and hash(key(x)) == hash(key(x)) and key(x) != x


def test_static_containers_are_compared_by_what_they_hold():
    assert static_key([1, {"a": {2}}]) == static_key([1, {"a": {2}}])
    assert static_key([1]) != static_key((1,)) != static_key([1.0])
    assert static_key(np.ones(2)) == static_key(np.ones(2)) != static_key(np.ones(2, np.float32))
    x = hnp.ones(2)
    assert static_key([x]) == static_key([x]) != static_key([hnp.ones(2)])


def test_static_dataclasses_without_a_hash_are_compared_by_their_fields():
    @dataclasses.dataclass
    class Options:
        sizes: list

    options = Options([1])
    before = static_key(options)
    assert static_key(Options([1])) == before != static_key(Options([1.0]))
    options.sizes.append(2)
    assert static_key(options) != before


def test_static_containers_deeper_than_most_are_compared_by_equality():
    deep = lambda x, depth: x if depth == 0 else [deep(x, depth - 1)]
    assert static_key(deep(1, 20)) == static_key(deep(1, 20)) != static_key(deep(2, 20))


def test_what_may_change_is_like_nothing_that_was_held():
    x = hnp.ones(2)
    assert KeyedValue(x) == KeyedValue(x) != KeyedValue(hnp.ones(2))
    changing = [1]
    assert KeyedValue(changing) != KeyedValue(changing)


def test_functions_that_cannot_be_hashed_are_one_where_they_are_the_same():
    class Adder:
        __hash__ = None

        def __call__(self, x):
            return x + 1

    f = Adder()
    assert UnhashableFunction(f) == UnhashableFunction(f) != UnhashableFunction(Adder())
    assert UnhashableFunction(f)(1) == 2 and UnhashableFunction(f).__name__ == "Adder"
