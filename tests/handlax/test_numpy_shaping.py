"""Functions that move elements agree with NumPy on shapes and values, eager and compiled, mapped and differentiated."""

import numpy as np
import pytest
from helpers.compiled_at_once import also_compiled, later
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
import handlax.numpy as hnp
from handlax.testing.strategies import broadcastable_shapes, shapes

SHAPES = shapes(max_dims=4)
RANKED = shapes(min_dims=1, max_dims=4, min_side=1)


def counted(shape, dtype="float32"):
    """An array whose elements are all different."""
    return np.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype=dtype).reshape(shape)


def agrees(f, g, *xs):
    """Assert that ``f`` gives what NumPy's ``g`` gives; ``also_compiled`` asserts it of the compiled function."""
    wanted = g(*xs)
    same(f(*xs), wanted)
    later(lambda found: same(found, wanted), f, *xs)


def same(found, wanted):
    left, right = (v if isinstance(v, (list, tuple)) else [v] for v in (found, wanted))
    assert len(left) == len(right)
    for one, other in zip(left, right):
        np.testing.assert_array_equal(np.asarray(one), other)
        assert one.shape == np.shape(other)
        assert one.dtype == np.asarray(other).dtype


def moves(f, x):
    """Assert that ``f`` permutes or repeats elements: its derivative counts how often each one stands in the result."""
    result = np.asarray(f(x)).ravel().tolist()
    times = np.array([result.count(v) for v in x.ravel()], "float32").reshape(x.shape)
    np.testing.assert_array_equal(np.asarray(hx.grad(lambda x: f(x).sum())(x)), times)
    lanes = np.stack([x, 2 * x])
    np.testing.assert_array_equal(np.asarray(hx.vmap(f)(lanes)), np.stack([np.asarray(f(lane)) for lane in lanes]))


@also_compiled
@given(SHAPES, st.data())
def test_reshape_ravel_and_flatten(shape, data):
    x = counted(shape)
    order = data.draw(st.sampled_from("CF"))
    factors = [n for n in range(1, x.size + 1) if x.size and not x.size % n]
    sizes = (data.draw(st.sampled_from(factors)), -1) if factors else (0, 3)
    agrees(lambda x: hnp.reshape(x, sizes, order), lambda x: np.reshape(x, sizes, order), x)
    agrees(lambda x: hnp.ravel(x, order), lambda x: np.ravel(x, order), x)
    agrees(lambda x: x.reshape(*sizes, order=order), lambda x: np.reshape(x, sizes, order), hnp.asarray(x))


def test_a_reshape_that_does_not_fit_is_an_error():
    for sizes in ((4,), (-1, 4), (-1, -1), (2, -3)):
        with pytest.raises((hx.errors.ShapeMismatch, hx.errors.BadArgument)):
            hnp.reshape(np.zeros(6), sizes)


@also_compiled
@given(RANKED, st.data())
def test_permutations_of_axes(shape, data):
    x = counted(shape)
    rank = len(shape)
    order = data.draw(st.permutations(range(rank)))
    a, b = data.draw(st.integers(-rank, rank - 1)), data.draw(st.integers(-rank, rank - 1))
    agrees(lambda x: hnp.transpose(x, order), lambda x: np.transpose(x, order), x)
    agrees(lambda x: hnp.transpose(x), lambda x: np.transpose(x), x)
    agrees(lambda x: hnp.swapaxes(x, a, b), lambda x: np.swapaxes(x, a, b), x)
    agrees(lambda x: hnp.moveaxis(x, a, b), lambda x: np.moveaxis(x, a, b), x)
    agrees(lambda x: hnp.moveaxis(x, order, range(rank)), lambda x: np.moveaxis(x, order, range(rank)), x)
    agrees(lambda x: hnp.rollaxis(x, a, abs(b)), lambda x: np.rollaxis(x, a, abs(b)), x)
    if rank > 1:
        agrees(hnp.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), x)
    moves(lambda x: hnp.transpose(x, order), x)


@also_compiled
@given(SHAPES, st.data())
def test_axes_of_size_one(shape, data):
    x = counted(shape)
    new = data.draw(st.lists(st.integers(0, len(shape)), unique=True, max_size=2))
    wide = np.expand_dims(x, tuple(new))
    agrees(lambda x: hnp.expand_dims(x, tuple(new)), lambda x: np.expand_dims(x, tuple(new)), x)
    agrees(lambda x: hnp.squeeze(x, tuple(new)), lambda x: np.squeeze(x, tuple(new)), wide)
    agrees(hnp.squeeze, np.squeeze, wide)
    agrees(hnp.atleast_1d, np.atleast_1d, x)
    agrees(hnp.atleast_2d, np.atleast_2d, x)
    agrees(hnp.atleast_3d, np.atleast_3d, x)


@also_compiled
@given(broadcastable_shapes())
def test_broadcasting(drawn):
    x, y = map(counted, drawn)
    shape = np.broadcast_shapes(*drawn)
    assert hnp.broadcast_shapes(*drawn) == shape
    agrees(lambda x: hnp.broadcast_to(x, shape), lambda x: np.broadcast_to(x, shape), x)
    agrees(hnp.broadcast_arrays, lambda x, y: tuple(np.broadcast_arrays(x, y)), x, y)
    with pytest.raises(hx.errors.ShapeMismatch):
        hnp.broadcast_to(np.zeros(2), (3,))


@also_compiled
@given(RANKED, st.integers(1, 3), st.data())
def test_joining(shape, count, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    xs = [counted(shape) * k for k in range(count)]
    agrees(lambda *xs: hnp.concatenate(xs, axis), lambda *xs: np.concatenate(xs, axis), *xs)
    agrees(lambda *xs: hnp.concatenate(xs, None), lambda *xs: np.concatenate(xs, None), *xs)
    agrees(lambda *xs: hnp.stack(xs, axis), lambda *xs: np.stack(xs, axis), *xs)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        agrees(lambda *xs, name=name: getattr(hnp, name)(xs), lambda *xs: getattr(np, name)(xs), *xs)
    whole = np.stack(xs)
    agrees(hnp.concatenate, np.concatenate, whole)
    agrees(lambda x: hnp.unstack(x, axis=axis), lambda x: tuple(np.moveaxis(x, axis, 0)), xs[0])
    agrees(lambda x, y: hnp.append(x, y, axis), lambda x, y: np.append(x, y, axis), xs[0], xs[0])


def test_joining_promotes_and_refuses_what_does_not_fit():
    assert hnp.concatenate([np.zeros(2, "int8"), np.zeros(2, "float16")]).dtype == np.float16
    assert hnp.stack([1.0, 2]).weak_type and hnp.concatenate([np.zeros(1, "int32")], dtype="int8").dtype == np.int8
    for bad in ([], [np.zeros(2), np.zeros((2, 2))], [np.float32(1)]):
        with pytest.raises((hx.errors.ShapeMismatch, hx.errors.BadArgument)):
            hnp.concatenate(bad)
    with pytest.raises(hx.errors.ShapeMismatch):
        hnp.stack([np.zeros(2), np.zeros(3)])


def test_blocks():
    a, b = counted((2, 2)), counted((2, 1))
    for nested in ([[a, b]], [a, b], [[a, a], [a, a]], [1.0, 2.0], [[b, a], [a, b]]):
        np.testing.assert_array_equal(np.asarray(hnp.block(nested)), np.block(nested))
    with pytest.raises(hx.errors.ShapeMismatch):
        hnp.block([[a], b])


@also_compiled
@given(st.integers(1, 9), st.integers(1, 4), st.lists(st.integers(-9, 9), max_size=3))
def test_splitting(n, count, cuts):
    x = counted((n, 2))
    agrees(lambda x: hnp.array_split(x, count), lambda x: np.array_split(x, count), x)
    cuts = sorted(min(abs(c), n) for c in cuts)
    agrees(lambda x: hnp.split(x, cuts), lambda x: np.split(x, cuts), x)
    agrees(lambda x: hnp.split(x, 2, 1), lambda x: np.split(x, 2, 1), x)
    agrees(lambda x: hnp.hsplit(x, 2), lambda x: np.hsplit(x, 2), x)
    if n % count:
        with pytest.raises(hx.errors.ShapeMismatch):
            hnp.split(x, count)


@also_compiled
@given(RANKED, st.data())
def test_repetition(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=shape[axis], max_size=shape[axis]))
    reps = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple))
    agrees(lambda x: hnp.tile(x, reps), lambda x: np.tile(x, reps), x)
    agrees(lambda x: hnp.repeat(x, 2), lambda x: np.repeat(x, 2), x)
    agrees(lambda x: hnp.repeat(x, np.array(counts), axis), lambda x: np.repeat(x, counts, axis), x)
    total = sum(counts)
    known = hnp.repeat(x, np.array(counts), axis, total_repeat_length=total + 1)
    traced = hx.jit(lambda c: hnp.repeat(x, c, axis, total_repeat_length=total + 1))(np.array(counts))
    np.testing.assert_array_equal(np.asarray(known), np.asarray(traced))
    moves(lambda x: hnp.repeat(x, np.array(counts), axis), x)
    agrees(lambda x: hnp.resize(x, (2, 5)), lambda x: np.resize(x, (2, 5)), x)


@also_compiled
@given(RANKED, st.data())
def test_reversal_and_rotation(shape, data):
    x = counted(shape)
    rank = len(shape)
    axes = tuple(data.draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=1)))
    shifts = tuple(data.draw(st.lists(st.integers(-5, 5), min_size=len(axes), max_size=len(axes))))
    agrees(lambda x: hnp.flip(x, axes), lambda x: np.flip(x, axes), x)
    agrees(hnp.flip, np.flip, x)
    agrees(lambda x: hnp.roll(x, shifts, axes), lambda x: np.roll(x, shifts, axes), x)
    agrees(lambda x: hnp.roll(x, shifts[0]), lambda x: np.roll(x, shifts[0]), x)
    traced = hx.jit(lambda x, k: hnp.roll(x, k, axes[0]))(x, shifts[0])
    np.testing.assert_array_equal(np.asarray(traced), np.roll(x, shifts[0], axes[0]))
    if rank > 1:
        k = data.draw(st.integers(-3, 5))
        agrees(lambda x: hnp.rot90(x, k), lambda x: np.rot90(x, k), x)
        agrees(hnp.fliplr, np.fliplr, x)
    moves(lambda x: hnp.roll(x, shifts, axes), x)


def test_a_traced_shift_is_an_integer_or_a_boolean():
    x = counted((2, 3))
    for axis in (None, 0, (0, 1)):
        rolled = hx.jit(lambda x, k: hnp.roll(x, k, axis))
        np.testing.assert_array_equal(rolled(x, True), np.roll(x, True, axis))
        with pytest.raises(hx.errors.DTypeMismatch, match="roll: shift must be integers, got f32"):
            rolled(x, np.float32(1))


def test_of_several_shifts_each_has_an_axis():
    x = counted((2, 3))
    with pytest.raises(hx.errors.ShapeMismatch, match="roll: one shift, or one for each axis, is needed, got 3"):
        hnp.roll(x, (1, 1, 1), (0, 1))


MODES = ["edge", "reflect", "symmetric", "wrap", "mean", "median", "maximum", "minimum", "linear_ramp"]


@pytest.mark.parametrize("mode", MODES)
@given(shape=shapes(min_dims=1, max_dims=2, min_side=1), data=st.data())
def test_padding_by_the_array_itself(mode, shape, data):
    x = counted(shape)
    sides = st.tuples(st.integers(0, 6), st.integers(0, 6))
    widths = data.draw(st.lists(sides, min_size=len(shape), max_size=len(shape)))
    np.testing.assert_allclose(np.asarray(hnp.pad(x, widths, mode=mode)), np.pad(x, widths, mode=mode), rtol=1e-5)


@also_compiled
@given(shapes(min_dims=1, max_side=3), st.integers(0, 3), st.integers(0, 3))
def test_padding_by_constants(shape, before, after):
    x = counted(shape, "int32")
    agrees(lambda x: hnp.pad(x, (before, after)), lambda x: np.pad(x, (before, after)), x)
    agrees(
        lambda x: hnp.pad(x, (before, after), constant_values=(7, 8)),
        lambda x: np.pad(x, (before, after), constant_values=(7, 8)),
        x,
    )


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 0, 3)], ids=str)
def test_padding_by_a_function_of_each_row(shape):
    x, widths = counted(shape), [(d, 2 - d) for d in range(len(shape))]

    def ends(row, width, axis, kwargs):
        """The row with the index of its axis before it, and what is at its middle after it."""
        return [kwargs["start"] + axis] * width[0], row[len(row) // 2]

    def of_numpy(row, width, axis, kwargs):
        row[: width[0]], row[len(row) - width[1] :] = ends(row, width, axis, kwargs)

    def of_handlax(row, width, axis, kwargs):
        before, after = ends(row, width, axis, kwargs)
        return row.at[: width[0]].set(hnp.array(before, row.dtype)).at[row.size - width[1] :].set(after)

    found, expected = hnp.pad(x, widths, of_handlax, start=5), np.pad(x, widths, of_numpy, start=5)
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert hnp.pad(x[:0], 0, of_handlax, start=5).shape == x[:0].shape


def test_padding_of_named_axes():
    x = counted((2, 3, 4))
    for widths in ({-1: (1, 2)}, {0: 2, 2: (0, 1)}):
        np.testing.assert_array_equal(np.asarray(hnp.pad(x, widths, mode="edge")), np.pad(x, widths, mode="edge"))


def test_other_ways_of_padding():
    x = counted((3, 4))
    for kind in ("odd", "even"):
        for mode in ("reflect", "symmetric"):
            wanted = np.pad(x, ((2, 3), (4, 1)), mode=mode, reflect_type=kind)
            found = hnp.pad(x, ((2, 3), (4, 1)), mode=mode, reflect_type=kind)
            np.testing.assert_array_equal(np.asarray(found), wanted)
    np.testing.assert_array_equal(
        np.asarray(hnp.pad(x, 2, mode="maximum", stat_length=((1, 2), (2, 1)))),
        np.pad(x, 2, mode="maximum", stat_length=((1, 2), (2, 1))),
    )
    for bad in (dict(mode="none"), dict(mode="edge", constant_values=1), dict(mode="reflect", reflect_type="both")):
        with pytest.raises(hx.errors.BadArgument):
            hnp.pad(x, 1, **bad)
    with pytest.raises(hx.errors.ShapeMismatch):
        hnp.pad(np.zeros((0, 2)), 1, mode="edge")


@also_compiled
@given(RANKED, st.data())
def test_insertion_and_deletion(shape, data):
    x = counted(shape, "int32")
    axis = data.draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    one = data.draw(st.integers(-n, n - 1))
    several = data.draw(st.lists(st.integers(-n, n - 1), max_size=3))
    for where in (one, several, slice(None, None, 2), slice(one, None)):
        agrees(lambda x, where=where: hnp.delete(x, where, axis), lambda x: np.delete(x, where, axis), x)
    agrees(lambda x: hnp.delete(x, one), lambda x: np.delete(x, one), x)
    for where in (one, np.array(several, int)):
        agrees(lambda x, where=where: hnp.insert(x, where, 7, axis), lambda x: np.insert(x, where, 7, axis), x)
        agrees(lambda x, where=where: hnp.insert(x, where, 7), lambda x: np.insert(x, where, 7), x)
    with pytest.raises(hx.errors.BadArgument):
        hnp.delete(x, n, axis)


def test_insertion_of_several_values():
    x = counted((3, 4), "int32")
    row = np.array([7, 8, 9, 10], "int32")
    two = row[:2]
    np.testing.assert_array_equal(np.asarray(hnp.insert(x, [0, 2], row + 0.5, 0)), np.insert(x, [0, 2], row + 0.5, 0))
    for where, values, axis in ((1, row, 0), (1, row[:3], 1), (0, x, 0), ([1, 3], two, None), ([0, 0], two, None)):
        np.testing.assert_array_equal(np.asarray(hnp.insert(x, where, values, axis)), np.insert(x, where, values, axis))


# Functions that put the values v into an array, after which arguments
PUT = {
    "insert": lambda v: (1, v[0]),
    "place": lambda v: (np.array([True, False, True]), v),
    "put": lambda v: (np.array([1]), v[:1]),
    "put_along_axis": lambda v: (np.array([1]), v[:1], 0),
    "piecewise": lambda v: ([np.array([True, False, True])], [v[0]]),
    "full_like": lambda v: (v[0],),
}
DTYPES = ("bool", "int8", "uint8", "int32", "float16", "float32", "float64")


@pytest.mark.each_choice
@pytest.mark.filterwarnings("ignore:at. updates of:FutureWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PUT)
def test_what_is_put_into_an_array_takes_its_dtype(name, dtype):
    for values in [np.array([3.5, 4.5]).astype(own) for own in DTYPES]:
        x = np.array([1, 0, 2], dtype)
        written = x.copy()  # NumPy's own place refuses to narrow
        wanted = getattr(np, name)(written, *PUT[name](values.astype(dtype)))
        options = {"inplace": False} if name in ("place", "put", "put_along_axis") else {}
        found = getattr(hnp, name)(x, *PUT[name](values), **options)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found), written if wanted is None else wanted)


@given(st.lists(st.integers(0, 1), max_size=6), st.sampled_from(["f", "b", "fb", "bf"]))
def test_trimming_of_zeros(values, trim):
    x = np.array(values, "int32")
    np.testing.assert_array_equal(np.asarray(hnp.trim_zeros(x, trim)), np.trim_zeros(x, trim))


@pytest.mark.parametrize("axis", [(0, 0), (0, -3), 5])
def test_the_axes_that_are_counted_are_distinct_and_there(axis):
    assert hnp.size(np.zeros((2, 3, 4)), (0, -1)) == 8
    with pytest.raises(hx.errors.BadArgument):
        hnp.size(np.zeros((2, 3, 4)), axis)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint32", "int64", "float16", "float64", "complex64", "bool"])
def test_bytes_are_swapped(dtype):
    x = np.array([[1, 0, 3], [7, 300, 2]]).astype(dtype)
    assert np.asarray(hnp.asarray(x).byteswap()).tobytes() == x.byteswap().tobytes()
    assert np.asarray(hx.jit(lambda x: x.byteswap())(x)).tobytes() == x.byteswap().tobytes()
    with pytest.raises(hx.errors.Immutable):
        hnp.asarray(x).byteswap(inplace=True)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("gone", [[], [0], [2, -3], [[1, 0], [3, -2]]])
def test_distinct_positions_that_are_unknown_are_deleted(axis, gone, rng):
    x, gone = rng.normal(size=(6, 6)), np.array(gone, int)
    found = hx.jit(lambda x, i: hnp.delete(x, i, axis, assume_unique_indices=True))(x, gone)
    np.testing.assert_array_equal(found, np.delete(x, gone, axis))
    with pytest.raises(hx.errors.ConcretizationError):
        hx.jit(lambda x, i: hnp.delete(x, i, axis))(x, gone)


@pytest.mark.parametrize("name", ["stack", "hstack", "vstack", "dstack", "column_stack", "concatenate", "block"])
@pytest.mark.parametrize("x", [np.array([2**62, -1]), np.array([0.1, 1e300]), np.arange(6.0, dtype="float32")])
def test_one_numpy_array_in_place_of_a_sequence_keeps_its_dtype(name, x):
    x = x[:, None] if name == "concatenate" else x
    joined = getattr(hnp, name)(x)
    assert joined.dtype == x.dtype and not joined.weak_type
    np.testing.assert_array_equal(joined, getattr(np, name)(x))


@pytest.mark.parametrize("name", ["stack", "hstack", "vstack", "dstack", "column_stack", "concatenate"])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2), (4, 3, 2, 2)])
def test_one_array_in_place_of_a_sequence_is_not_sliced(name, shape):
    x, joined = counted(shape), getattr(hnp, name)
    if name == "concatenate" and len(shape) == 1:
        with pytest.raises(hx.errors.ShapeMismatch, match=r"at least rank 1, got the elements of f32\[100000\]"):
            joined(np.zeros(100_000, "float32"))
        return
    for axis in [{"axis": n} for n in range(len(shape) - 1)] if name in ("stack", "concatenate") else [{}]:
        np.testing.assert_array_equal(joined(hnp.asarray(x), **axis), getattr(np, name)(x, **axis))
        assert len(hx.make_program(lambda x: joined(x, **axis))(x).ops) <= 3
    for none in (x[:0], hnp.float32(1)):
        with pytest.raises(hx.errors.BadArgument, match="at least one array"):
            joined(none)


def test_axes_that_are_no_permutation_are_refused():
    x = hnp.zeros((2, 3))
    for axes in ((0,), (1, 1), 0):
        with pytest.raises(ValueError, match="no permutation"):
            hnp.transpose(x, axes)


def test_a_shape_of_other_things_than_integers_is_a_type_error():
    with pytest.raises(TypeError, match="sequence of integers"):
        hnp.zeros((2.5, 3))


@pytest.mark.parametrize("items", [[], [1, 2], [[1, 2, 3], [4, 5, 6]], (1, 2j), [True, 1.5], [np.ones(2)] * 3, 3])
def test_lists_have_the_shapes_and_kinds_of_their_arrays(items):
    for name in ("shape", "ndim", "size", "iscomplexobj", "isrealobj"):
        assert getattr(hnp, name)(items) == getattr(np, name)(items), name
    arrays = [hnp.array(row) for row in items] if items != 3 else items
    assert hnp.shape(arrays) == np.shape(items)


@pytest.mark.parametrize("thing", [None, object(), "text", {1: 2}])
@pytest.mark.parametrize("name", ["shape", "ndim", "size"])
def test_what_is_no_array_has_the_shape_of_numpy_with_a_warning(name, thing):
    with pytest.warns(DeprecationWarning, match=f"{name}: a number, an array or a list is needed") as warned:
        assert getattr(hnp, name)(thing) == getattr(np, name)(thing)
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
def test_elements_are_repeated_by_counts_of_every_dtype(dtype):
    np.testing.assert_array_equal(hnp.repeat(hnp.arange(3), np.array([1, 0, 2], dtype)), [0, 2, 2])


@pytest.mark.parametrize("lifted", [hx.jit, hx.vmap])
def test_traced_values_that_tell_the_size_are_refused_by_the_name_of_the_function(lifted):
    x = hnp.arange(6.0).reshape(2, 3)
    with pytest.raises(hx.errors.ConcretizationError, match="trim_zeros: the values of filt"):
        lifted(hnp.trim_zeros)(x)
    for where in (x > 1, hnp.ones((2, 1), "int32")):
        with pytest.raises(hx.errors.ConcretizationError, match="delete: the positions must be known"):
            lifted(lambda x, where: hnp.delete(x, where))(x, where)
        with pytest.raises(hx.errors.ConcretizationError, match="insert: the positions must be known"):
            lifted(lambda x, where: hnp.insert(x, where, 1.0))(x, where)
