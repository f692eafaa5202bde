"""Families of dtypes: predicates, short names, and key dtypes as values."""

import pickle

import numpy as np
import pytest
from helpers.recorded_promotion import DTYPES, GOLDEN

from handlax.effects.base.errors import BadArgument, DTypeMismatch
from handlax.effects.types import dtypes as dt

KEY = dt.KeyDType("fry")


def test_short_names_are_jax_s_and_invert():
    for name, short in GOLDEN["short"].items():
        assert dt.short_name(dt.canonical(name)) == short
        assert dt.from_short_name(short) == dt.canonical(name)
    for short in ("float0", "key<fry>", "key<rbg>", "key<urbg>"):
        assert dt.short_name(dt.from_short_name(short)) == short
    with pytest.raises(DTypeMismatch, match="f99"):
        dt.from_short_name("f99")


def test_predicates_partition_the_dtypes():
    for d in dt.EVERY:
        assert sum((dt.is_bool(d), dt.is_signed(d), dt.is_unsigned(d), dt.is_floating(d), dt.is_complex(d))) == 1
        assert dt.is_integer(d) == (dt.is_signed(d) or dt.is_unsigned(d))
        assert dt.is_inexact(d) == (dt.is_floating(d) or dt.is_complex(d))
    assert {d.name for d in dt.EVERY} == set(DTYPES)
    assert dt.EVERY == dt.ANY | dt.SMALL
    assert not any(p(x) for x in (KEY, dt.float0) for p in (dt.is_bool, dt.is_integer, dt.is_inexact))


def test_key_dtypes_are_values_as_jax_prints_them():
    for impl, (name, itemsize) in GOLDEN["keys"].items():
        key = dt.KeyDType(impl)
        assert (str(key), repr(key), key.name, key.itemsize) == (name, name, name, itemsize)
        assert pickle.loads(pickle.dumps(key)) == key
        assert dt.canonical(name) == key
    assert {dt.KeyDType("fry"), dt.KeyDType("threefry2x32"), dt.KeyDType(dt.THREEFRY)} == {KEY}
    assert dt.KeyDType("rbg") != KEY
    assert np.dtype("uint32") != KEY
    assert np.dtype("uint32") != KEY
    assert dt.is_extended(KEY)
    with pytest.raises(AttributeError):
        KEY.impl = dt.RBG
    with pytest.raises(BadArgument, match="nonesuch"):
        dt.KeyDType("nonesuch")
