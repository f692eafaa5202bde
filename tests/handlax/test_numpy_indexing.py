"""Indexing, updates and choices agree with NumPy inside the axes; what happens outside is JAX's."""

import numpy as np
import pytest
from helpers.compiled_at_once import also_compiled, later
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
import handlax.numpy as hnp
from handlax.testing.strategies import Domain, arrays, broadcastable_shapes, index_expressions, shapes

RANKED = shapes(min_dims=1, min_side=1)
INDEXED = shapes().flatmap(lambda shape: st.tuples(st.just(shape), index_expressions(shape)))


def counted(shape, dtype="float32"):
    """An array whose elements are all different."""
    return np.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype=dtype).reshape(shape)


def equal(found, wanted):
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(np.asarray(found), wanted)


def both(wanted, f, *xs):
    """Assert that ``f`` gives this; ``also_compiled`` asserts it of the compiled function."""
    equal(f(*xs), wanted)
    later(lambda found: equal(found, wanted), f, *xs)


@also_compiled
@given(INDEXED)
def test_indexing_agrees_with_numpy(case):
    shape, index = case
    x = counted(shape)
    wanted = x[index]
    both(wanted, lambda x: x[index], hnp.asarray(x))
    equal(hx.vmap(lambda x: x[index])(np.stack([x, 2 * x])), np.stack([wanted, 2 * wanted]))


@also_compiled
@given(INDEXED)
def test_indices_that_are_not_known_give_the_same(case):
    shape, index = case
    x = counted(shape)
    index = index if isinstance(index, tuple) else (index,)
    at = [k for k, part in enumerate(index) if isinstance(part, int | np.ndarray) and np.asarray(part).dtype != bool]

    def read(x, *parts):
        whole = list(index)
        for k, part in zip(at, parts):
            whole[k] = part
        return x[tuple(whole)]

    later(lambda found: equal(found, x[index]), read, x, *[np.asarray(index[k], "int32") for k in at])


@given(INDEXED)
def test_the_derivative_of_indexing_counts_how_often_an_element_is_read(case):
    shape, index = case
    x = counted(shape)
    times = np.zeros(shape, "float32")
    np.add.at(times, index, 1)
    equal(hx.grad(lambda x: x[index].sum())(x), times)


WRITES = {
    "set": None,
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "subtract": np.subtract,
}


@also_compiled
@given(INDEXED, st.sampled_from(list(WRITES)))
def test_updates_agree_with_numpy(case, way):
    shape, index = case
    x = counted(shape)
    wanted = x.copy()
    if way == "set":
        wanted[index] = 7
    else:
        WRITES[way].at(wanted, index, np.float32(7))
    both(wanted, lambda x: getattr(x.at[index], way)(7), hnp.asarray(x))


@given(INDEXED)
def test_updates_by_arrays_agree_with_numpy(case):
    shape, index = case
    x = counted(shape)
    values = -counted(x[index].shape)
    wanted = x.copy()
    np.add.at(wanted, index, values)
    equal(hnp.asarray(x).at[index].add(values), wanted)
    lanes = np.stack([x, 2 * x])
    found = hx.vmap(lambda x: x.at[index].add(values))(lanes)
    equal(found, np.stack([wanted, wanted + x]))
    once = np.zeros(shape)
    np.add.at(once, index, 1)
    if once.max(initial=0) <= 1:
        wanted = x.copy()
        wanted[index] = values
        equal(hnp.asarray(x).at[index].set(values), wanted)
        ct = counted(shape)
        equal(hx.grad(lambda v: (hnp.asarray(x).at[index].set(v) * ct).sum())(values), ct[index])


def test_other_ways_to_update():
    x = hnp.arange(1, 6)
    equal(x.at[1].divide(4), [1, 0.5, 3, 4, 5])
    equal(x.at[1:3].power(2), [1, 4, 9, 4, 5])
    equal(x.at[np.array([0, 0, 2])].apply(lambda v: 2 * v), [4, 2, 6, 4, 5])
    equal(hx.jit(lambda x, i: x.at[i].apply(lambda v: 2 * v))(x, np.array([0, 0, 2])), [4, 2, 6, 4, 5])
    equal(x.at[::2].apply(lambda v: -v), [-1, 2, -3, 4, -5])
    for update in (lambda x: x.at[np.array([4, 9])].apply(lambda v: 2 * v, mode="clip"),
                   lambda x: x.at[np.array([4, 9])].multiply(2, mode="clip")):
        equal(update(x), [1, 2, 3, 4, 20])
        equal(hx.jit(update)(x), [1, 2, 3, 4, 20])
    equal(x.at[x > 3].mul(0), [1, 2, 3, 0, 0])
    equal(hx.jit(lambda x: x.at[x > 3].set(0))(x), [1, 2, 3, 0, 0])
    equal(x.at[None, 1].set(9), [1, 9, 3, 4, 5])
    equal(x.at[...].set(0), np.zeros(5))
    assert x.at[0].add(1).dtype == np.int32 and hnp.asarray(1.0).at[()].add(1).weak_type


def test_updates_of_a_wider_kind_are_rounded_with_a_warning():
    with pytest.warns(FutureWarning):
        equal(hnp.arange(3).at[0].set(2.7), [2, 1, 2])


@pytest.mark.parametrize("index", [0, slice(1, 3), np.array([0, 2]), np.array([0, 0]), np.arange(5) > 1], ids=str)
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_apply_takes_a_number_for_all_elements(way, index):
    for number in (0.5, 2, np.float32(7.25), hnp.array(3)):
        wanted = np.arange(5, dtype=np.float32)
        wanted[index] = number
        got = way(lambda x, y=number: x.at[index].apply(lambda _: y))(hnp.arange(5.0))
        assert got.dtype == "float32"
        equal(got, wanted)


def test_apply_takes_no_function_of_several_elements():
    with pytest.raises(ValueError, match="each element"):
        hnp.arange(4).at[:3].apply(lambda old: old[:2])


def test_what_lies_outside_is_clipped_when_read_and_not_written():
    x = hnp.arange(4.0)
    i = np.array([-5, -1, 4, 9])
    equal(x[i], [0, 3, 3, 3])
    equal(hx.jit(lambda i: x[i])(i), [0, 3, 3, 3])
    assert float(x[9]) == 3 and float(x[-9]) == 0 and float(hx.jit(lambda k: x[k])(9)) == 3
    equal(x.at[i].get(mode="fill"), [np.nan, 3, np.nan, np.nan])
    equal(x.at[i].get(mode="fill", fill_value=7), [7, 3, 7, 7])
    equal(hx.jit(lambda i: x.at[i].get(mode="fill", fill_value=7))(i), [7, 3, 7, 7])
    equal(x.at[i].add(1), [0, 1, 2, 4])
    equal(x.at[9].set(1), x)
    equal(x.at[9].set(1, mode="clip"), [0, 1, 2, 1])
    equal(x.at[np.array([1, -1])].get(mode="fill", wrap_negative_indices=False), [1, np.nan])


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ((0, 0), IndexError),
        ((..., 0, ...), IndexError),
        (1.5, TypeError),
        ("a", TypeError),
        ([0, 1], TypeError),
        (np.array([True, False]), IndexError),
        (slice(0, 2.5), TypeError),
        (np.array([0.5]), TypeError),
    ],
)
def test_what_is_no_index_is_an_error(index, error):
    with pytest.raises(error):
        hnp.arange(3)[index]


def test_a_mask_that_is_not_known_is_an_error_that_says_what_to_do():
    with pytest.raises(hx.errors.NonConcreteBooleanIndexError, match="where"):
        hx.jit(lambda x: x[x > 1])(np.arange(3.0))


def test_arrays_cannot_be_written_to():
    with pytest.raises(TypeError, match="at"):
        hnp.arange(3)[0] = 1


@also_compiled
@given(RANKED, st.data())
def test_take_and_its_modes(shape, data):
    x = counted(shape)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    n = x.size if axis is None else shape[axis]
    inside = data.draw(arrays("int32", shapes(max_dims=2, min_side=1, max_side=3), domain=Domain(-n, n - 1)))
    anywhere = 3 * inside
    both(np.take(x, inside, axis), lambda x, i: hnp.take(x, i, axis), x, inside)
    for mode in ("clip", "wrap"):
        wanted = np.take(x, anywhere, axis, mode=mode)
        both(wanted, lambda x, i, mode=mode: hnp.take(x, i, axis, mode=mode), x, anywhere)
    equal(hnp.take(x, 3 * np.array([-x.size, 0, x.size]), fill_value=-1), [-1, 1, -1])


@also_compiled
@given(RANKED, st.data())
def test_take_and_put_along_an_axis(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    sizes = tuple(data.draw(st.integers(1, 3)) if d == axis else m for d, m in enumerate(shape))
    i = data.draw(arrays("int32", sizes, domain=Domain(-n, n - 1)))
    both(np.take_along_axis(x, i, axis), lambda x, i: hnp.take_along_axis(x, i, axis), x, i)
    times = np.zeros(shape, "float32")
    places = tuple(
        i if d == axis else np.arange(m).reshape([m if e == d else 1 for e in range(len(shape))])
        for d, m in enumerate(shape)
    )
    np.add.at(times, places, 1)
    equal(hx.grad(lambda x: hnp.take_along_axis(x, i, axis).sum())(x), times)
    wanted = x.copy()
    np.put_along_axis(wanted, i, np.float32(-1), axis)
    equal(hnp.put_along_axis(x, i, -1, axis, inplace=False), wanted)
    equal(hnp.take_along_axis(x, 0 * i.ravel(), None), np.full(i.size, x.ravel()[0]))


def test_axes_of_size_one_broadcast_along_take_along_axis():
    x, i = counted((2, 3, 4)), np.array([2, 0]).reshape(1, 2, 1)
    equal(hnp.take_along_axis(x, i, 1), np.take_along_axis(x, i, 1))
    zeros = np.zeros((2, 3, 2), int)
    equal(hnp.take_along_axis(x[:1], zeros, 2), np.take_along_axis(x[:1], zeros, 2))


def test_put_counts_negative_positions_from_the_end_and_clips():
    x = np.zeros(4)
    for mode, wanted in ((None, [2, 0, 0, 3]), ("clip", [2, 0, 0, 3]), ("wrap", [0, 1, 0, 3])):
        equal(hnp.put(x, np.array([9, -9, 3]), np.array([1.0, 2, 3]), mode, inplace=False), wanted)
    equal(hnp.put(x, np.array([-1]), np.array([1.0]), inplace=False), [0, 0, 0, 1])
    equal(hnp.put(x, np.array([-1]), np.array([1.0]), "clip", inplace=False), [1, 0, 0, 0])


def test_in_place_functions_give_a_new_array_or_an_error():
    x, values = counted((3, 3), "int32"), np.array([7, 8], "int32")
    for call, f in (
        (lambda **k: hnp.put(x, np.array([0, -1]), values, **k), lambda y: np.put(y, [0, -1], [7, 8])),
        (lambda **k: hnp.place(x, x > 4, values, **k), lambda y: np.place(y, y > 4, [7, 8])),
        (lambda **k: hnp.fill_diagonal(x, 7, **k), lambda y: np.fill_diagonal(y, 7)),
    ):
        wanted = x.copy()
        f(wanted)
        equal(call(inplace=False), wanted)
        with pytest.raises(hx.errors.BadArgument, match="inplace=False"):
            call()


@also_compiled
@given(broadcastable_shapes(3))
def test_where_broadcasts(drawn):
    c, x, y = map(counted, drawn)
    equal(hnp.where(c % 2 == 0, x, -y), np.where(c % 2 == 0, x, -y))
    both(np.where(c > 2, x, np.float32(0)), lambda c, x, y: hnp.where(c, x, y), c > 2, x, 0.0)


def test_where_promotes_as_operators_do():
    assert hnp.where(True, 1.0, 2).weak_type
    assert hnp.where(np.array([1, 0]), np.int8(1), np.float16(2)).dtype == np.float16
    with pytest.raises(hx.errors.BadArgument):
        hnp.where(True, 1)


@also_compiled
@given(arrays("int32", shapes(min_dims=1), domain=Domain(0, 1)), st.integers(0, 9))
def test_nonzero_gives_the_first_places_in_row_major_order(x, size):
    wanted = np.nonzero(x)
    for found, places in zip(hnp.nonzero(x), wanted, strict=True):
        equal(found, places)
    filled = [np.concatenate([places[:size], np.full(max(size - places.size, 0), -5)]) for places in wanted]
    for axis, places in enumerate(filled):
        both(places, lambda x, axis=axis: hnp.nonzero(x, size=size, fill_value=-5)[axis], x)
    equal(hnp.argwhere(x), np.argwhere(x))
    equal(hnp.flatnonzero(x), np.flatnonzero(x))
    with pytest.raises(hx.errors.ConcretizationError, match="size"):
        hx.jit(hnp.nonzero)(x)


@also_compiled
@given(RANKED, st.data())
def test_compress_and_extract(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    c = data.draw(arrays("bool", (shape[axis],)))
    equal(hnp.compress(c, x, axis), np.compress(c, x, axis))
    equal(hnp.extract(x > 2, x), np.extract(x > 2, x))
    wanted = np.compress(c, x, axis)
    more = [(0, shape[axis] - wanted.shape[axis]) if d == axis else (0, 0) for d in range(len(shape))]
    both(np.pad(wanted, more, constant_values=-1),
         lambda c, x: hnp.compress(c, x, axis, size=shape[axis], fill_value=-1), c, x)


@also_compiled
@given(arrays("int32", (4,), domain=Domain(-6, 6)))
def test_choose_and_its_modes(i):
    choices = [np.arange(4), 10 + np.arange(4), np.int64(7)]
    for mode in ("clip", "wrap"):
        both(np.choose(i, choices, mode=mode), lambda i, mode=mode: hnp.choose(i, choices, mode=mode), i)
    inside = np.abs(i) % 3
    equal(hnp.choose(inside, choices), np.choose(inside, choices))
    with pytest.raises(hx.errors.BadArgument):
        hnp.choose(inside + 3, choices)


def test_select_takes_the_first_and_piecewise_the_last_condition_that_holds():
    x = np.arange(6, dtype="float32")
    equal(hnp.select([x < 2, x < 4], [x, 10 * x], -1), np.select([x < 2, x < 4], [x, 10 * x], -1))
    for functions in ([lambda v: -v, 7], [lambda v: -v, 7, lambda v: v * v]):
        equal(hnp.piecewise(x, [x < 4, x < 2], functions), np.piecewise(x, [x < 4, x < 2], functions))
    with pytest.raises(hx.errors.ShapeMismatch):
        hnp.piecewise(x, [x < 2], [1, 2, 3])


@given(RANKED, st.data())
def test_positions_and_indices_name_the_same_elements(shape, data):
    total = int(np.prod(shape))
    i = data.draw(arrays("int32", (3,), domain=Domain(0, total - 1)))
    found = hnp.unravel_index(i, shape)
    for one, other in zip(found, np.unravel_index(i, shape), strict=True):
        equal(one, other)
    for order in "CF":
        wanted = np.ravel_multi_index(tuple(np.asarray(part) for part in found), shape, order=order)
        equal(hnp.ravel_multi_index(found, shape, order=order), wanted)
    outside = tuple(np.asarray(part) * 3 - 4 for part in found)
    for mode in ("clip", "wrap"):
        equal(hnp.ravel_multi_index(outside, shape, mode=mode), np.ravel_multi_index(outside, shape, mode=mode))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_the_position_of_narrow_indices_has_a_dtype_that_holds_it(dtype):
    last = np.full((1,), 99, dtype)
    assert hnp.ravel_multi_index((last, last, last), (100, 100, 100)).tolist() == [999_999]
    assert hnp.ravel_multi_index((last, 0 * last), (100, 1)).dtype == dtype


def test_elements_are_put_along_the_flattened_array():
    x, i, values = counted((2, 3)), np.array([4, 0]), np.float32([-1.0, -2.0])
    expected = x.copy()
    np.put_along_axis(expected, i, values, None)
    equal(hnp.put_along_axis(x, i, values, None, inplace=False), expected)


def test_open_grids_index_their_product():
    x = counted((3, 4))
    equal(hnp.asarray(x)[hnp.ix_(np.array([2, 0]), np.array([True, False, True, True]))], x[np.ix_([2, 0], [0, 2, 3])])


def test_arrays_have_the_methods_of_their_functions():
    x = hnp.asarray(counted((2, 3)))
    missing = [name for name in hnp.array_methods.METHODS if not hasattr(x, name)]
    assert not missing
    equal(x.T, counted((2, 3)).T)
    equal(x.mT, counted((2, 3)).T)
    equal(x.transpose(1, 0), counted((2, 3)).T)
    equal(x.reshape(3, -1), counted((3, 2)))
    equal(x.astype("int8"), counted((2, 3)))
    equal(x.compress(np.array([False, True]), axis=0), counted((2, 3))[1:])
    equal(x.real, x)
    equal(x.imag, np.zeros((2, 3)))
    assert x.copy() is not x and [row.tolist() for row in x] == [[1, 2, 3], [4, 5, 6]]
    assert hx.jit(lambda x: [row.sum() for row in x])(x)[1] == 15


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("float32", "int32"),
        ("float32", "uint8"),
        ("int8", "float32"),
        ("complex64", "float32"),
        ("float64", "complex128"),
        ("bool", "uint8"),
        ("uint8", "bool"),
        ("int64", "int16"),
    ],
)
def test_views_have_the_bits_of_the_array(own, other):
    x = np.array([0, 1, 1, 0, 0, 1, 1, 1]).astype(own)
    equal(hnp.asarray(x).view(other), x.view(other))


def test_the_derivative_of_an_entry_of_a_weak_array_is_one_there():
    weak = hnp.full(3, 0.25)
    assert weak.weak_type
    np.testing.assert_array_equal(hx.grad(lambda x: x[0])(weak), [1, 0, 0])
    assert hx.lax.pad(weak, 0, [(1, 0, 0)]).dtype == weak.dtype


@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
def test_negative_indices_along_an_axis_count_from_the_end_unless_that_is_declined(mode):
    x, i = hnp.array([10, 20, 30]), hnp.array([-1, -2])
    assert hnp.take_along_axis(x, i, 0, mode=mode).tolist() == [30, 20]
    assert hnp.take_along_axis(x, hnp.array([-7, 9]), 0, mode="clip").tolist() == [10, 30]
    assert hnp.take_along_axis(x, i, 0, mode="clip", wrap_negative_indices=False).tolist() == [10, 10]


def test_flat_positions_are_computed_unchecked_where_that_is_asked_for():
    i = hnp.array([0, 1], "int8")
    flat = lambda i: hnp.ravel_multi_index((i, i), (2, 3), mode="ignore")
    for found in (flat(i), hx.jit(flat)(i)):
        assert found.dtype == "int8" and found.tolist() == [0, 4]


@pytest.mark.parametrize("entry", [lambda i: slice(i, 2), lambda i: slice(0, i), lambda i: slice(0, 4, i)])
@pytest.mark.parametrize("index", [lambda s: s, lambda s: (0, s), lambda s: ([0, 1], s), lambda s: (s, None, 1)])
@pytest.mark.parametrize("use", [lambda x, index: x[index], lambda x, index: x.at[index].set(0)])
def test_the_ends_of_a_slice_are_known(entry, index, use):
    x = hnp.arange(20).reshape(4, 5)
    with pytest.raises(hx.errors.BadIndex, match="slice must be known, got i32") as caught:
        hx.jit(lambda i: use(x, index(entry(i))))(1)
    assert "dynamic_slice" in str(caught.value)


@pytest.mark.parametrize("index", [4, -5, np.s_[:, 3], np.s_[..., -4], np.s_[[0, 1], 3], np.s_[None, 2]], ids=str)
@pytest.mark.parametrize("read", [
    lambda x, i: x[i], lambda x, i: hx.jit(lambda x: x[i])(x), lambda x, i: x.at[i].get()
], ids=["eager", "jit", "get"])
def test_integers_out_of_bounds_are_refused_where_it_is_set(index, read):
    x = hnp.arange(6.0).reshape(2, 3)
    clipped = np.asarray(x.at[index].get(mode="clip"))
    np.testing.assert_array_equal(read(x, index), clipped)
    with hx.configure(check_static_indices=True):
        with pytest.raises(IndexError, match="an index must lie in its axis"):
            read(x, index)
        np.testing.assert_array_equal(x.at[index].get(mode="clip"), clipped)
        np.testing.assert_array_equal(read(x, np.s_[-2, :9]), [0.0, 1.0, 2.0])


@pytest.mark.parametrize(("shape", "mask"), [
    ((3,), (0,)), ((3, 4), (0,)), ((3, 4), (0, 4)), ((3, 4, 5), (3, 0))
], ids=str)
def test_a_mask_without_elements_chooses_nothing_as_in_numpy(shape, mask):
    x, chosen = np.ones(shape, np.float32), np.zeros(mask, bool)
    assert hnp.asarray(x)[hnp.asarray(chosen)].shape == x[chosen].shape


ROWS = np.array([0, 1, 2])
ALL = slice(None)


@pytest.mark.parametrize("index", [
    (ALL, ROWS, ..., ROWS), (ALL, 0, ..., ROWS), (ALL, ROWS, ..., 0), (0, ..., ROWS, ROWS), (ROWS, ..., ROWS, ALL),
    (None, ROWS, ..., 0, ALL), (ALL, True, ROWS, ..., ROWS), (ALL, np.array([True, False, True, True]), ..., ROWS),
    (ALL, ROWS[:, None], ..., ROWS), (ALL, 0, ..., 1), (ALL, np.array(1), ..., np.array(2)),
    (ALL, ALL, ALL, True, ..., True), (ALL, ALL, 0, ..., False), (None, True, ..., 0, ALL, ALL), (ALL, 0, ..., True, 1),
])
def test_an_ellipsis_of_no_axes_parts_the_arrays_of_an_index(index):
    x = np.arange(60).reshape(3, 4, 5)
    part = x[index]
    found = hnp.asarray(x)[index]
    assert found.shape == part.shape and np.array_equal(found, part)
    written = x.copy()
    written[index] = -part
    assert np.array_equal(hnp.asarray(x).at[index].set(-part), written)


def test_nothing_is_written_to_an_empty_axis_nor_read_from_it():
    written = lambda v: hnp.zeros((0, 3)).at[1].set(v).sum() + hnp.zeros((0, 3)).at[np.array([1, 2])].add(v).sum()
    for run in (lambda f: f, hx.jit):
        assert np.array_equal(run(hx.grad(written))(hnp.ones(3)), [0, 0, 0])
        read = run(lambda x, i: x.at[i].get(mode="fill", fill_value=2.0))
        assert np.array_equal(read(hnp.zeros((0, 3)), np.array([1])), [[2, 2, 2]])


def test_a_condition_that_holds_beyond_the_array_is_refused():
    x = hnp.array([1, 2])
    assert hnp.compress(np.array([1, 0, 0]), x).tolist() == [1]
    with pytest.raises(ValueError, match="must not hold beyond"):
        hnp.compress(np.array([1, 0, 1]), x)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("index", [10**25, -(10**25), 2**63, -(2**63) - 1])
def test_an_update_beyond_every_index_is_dropped(method, index):
    x = hnp.arange(3.0)
    assert getattr(x.at[index], method)(2.0).tolist() == [0.0, 1.0, 2.0]
    assert hx.jit(lambda x: getattr(x.at[index], method)(2.0))(x).tolist() == [0.0, 1.0, 2.0]
