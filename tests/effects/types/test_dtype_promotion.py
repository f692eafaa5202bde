"""Promotion against the record of JAX with 64 bits (``golden/promotion.json``), and the rules that are our own."""

import itertools

import numpy as np
import pytest
from helpers.recorded_promotion import DTYPES, GOLDEN, NAMES

from handlax import numpy as hnp
from handlax.effects.base.config import configure
from handlax.effects.base.errors import DTypeMismatch
from handlax.effects.operations.manipulation import operand_promotion
from handlax.effects.types import dtype_promotion
from handlax.effects.types import dtypes as dt

WEAK_64 = {"int": "int64", "float": "float64", "complex": "complex128"}
WEAK_32 = {"int": "int32", "float": "float32", "complex": "complex64"}
KEY = dt.KeyDType("fry")


def operand(name, weak):
    return (dt.canonical(weak[name]), True) if name in weak else (dt.canonical(name), False)


def promoted(weak, *names):
    (a, b) = (operand(n, weak) for n in names)
    try:
        found, flag = dt.promote(*a, *b)
    except DTypeMismatch:
        return None
    return [found.name, flag]


def refused_or(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except DTypeMismatch:
        return None


@pytest.mark.parametrize(("mode", "table"), [("standard", "pairs"), ("strict", "strict")])
def test_promotion_of_two_is_jax_s_with_64_bits(mode, table):
    with configure(numpy_dtype_promotion=mode):
        found = [[promoted(WEAK_64, a, b) for b in NAMES] for a in NAMES]
    assert found == GOLDEN[table]


@pytest.mark.parametrize(("mode", "table"), [("standard", "pairs"), ("strict", "strict")])
def test_narrow_weak_operands_change_only_the_width_of_weak_results(mode, table):
    with configure(numpy_dtype_promotion=mode):
        for (i, a), (j, b) in itertools.product(enumerate(NAMES), repeat=2):
            expected = GOLDEN[table][i][j]
            if expected is not None and expected[1] and not {"int64", "uint64"} & {a, b} and {a, b} & {*WEAK_32}:
                expected = [{v: WEAK_32[k] for k, v in WEAK_64.items()}[expected[0]], True]
            assert promoted(WEAK_32, a, b) == expected, (a, b)


def test_result_type_of_three_is_jax_s_with_64_bit_defaults():
    kinds = {"int": int, "float": float, "complex": complex}
    with configure(default_float="float64", default_int="int64"):
        for *names, expected in GOLDEN["triples"]:
            found = refused_or(dt.result_type, *(kinds.get(n, n) for n in names), return_weak_type_flag=True)
            assert (found and [found[0].name, found[1]]) == expected, names


def test_promotion_is_commutative_and_idempotent():
    pairs = [(dt.canonical(n), w) for n in DTYPES for w in (False, True)]
    for a, b in itertools.product(pairs, repeat=2):
        assert refused_or(dt.promote, *a, *b) == refused_or(dt.promote, *b, *a), (a, b)
    for d, w in pairs:
        assert dt.promote(d, w, d, w) == (d, w and d != dt.bool_)


def test_64_bit_integers_meet_weak_floats_in_64_bits():
    assert dt.result_type(np.zeros(2, "int64"), 2.0) == dt.float64
    assert dt.result_type(np.zeros(2, "uint64"), 2j) == dt.complex128
    assert dt.result_type(np.zeros(2, "int32"), 2.0) == dt.float32
    assert dt.result_type(np.zeros(2, "float32"), np.zeros(2, "int64")) == dt.float32


def test_a_promotion_without_a_bound_names_the_dtypes_and_the_remedy():
    with pytest.raises(DTypeMismatch, match=r"got f32 and f8_e5m2[\s\S]*hint: .*astype"):
        dt.promote_types("float8_e5m2", "float32")
    with configure(numpy_dtype_promotion="strict"), pytest.raises(DTypeMismatch, match="strict"):
        dt.promote_types("float16", "float32")


def test_keys_and_float0_promote_with_themselves_only():
    assert dt.promote(KEY, False, KEY, False) == (KEY, False)
    assert dt.promote(dt.float0, False, dt.float0, False) == (dt.float0, False)
    for other in (dt.int32, dt.float0, dt.KeyDType("rbg")):
        with pytest.raises(DTypeMismatch, match="key<fry>"):
            dt.promote(KEY, False, other, False)
    with pytest.raises(DTypeMismatch, match="float0"):
        dt.promote(dt.float0, False, dt.float32, True)


def test_two_types_are_promoted_once(monkeypatch):
    pairs = [(dt.int32, False, dt.float32, True), (dt.int32, True, dt.float32, True), (dt.int32, False, dt.int8, True)]
    found = [dt.promote(*pair) for pair in pairs]
    monkeypatch.setattr(dtype_promotion, "promote_all", None)
    assert [dt.promote(*pair) for pair in pairs] == found


@pytest.mark.parametrize(("enable_x64", "default_float"), [
    (None, "float32"), (None, "float64"), (False, "float32"), (True, "float32"), (True, "float64"),
])
def test_what_two_operands_need_is_known_by_their_types(enable_x64, default_float, monkeypatch):
    monkeypatch.setattr(operand_promotion, "promote", None)
    with configure(default_float=default_float, enable_x64=enable_x64):
        x, y = operand_promotion.together("add", hnp.ones(3, "int8"), hnp.ones((2, 1), "float32"))
    assert x.dtype == y.dtype == "float32"
