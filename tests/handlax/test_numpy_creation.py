"""Creation agrees with NumPy, but for dtypes, which are JAX's."""

from array import array as python_array
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
import handlax.numpy as hnp
from handlax.testing.strategies import shapes

SIZES = st.integers(0, 6)
OFFSETS = st.integers(-8, 8)
SMALL = st.integers(-20, 20)
DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def same(found, wanted, dtype=None):
    """Assert equal shapes and values, and this dtype where it is named."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert dtype is None or found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@given(st.recursive(st.floats(-9, 9, width=32) | st.integers(-9, 9) | st.booleans(), lambda s: s.map(lambda v: [v, v])))
def test_an_array_of_nested_numbers_has_their_values_and_a_dtype_by_their_kind(nested):
    found = hnp.array(nested)
    wanted = np.array(nested)
    same(found, wanted, {"b": "bool", "i": "int32", "f": "float32"}[wanted.dtype.kind])
    assert found.weak_type == (not isinstance(nested, list) and not isinstance(nested, bool))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_named_dtype_is_kept_and_so_is_that_of_a_numpy_array(dtype):
    dtype = hx.dtypes.canonical(dtype)
    assert hnp.array([0, 1], dtype).dtype == hnp.zeros(2, dtype).dtype == hnp.full((2,), 1, dtype).dtype == dtype
    data = np.arange(2).astype(dtype)
    assert hnp.asarray(data).dtype == dtype and not hnp.asarray(data).weak_type
    assert hnp.zeros_like(hnp.asarray(data)).dtype == dtype


def test_a_change_of_the_numpy_array_is_never_seen():
    data = np.zeros(3, "float32")
    made, again = hnp.asarray(data), hnp.array(data)
    data[0] = 7
    assert made.tolist() == again.tolist() == [0, 0, 0]


def test_lists_of_arrays_are_stacked_and_promoted():
    same(hnp.array([hnp.arange(2), [3.5, 4]]), [[0, 1], [3.5, 4]], "float32")
    same(hx.jit(lambda x: hnp.array([x, 2 * x, 1]))(3.0), [3, 6, 1], "float32")


def test_integers_that_a_dtype_cannot_hold_are_an_error():
    for value, dtype in ((300, "uint8"), ([300], "uint8"), (-1, "uint8"), ([2**40], None), (2**40, None)):
        with pytest.raises(hx.errors.IntegerOverflow):
            hnp.array(value, dtype)
    assert hnp.array([2**40], "int64").tolist() == [2**40]


@pytest.mark.parametrize("value", [None, "text", [1, "a"], [[1], [2, 3]], object()])
def test_what_is_no_array_is_an_error_of_three_lines(value):
    with pytest.raises((hx.errors.NotAnArray, hx.errors.ShapeMismatch)) as caught:
        hnp.array(value)
    assert "  at " in str(caught.value)


@given(SMALL, SMALL, st.integers(-5, 5).filter(bool))
def test_arange_of_integers_agrees_with_numpy(start, stop, step):
    same(hnp.arange(start, stop, step), np.arange(start, stop, step), "int32")
    same(hnp.arange(stop), np.arange(stop), "int32")
    same(hnp.arange(start, stop, step, dtype="float32"), np.arange(start, stop, step), "float32")


@given(st.floats(-4, 4), st.floats(-4, 4), st.floats(0.125, 2))
def test_arange_of_floats_agrees_with_numpy(start, stop, step):
    same(hnp.arange(start, stop, step), np.arange(start, stop, step, dtype="float32"), "float32")


@given(st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 9), st.booleans())
def test_linspace_agrees_with_numpy_and_meets_its_ends(start, stop, num, endpoint):
    found = hnp.linspace(start, stop, num, endpoint=endpoint)
    same(found, np.linspace(start, stop, num, endpoint=endpoint), "float32")
    if num > 1 and endpoint:
        assert np.asarray(found)[[0, -1]].tolist() == [np.float32(start), np.float32(stop)]


@given(st.integers(0, 2), st.integers(1, 5))
def test_linspace_of_arrays_puts_the_numbers_along_the_axis(axis, num):
    a, b = np.arange(6.0, dtype="float32").reshape(2, 3), np.ones(3, "float32")
    same(hnp.linspace(a, b, num, axis=axis), np.linspace(a, b, num, axis=axis), "float32")


def test_logspace_and_geomspace_agree_with_numpy():
    same(hnp.logspace(0, 2, 5), np.logspace(0, 2, 5))
    same(hnp.logspace(0, 2, 5, base=2.0, endpoint=False), np.logspace(0, 2, 5, base=2.0, endpoint=False))
    for ends in ((1, 256), (-1, -8), (256, 1)):
        np.testing.assert_allclose(hnp.geomspace(*ends, 5), np.geomspace(*ends, 5), rtol=1e-5)
        assert [float(hnp.geomspace(*ends, 5)[k]) for k in (0, -1)] == [float(np.float32(end)) for end in ends]


@given(SIZES, SIZES, OFFSETS)
def test_eye_tri_tril_and_triu_agree_with_numpy(n, m, k):
    same(hnp.eye(n, m, k), np.eye(n, m, k), "float32")
    same(hnp.tri(n, m, k), np.tri(n, m, k), "float32")
    x = np.arange(2 * n * m).reshape(2, n, m)
    same(hnp.tril(x, k), np.tril(x, k), "int64")
    same(hnp.triu(x, k), np.triu(x, k), "int64")
    for found, wanted in zip(
        hnp.tril_indices(n, k, m) + hnp.triu_indices(n, k, m), np.tril_indices(n, k, m) + np.triu_indices(n, k, m)
    ):
        same(found, wanted, "int32")


@given(SIZES, SIZES, OFFSETS)
def test_diag_and_diagonal_agree_with_numpy(n, m, k):
    x = np.arange(n * m, dtype="float32").reshape(n, m)
    v = np.arange(n, dtype="float32")
    same(hnp.diag(v, k), np.diag(v, k), "float32")
    if -n <= k <= m:  # NumPy refuses diagonals farther outside
        same(hnp.diag(x, k), np.diag(x, k), "float32")
    same(hnp.diagflat(x, k), np.diagflat(x, k))
    same(hnp.diagonal(np.stack([x, x]), k, 2, 1), np.diagonal(np.stack([x, x]), k, 2, 1))


def test_the_derivative_of_diag_is_diag():
    ct = np.arange(9.0, dtype="float32").reshape(3, 3)
    same(hx.grad(lambda v: (hnp.diag(v) * ct).sum())(np.ones(3, "float32")), np.diag(ct))
    same(hx.grad(lambda x: (hnp.diagonal(x) * 2).sum())(ct), 2 * np.eye(3))


@given(st.lists(SIZES, max_size=3), st.sampled_from(["xy", "ij"]), st.booleans())
def test_meshgrid_agrees_with_numpy(sizes, indexing, sparse):
    xs = [np.arange(n) for n in sizes]
    found = hnp.meshgrid(*xs, indexing=indexing, sparse=sparse)
    for one, other in zip(found, np.meshgrid(*xs, indexing=indexing, sparse=sparse), strict=True):
        same(one, other)


@given(shapes(min_dims=1, min_side=1, max_side=3))
def test_indices_agree_with_numpy(shape):
    same(hnp.indices(shape), np.indices(shape), "int32")
    for one, other in zip(hnp.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True):
        same(one, other)


def test_grids_and_joined_ranges_agree_with_numpy():
    same(hnp.mgrid[0:3, 1:5:2], np.mgrid[0:3, 1:5:2])
    same(hnp.mgrid[0:1:5j], np.mgrid[0:1:5j])
    for one, other in zip(hnp.ogrid[0:3, 1:5:2], np.ogrid[0:3, 1:5:2], strict=True):
        same(one, other)
    same(hnp.r_[1:4, 0, 5:7], np.r_[1:4, 0, 5:7])
    same(hnp.r_["0,2", [1, 2], [3, 4]], np.r_["0,2", [1, 2], [3, 4]])
    same(hnp.r_["0,2,0", [1, 2], [3, 4]], np.r_["0,2,0", [1, 2], [3, 4]])
    same(hnp.c_[1:3, 3:5], np.c_[1:3, 3:5])
    assert hnp.s_[1:2, ...] == np.s_[1:2, ...] and hnp.index_exp[0] == (0,)


@given(SIZES, st.integers(0, 4), st.booleans())
def test_vander_agrees_with_numpy(n, columns, increasing):
    x = np.arange(1, n + 1, dtype="int32")
    same(hnp.vander(x, columns, increasing), np.vander(x, columns, increasing), "int32")


def test_fromfunction_maps_over_every_axis():
    same(hnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int), [[0, 1, 2], [10, 11, 12]], "int32")
    same(hnp.fromfunction(lambda i: 1, (2,)), [1, 1])


@pytest.mark.parametrize("make", [hnp.zeros, hnp.ones, hnp.empty, lambda s: hnp.full(s, 2)])
def test_shapes_are_integers_or_sequences_of_them(make):
    assert make(3).shape == make((3,)).shape == make(np.int64(3)).shape == make(hnp.asarray(3)).shape == (3,)
    assert make([2, np.int8(0)]).shape == (2, 0) and make(()).shape == ()
    with pytest.raises(hx.errors.BadArgument):
        make((-1,))
    with pytest.raises(hx.errors.BadArgument):
        make(2.5)


def test_full_broadcasts_and_converts():
    same(hnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    same(hnp.full_like(np.zeros(2, "int32"), 2.7), [2, 2], "int32")
    assert hnp.full((2,), 1.5).weak_type and not hnp.full((2,), 1.5, "float32").weak_type
    assert hnp.zeros_like(2.0).weak_type


def test_conversion_from_complex_warns_and_keeps_the_real_part():
    with pytest.warns(np.exceptions.ComplexWarning):
        same(hnp.array([1 + 2j]).astype("float32"), [1], "float32")


@pytest.mark.parametrize("make", [hnp.array, hnp.asarray, hnp.sin, hx.jit(lambda x: x), lambda x: hnp.array([x, x])])
def test_a_masked_array_has_no_values_to_take(make):
    with pytest.raises(hx.errors.BadArgument, match="masked"):
        make(np.ma.array([1.0, 2.0], mask=[False, True]))


@pytest.mark.parametrize("f", [lambda x: hnp.asarray(x) * hnp.asarray(x), lambda x: hx.jit(lambda y: y * y)(x)])
def test_a_matrix_is_an_array_without_the_arithmetic_of_matrices(f):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    same(f(x.view(np.matrix)), x * x)
    same(hnp.sum(x.view(np.matrix), 0), x.sum(0))


def test_what_holds_numbers_in_a_buffer_is_an_array():
    numbers = python_array("h", [1, -2, 3])
    same(hnp.array(numbers), [1, -2, 3], "int16")
    same(hnp.asarray(numbers, "float32"), [1, -2, 3], "float32")
    same(hnp.array([numbers, numbers]), [[1, -2, 3]] * 2, "int16")
    same(hnp.array(bytearray(b"ab")), [97, 98], "uint8")
    same(hnp.array(range(3)), [0, 1, 2], "int32")
    same(hnp.array([range(2), range(2, 4)]), [[0, 1], [2, 3]], "int32")


def test_a_vector_is_asked_for_a_number():
    x = hnp.arange(4)
    assert 3 in x and np.int32(0) in x and 7 not in x and 2.5 not in x
    for array, number in ((hnp.array(1), 1), (hnp.ones((2, 2)), 1), (x, np.arange(2))):
        with pytest.raises(hx.errors.ShapeMismatch):
            number in array  # noqa: B015
    for number in ("abc", None):
        with pytest.raises(hx.errors.NotAnArray):
            number in x  # noqa: B015


@pytest.mark.parametrize("k", [-4, -1, 0, 2])
def test_the_number_of_a_diagonal_may_be_unknown(k):
    for f, ours, known in (
        (lambda k: hnp.eye(3, 4, k=k), hnp.eye, np.eye(3, 4, k)),
        (lambda k: hnp.tri(3, 4, k=k), hnp.tri, np.tri(3, 4, k)),
        (lambda k: hnp.tril(hnp.ones((3, 4)), k), hnp.tril, np.tril(np.ones((3, 4)), k)),
        (lambda k: hnp.triu(hnp.ones((3, 4)), k), hnp.triu, np.triu(np.ones((3, 4)), k)),
    ):
        same(hx.jit(f)(k), known)
        same(hx.vmap(f)(hnp.array([k, 0]))[0], known)
        same(f(k), known)
        with pytest.raises(hx.errors.BadArgument, match=f"{ours.__name__}: k must be an integer"):
            f(1.5)


@pytest.mark.parametrize("args", [(5, np.int16), (1, np.float16), (2, "int32")])
def test_the_dtype_asked_for_is_no_promotion(args):
    with hx.configure(numpy_dtype_promotion="strict"):
        same(hnp.linspace(1, args[0], 5, dtype=args[1]), np.linspace(1, args[0], 5).astype(args[1]), args[1])
        assert hnp.pad(np.ones(2, args[1]), 2, mode="linear_ramp", end_values=args[0]).dtype == args[1]


def test_the_numbers_of_a_file_and_of_an_iterable_are_numpys(tmp_path):
    x, file = np.arange(5, dtype="int16"), tmp_path / "numbers"
    x.tofile(file)
    found = hnp.fromfile(file, "int16", count=2, offset=2)
    assert found.tolist() == [1, 2] and found.dtype == "int16"
    file.write_text("1.5, 2.5")
    assert hnp.fromfile(file, sep=",").tolist() == [1.5, 2.5]
    found = hx.jit(lambda x: x + hnp.fromiter(range(3), "float32"))(np.float32(1))
    assert found.tolist() == [1, 2, 3]


@pytest.mark.parametrize("k", [2**31 - 1, 2**31, -(2**31), 2**70])
def test_diagonals_far_beyond_a_matrix(k):
    x = np.ones((2, 3), np.float32)
    assert not hnp.eye(2, 3, k).any() and hnp.tri(2, 3, k).all() == (k > 0)
    assert hnp.tril(x, k).all() == (k > 0) and hnp.triu(x, k).all() == (k < 0)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_linspace_of_whole_ends_is_rounded_once(dtype, jit):
    parts = 49
    f = lambda a, b: hnp.linspace(a, b, parts + 1, dtype=dtype)
    for a, b in ((-5, 44), (-7, 10), (0, 1), (100, -48)):
        exact = np.array([float(Fraction(a) + Fraction(b - a) * i / parts) for i in range(parts + 1)])
        found = (hx.jit(f) if jit else f)(*[hnp.asarray(end, dtype) for end in (a, b)])
        assert np.array_equal(found, exact.astype(hnp.dtype(dtype)))


def test_linspace_does_not_overflow_between_its_ends():
    ends = np.array([-1.7e308, 1.7e308])
    assert hnp.linspace(*ends[:, None], 3)[1].tolist() == [0.0]
    assert hnp.linspace(0.0, np.inf, 3).tolist() == [0.0, np.inf, np.inf]
    same(hnp.linspace(1 + 2j, 3 - 1j, 4), np.linspace(1 + 2j, 3 - 1j, 4), "complex64")


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_whole_numbers_fall_into_their_bins_compiled_too(dtype, rng):
    x = rng.integers(-5, 6, 63).astype(dtype)
    for f in (hnp.histogram, hx.jit(hnp.histogram)):
        for ours, theirs in zip(f(x), np.histogram(x)):
            assert np.array_equal(ours, theirs)


def test_a_grid_of_no_axes_is_empty():
    assert hnp.mgrid[()].shape == (0,) and hnp.mgrid[()].dtype == hnp.int32 and hnp.ogrid[()] == []
