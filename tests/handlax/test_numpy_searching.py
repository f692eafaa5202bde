"""Sorting, searching and sets give NumPy's answers; with ``size`` they do so under jit."""

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp

SETS = ["union1d", "intersect1d", "setdiff1d", "setxor1d"]


def same(found, wanted):
    np.testing.assert_array_equal(np.asarray(found), wanted)


def test_orders(rng):
    x, a = rng.normal(size=(3, 6)), rng.integers(0, 5, 20)
    same(hnp.sort(x, 0), np.sort(x, 0))
    same(hnp.sort(x, None, descending=True), -np.sort(-x, None))
    same(hnp.argsort(a), np.argsort(a, kind="stable"))
    same(hnp.argsort(a, descending=True), np.argsort(-a, kind="stable"))
    same(hnp.lexsort((a, a[::-1])), np.lexsort((a, a[::-1])))
    assert np.isnan(np.asarray(hnp.sort(np.array([1.0, np.nan, 0.0])))[-1])


@pytest.mark.parametrize("size", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_order_for_short_and_long_arrays(size, side, rng):
    keys = np.sort(rng.integers(0, size, size)).astype("float32")
    wanted = np.concatenate([keys, keys + 0.5, [-1.0, size + 1.0, np.nan]]).astype("float32")
    same(hnp.searchsorted(keys, wanted, side), np.searchsorted(keys, wanted, side))
    same(hx.jit(lambda k, v: hnp.searchsorted(k, v, side))(keys, wanted), np.searchsorted(keys, wanted, side))


def test_bins_may_rise_or_fall(rng):
    edges = np.sort(rng.normal(size=9))
    x = np.concatenate([rng.normal(size=4), edges])
    for right in (False, True):
        same(hnp.digitize(x, edges, right), np.digitize(x, edges, right))
        same(hnp.digitize(x, edges[::-1], right), np.digitize(x, edges[::-1], right))
        same(
            hx.jit(lambda x, e, right=right: hnp.digitize(x, e, right))(x, edges[::-1]),
            np.digitize(x, edges[::-1], right),
        )


@pytest.mark.parametrize("size", [0, 5, 100])
def test_membership_for_few_and_many(size, rng):
    x, tests = rng.integers(0, 50, 30), rng.integers(0, 50, size)
    same(hnp.isin(x, tests), np.isin(x, tests))
    same(hnp.isin(x, tests, invert=True), np.isin(x, tests, invert=True))


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_distinct_elements_with_all_that_goes_with_them(axis, rng):
    x = rng.integers(0, 2, (7, 2, 3))
    for ours, theirs in zip(hnp.unique(x, True, True, True, axis), np.unique(x, True, True, True, axis), strict=True):
        same(np.asarray(ours).ravel(), np.asarray(theirs).ravel())


def test_distinct_elements_of_a_given_number_under_jit(rng):
    x = rng.integers(0, 6, 20)
    wanted = np.unique(x, True, True, True)
    n = len(wanted[0])
    values, index, inverse, counts = hx.jit(lambda x: hnp.unique(x, True, True, True, size=9, fill_value=-7))(x)
    same(np.asarray(values)[:n], wanted[0])
    same(np.asarray(values)[n:], -7)
    same(np.asarray(index)[:n], wanted[1])
    same(inverse, wanted[2])
    same(counts, [*wanted[3], *[0] * (9 - n)])
    with pytest.raises(hx.errors.ConcretizationError, match="size=n"):
        hx.jit(hnp.unique)(x)


@pytest.mark.each_choice
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 6, 9])
def test_the_first_distinct_elements_with_their_counts(size, axis):
    x = np.array([3.0, 1, np.nan, 2, np.nan, 3, 3])
    x = x if axis is None else np.stack([x, x], 1)
    wanted = np.unique(x, return_counts=True, axis=axis)[1] if axis is None else np.array([1, 1, 3, 2])
    for f in (hnp.unique, hx.jit(hnp.unique, static_argnames=("return_counts", "axis", "size"))):
        _, counts = f(x, return_counts=True, axis=axis, size=size)
        same(counts, [*wanted[:size], *[0] * (size - len(wanted))])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64"])
@pytest.mark.parametrize("axis", [None, 0])
def test_nothing_has_no_distinct_elements_but_those_that_fill_up(dtype, axis):
    x = np.zeros((0,) if axis is None else (0, 2), dtype)
    for size in (None, 0):
        same(hnp.unique(x, axis=axis, size=size), np.unique(x, axis=axis))
    for f in (hnp.unique, hx.jit(hnp.unique, static_argnames=("axis", "size", "return_counts"))):
        values, counts = f(x, return_counts=True, axis=axis, size=3, fill_value=1)
        same(values, np.ones((3, *x.shape[1:]), dtype))
        assert counts.shape == (0,)
        with pytest.raises(hx.errors.BadArgument, match="of no elements there is none to fill size=3"):
            f(x, axis=axis, size=3)


@pytest.mark.parametrize("options", [{}, {"size": 4}])
def test_complex_numbers_that_are_nan_in_a_part_are_one(options):
    x = np.array([complex(1, np.nan), complex(np.inf, 1), complex(np.nan, 0), 2, complex(0, np.nan)], "complex64")
    values, inverse, counts = hnp.unique(x, return_inverse=True, return_counts=True, **options)
    same(np.asarray(values)[:2], [2, complex(np.inf, 1)])
    assert np.isnan(np.asarray(values)[2]) and np.asarray(counts)[:3].tolist() == [1, 1, 3]
    same(inverse, [2, 1, 2, 0, 2])


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_of_complex_numbers_with_nan_are_in_the_order_of_sort(size, side):
    parts = (0.0, 1.0, np.nan)
    z = hnp.sort(np.tile([complex(a, b) for a in parts for b in parts], size**2))  # below and above 64 keys
    rows = np.asarray(z).reshape(-1, size**2)
    wanted = np.arange(len(rows)) * size**2 + (0 if side == "left" else size**2)
    for f in (hnp.searchsorted, hx.jit(hnp.searchsorted, static_argnames="side")):
        same(f(z, rows[:, 0], side=side), wanted)


@pytest.mark.parametrize("mode", [None, True, False])
def test_places_are_32_bit_integers_whatever_the_default_is(mode):
    with hx.configure(enable_x64=mode):
        for n in (3, 300):
            for f in (hnp.searchsorted, hnp.digitize):
                assert hx.eval_shape(f, np.arange(n, dtype="float32"), np.ones(4, "float32")).dtype == "int32"


@pytest.mark.parametrize("name", SETS)
def test_sets_are_those_of_numpy_and_fill_up_under_jit(name, rng):
    a, b = rng.integers(0, 6, 20), rng.integers(3, 9, 15)
    wanted = getattr(np, name)(a, b)
    same(getattr(hnp, name)(a, b), wanted)
    filled = hx.jit(lambda a, b: getattr(hnp, name)(a, b, size=12, fill_value=-1))(a, b)
    same(filled, [*wanted, *[-1] * (12 - len(wanted))])


def test_where_the_elements_of_an_intersection_stand(rng):
    a, b = rng.integers(0, 6, 20), rng.integers(3, 9, 15)
    for ours, theirs in zip(
        hnp.intersect1d(a, b, return_indices=True), np.intersect1d(a, b, return_indices=True), strict=True
    ):
        same(ours, theirs)


def test_dtype_names_make_arrays_and_equal_dtypes():
    assert hnp.float32(3).dtype == np.float32 == hnp.float32
    assert np.dtype(hnp.bfloat16).name == "bfloat16"
    assert hnp.zeros(2, hnp.int8).dtype == hnp.int8 != hnp.int16
    assert hnp.issubdtype(hnp.bfloat16, hnp.floating)


@pytest.mark.parametrize(
    ("name", "narrow", "wide"),
    [
        ("int_", "int32", "int64"),
        ("uint", "uint32", "uint64"),
        ("float_", "float32", "float64"),
        ("complex_", "complex64", "complex128"),
    ],
)
def test_the_default_types_are_types_of_their_own_whose_dtype_is_a_setting(name, narrow, wide):
    kind = getattr(hnp, name)
    key = {kind: name}
    for dtype, settings in ((narrow, {}), (wide, {"default_int": "int64", "default_float": "float64"}), (narrow, {})):
        with hx.configure(**settings):
            assert hnp.zeros(2, kind).dtype == hnp.dtype(kind) == kind(3).dtype == np.dtype(dtype) == kind
            assert key[kind] == name and kind != np.dtype(dtype).type and kind != getattr(hnp, dtype)


def test_files_and_bits_come_back(tmp_path, rng):
    x = rng.normal(size=(3, 4))
    hnp.save(tmp_path / "x.npy", hnp.asarray(x))
    same(hnp.load(tmp_path / "x.npy"), x)
    bits = rng.random((3, 11)) > 0.5
    for order in ("big", "little"):
        packed = hnp.packbits(bits, 1, order)
        same(packed, np.packbits(bits, 1, order))
        same(hnp.unpackbits(packed, 1, 11, order), bits)


def test_a_file_of_elements_without_a_dtype_is_of_bfloat16_or_refused(tmp_path):
    x = hnp.asarray([[1.5, -2.0]], "bfloat16")
    hnp.save(tmp_path / "x.npy", x)
    again = hnp.load(tmp_path / "x.npy")
    assert again.dtype == x.dtype and (again == x).all()
    np.save(tmp_path / "x.npy", np.zeros(2, "V3"))
    with pytest.raises(hx.errors.BadArgument, match="raw bytes of width 3"):
        hnp.load(tmp_path / "x.npy")


def test_a_difference_of_sets_has_the_dtype_of_the_first():
    made = hnp.setdiff1d(np.array([3, 1], "int16"), np.array([1.0, 2.0], "float32"))
    assert made.dtype == "int16"
    assert made.tolist() == [3]


def test_nothing_is_taken_from_an_empty_axis():
    with pytest.raises(hx.errors.BadIndex, match="axis of size 0"):
        hnp.take(hnp.zeros((0, 3)), 0, axis=0)
    assert hnp.take(hnp.zeros((0, 3)), hnp.zeros((0,), int), axis=0).shape == (0, 3)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32", "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k_takes_the_outermost_elements_and_of_equal_ones_the_first(dtype, axis, mode):
    x = np.random.default_rng(0).integers(0, 5, (6, 7)).astype("float32") - (0 if dtype == "uint8" else 2)
    sign = -1 if mode == "largest" else 1
    want = np.take(np.argsort(sign * x, axis, kind="stable"), [0, 1, 2], axis)
    values, indices = hx.jit(lambda x: hnp.top_k(x, 3, axis=axis, mode=mode))(hnp.asarray(x, dtype))
    assert values.dtype == hnp.asarray(x, dtype).dtype and indices.dtype == "int32"
    np.testing.assert_array_equal(np.asarray(indices), want)
    np.testing.assert_array_equal(np.asarray(values).astype("float32"), np.take_along_axis(x, want, axis))


def test_top_k_counts_nan_as_the_largest():
    x = hnp.array([3.0, 1.0, np.nan, 2.0])
    assert [int(i) for i in hnp.top_k(x, 2)[1]] == [2, 0]
    assert [int(i) for i in hnp.top_k(x, 4, mode="smallest")[1]] == [1, 3, 0, 2]


@pytest.mark.parametrize(("k", "options"), [(5, {}), (-1, {}), (1, {"mode": "least"})])
def test_top_k_refuses_what_it_cannot_take(k, options):
    with pytest.raises(ValueError, match="top_k"):
        hnp.top_k(hnp.ones(4), k, **options)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0], [2.0, 2.0, 1.0], [1.0, 1.0]])
def test_bins_rise_or_fall(bins, right):
    x = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
    expected = np.digitize(x, bins, right)
    assert np.array_equal(hnp.digitize(x, np.array(bins), right), expected)
    assert np.array_equal(hx.jit(lambda x, bins: hnp.digitize(x, bins, right))(x, np.array(bins)), expected)


@pytest.mark.each_choice
@pytest.mark.parametrize("size", range(7))
@pytest.mark.parametrize("x", [[1, 2, 3, 3, 4], [3.0, np.nan, 1.0, np.nan, 3.0, 3.0], [[1, 2], [1, 2], [0, 5]]])
def test_counts_of_the_distinct_values_that_a_size_keeps(x, size):
    axis = 0 if np.ndim(x) == 2 else None
    values, counts = np.unique(x, return_counts=True, axis=axis)
    expected = [*counts[:size], *[0] * (size - len(values))]
    f = lambda x: hnp.unique(x, return_counts=True, axis=axis, size=size)[1]
    assert np.array_equal(f(hnp.array(x)), expected)
    assert np.array_equal(hx.jit(f)(hnp.array(x)), expected)


def test_indices_of_the_padding_are_the_size_of_the_array():
    a, b = np.array([3, 1, 2, 5]), np.array([2, 5, 7])
    values, i, j = hnp.intersect1d(a, b, return_indices=True, size=4, fill_value=-1)
    assert (values.tolist(), i.tolist(), j.tolist()) == ([2, 5, -1, -1], [2, 3, 4, 4], [0, 1, 3, 3])
    assert hnp.intersect1d(a, b, return_indices=True, size=1)[1].tolist() == [2]


@pytest.mark.parametrize("f", [hnp.isin, lambda x, keys: hnp.searchsorted(keys, x)])
def test_few_keys_are_compared_with_whole_arrays(f):
    program = hx.make_program(f)(hnp.ones((5, 7)), hnp.arange(3.0))
    (fold,) = [op for op in program.ops if op.name.startswith("reduce")]
    assert fold.axes == (0,)  # a fold of a short last axis takes NumPy a loop for each element
