"""Dtypes against the record of JAX with 64 bits (``tests/golden/promotion.json``), and the rules that are our own."""

import ml_dtypes
import numpy as np
import pytest
from helpers.recorded_promotion import DTYPES, GOLDEN

from handlax import dtypes as public
from handlax.effects.base.config import configure
from handlax.effects.base.errors import BadArgument, DTypeMismatch, IntegerOverflow
from handlax.effects.types import dtype_promotion
from handlax.effects.types import dtypes as dt

KEY = dt.KeyDType("fry")


def test_promotion_of_two_is_one_look_up():
    dt.promote(dt.float32, False, dt.int32, True)
    before = dtype_promotion._PAIRS.info()
    dt.promote(dt.float32, False, dt.int32, True)
    assert dtype_promotion._PAIRS.info() == before


def test_subdtypes_are_jax_s():
    for name, above in GOLDEN["subdtype"].items():
        assert [b for b in GOLDEN["abstract"] if dt.issubdtype(name, getattr(np, b))] == above, name


def test_the_public_bfloat16_is_the_type_of_its_scalars():
    assert isinstance(public.bfloat16(1), np.generic) and np.dtype(public.bfloat16) == dt.bfloat16


def test_without_a_dtype_data_have_the_default_of_floats():
    for enable_x64, default in ((None, dt.float32), (False, dt.float32), (True, dt.float64)):
        with configure(enable_x64=enable_x64):
            assert dt.canonicalize_dtype(None) == default
    with configure(default_float="float64"):
        assert dt.canonicalize_dtype(None) == dt.float64
    for refuses in (lambda: dt.result_type(None, 1), lambda: dt.dtype_of(None), lambda: dt.canonical(None)):
        with pytest.raises(DTypeMismatch, match="a dtype is needed"):
            refuses()


def test_subdtypes_of_classes_and_extended_dtypes():
    assert dt.issubdtype(np.floating, np.inexact)
    assert not dt.issubdtype(np.floating, dt.float32)
    assert not dt.issubdtype(np.inexact, np.floating)
    assert dt.issubdtype(dt.bfloat16, ml_dtypes.bfloat16)
    assert not dt.issubdtype(dt.bfloat16, ml_dtypes.float8_e5m2)
    assert dt.issubdtype("float64", float)
    assert not dt.issubdtype("float32", float)
    assert dt.issubdtype(KEY, dt.prng_key)
    assert dt.issubdtype(KEY, dt.extended)
    assert dt.issubdtype(dt.prng_key, dt.extended)
    assert not dt.issubdtype(KEY, np.number)
    assert not dt.issubdtype(dt.uint32, dt.extended)
    assert dt.issubdtype(dt.float0, np.void)
    assert not dt.issubdtype(dt.float0, np.number)


def test_kinds_of_dtypes_are_jax_s():
    for name, kinds in GOLDEN["isdtype"].items():
        assert [k for k in GOLDEN["kinds"] if dt.isdtype(name, k)] == kinds, name
    assert dt.isdtype("float32", ("float64", np.float32))
    assert not dt.isdtype(KEY, "numeric")
    with pytest.raises(DTypeMismatch, match="foo"):
        dt.isdtype("float32", "foo")


def test_casts_are_jax_s():
    for casting, table in GOLDEN["can_cast"].items():
        for a, allowed in zip(DTYPES, table, strict=True):
            assert [b for b in DTYPES if dt.can_cast(a, b, casting)] == allowed, (a, casting)
    assert dt.can_cast(KEY, KEY)
    assert not dt.can_cast(KEY, "uint32", "unsafe")
    with pytest.raises(BadArgument, match="sometimes"):
        dt.can_cast("int8", "int16", "sometimes")


def test_limits_are_jax_s():
    for name, expected in GOLDEN["limits"].items():
        if dt.is_integer(dt.canonical(name)):
            info = dt.iinfo(name)
            found = [int(info.min), int(info.max), info.bits]
        else:
            info = dt.finfo(name)
            found = [*(repr(float(x)) for x in (info.min, info.max, info.eps, info.tiny)), info.bits]
        assert found == expected, name
    assert dt.iinfo(3).dtype == dt.int32
    with pytest.raises(DTypeMismatch, match="iinfo"):
        dt.iinfo("bool")
    assert (dt.finfo(float).bits, dt.finfo(complex).bits, dt.iinfo(int).bits) == (64, 64, 64)
    with pytest.raises(DTypeMismatch, match="finfo") as caught:
        dt.finfo("int32")
    assert isinstance(caught.value, ValueError)  # as NumPy's


def test_inexact_real_and_complex_counterparts():
    for name, inexact in GOLDEN["inexact"].items():
        assert dt.to_inexact(dt.canonical(name)).name == inexact
    assert [dt.to_real(d) for d in (dt.complex64, dt.complex128, dt.bfloat16)] == [dt.float32, dt.float64, dt.bfloat16]
    wide = (dt.float16, dt.float32, dt.int64, dt.float64, dt.complex64)
    assert [dt.to_complex(d).name for d in wide] == ["complex64", "complex64", "complex128", "complex128", "complex64"]


def test_bits_and_python_classes_of_dtypes():
    assert [dt.itemsize_bits(n) for n in ("int4", "uint2", "float4_e2m1fn", "bool", "complex64")] == [4, 2, 4, 8, 64]
    assert dt.itemsize_bits(KEY) == 64
    held = (True, np.int8(1), "bfloat16", np.zeros(1, "complex64"))
    assert [dt.scalar_type_of(x) for x in held] == [bool, int, float, complex]
    with pytest.raises(DTypeMismatch, match="float0"):
        dt.scalar_type_of(dt.float0)


def test_tangents_are_float0_but_of_inexact_dtypes():
    assert [dt.tangent_dtype(d) for d in (dt.bool_, dt.int4, dt.uint64, dt.float0, KEY)] == [dt.float0] * 5
    for d in dt.ANY_INEXACT:
        assert dt.tangent_dtype(d) is d


@pytest.mark.parametrize(
    ("named", "dtype"),
    [
        (np.float32, "float32"), ("f8", "float64"), (">i4", "int32"), (np.dtype(">c16"), "complex128"),
        ("bfloat16", "bfloat16"), (ml_dtypes.int4, "int4"), (bool, "bool"), (int, "int32"),
        (float, "float32"), (complex, "complex64"),
        ("int", "int32"), (np.longlong, "int64"), (np.zeros(2, ">f2"), "float16"), ("uint64", "uint64"),
    ],
)
def test_canonical_names_one_native_dtype(named, dtype):
    found = dt.canonical(named)
    assert found == np.dtype(dtype)
    assert found.isnative
    assert found in dt.EVERY


@pytest.mark.parametrize("bad", [None, object, "U3", "M8[s]", np.longdouble, "nonesuch", [("a", "f4")], 3, np.void])
def test_canonical_refuses_what_arrays_cannot_hold(bad):
    with pytest.raises(DTypeMismatch):
        dt.canonical(bad)


def test_canonical_keeps_float0_and_extended_dtypes():
    assert dt.canonical(dt.float0) is dt.float0
    assert dt.canonical(np.zeros(2, dt.float0)) is dt.float0
    assert dt.canonical(KEY) is KEY


@pytest.mark.parametrize(
    ("value", "dtype", "weak"),
    [
        (True, "bool", False), (np.True_, "bool", False), (3, "int32", True), (3.0, "float32", True),
        (3j, "complex64", True), (np.int64(3), "int32", True), (np.longlong(3), "int32", True),
        (np.sqrt(64), "float32", True),
        (np.complex128(3), "complex64", True), (np.float32(3), "float32", False), (np.float16(3), "float16", False),
        (np.int8(3), "int8", False), (np.uint64(2**63), "uint64", False), (ml_dtypes.bfloat16(3), "bfloat16", False),
        (2**31 - 1, "int32", True), (-(2**31), "int32", True),
    ],
)
def test_scalars_have_the_dtype_of_the_table(value, dtype, weak):
    assert dt.scalar_type(value) == (np.dtype(dtype), weak)
    assert dt.result_type(value, return_weak_type_flag=True) == (np.dtype(dtype), weak)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, np.int64(2**40)])
def test_an_integer_beyond_its_dtype_is_refused_unless_a_wide_one_is_named(value):
    with pytest.raises(IntegerOverflow, match=r"i32[\s\S]*hint"):
        dt.scalar_type(value)
    with pytest.raises(OverflowError):
        dt.scalar_type(value, "int16")
    assert dt.scalar_type(value, "int64") == (dt.int64, False)
    assert dt.scalar_type(value, "float32") == (dt.float32, False)
    assert dt.result_type(np.zeros(2, "int64"), value) == dt.int64
    with configure(default_int="int64"):
        assert dt.scalar_type(value) == (dt.int64, True)


@pytest.mark.parametrize("bad", ["3", None, np.zeros(()), [3], np.datetime64(3, "s")])
def test_what_is_no_scalar_is_refused(bad):
    with pytest.raises(DTypeMismatch):
        dt.scalar_type(bad)


def test_defaults_are_set_in_a_scope():
    assert (dt.default_float(), dt.default_int(), dt.default_complex()) == (dt.float32, dt.int32, dt.complex64)
    with configure(default_float="float64"):
        assert (dt.default_float(), dt.default_complex()) == (dt.float64, dt.complex128)
        assert dt.canonical(float) == dt.float64
        assert dt.scalar_type(np.float64(8.0)) == (dt.float64, True)
    assert dt.canonical(float) == dt.float32


def test_result_type_takes_arrays_dtypes_and_scalars():
    class Weak:
        dtype, weak_type = dt.float32, True

    assert dt.result_type(np.zeros((), "float64"), np.float32(1)) == dt.float64  # a 0-d array is an array
    assert dt.result_type(np.zeros(1, "bfloat16"), np.float64(1), 3) == dt.bfloat16
    assert dt.result_type(Weak(), np.zeros(1, "float16")) == dt.float16
    assert dt.result_type(KEY) == KEY
    with pytest.raises(DTypeMismatch, match="at least one"):
        dt.result_type()


def test_none_is_float64_as_in_numpy():
    assert dt.issubdtype(None, np.floating) and dt.issubdtype(None, np.float64)
    assert not dt.issubdtype(None, np.integer) and not dt.issubdtype(None, dt.prng_key)
