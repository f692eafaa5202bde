"""Loops: the same as Python's, on trees, in both directions, with the types of their carries."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

XS = np.arange(1.0, 6.0, dtype="float32")


def step(c, x):
    return {"sum": c["sum"] + x, "n": c["n"] + 1}, (c["sum"], x * x)


def looped(xs, reverse):
    c, ys = {"sum": np.float32(0), "n": 0}, []
    for x in reversed(xs) if reverse else xs:
        c, y = step(c, x)
        ys.append(y)
    return c, [np.stack(y[::-1] if reverse else y) for y in zip(*ys)]


@pytest.mark.each_choice
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [0, 1, 2, 3, True, False])
def test_a_scan_is_the_loop_of_python(reverse, unroll, compiled):
    f = lambda xs: lax.scan(step, {"sum": hnp.float32(0), "n": 0}, xs, reverse=reverse, unroll=unroll)
    c, ys = (hx.jit(f) if compiled else f)(XS)
    expected, stacked = looped(XS, reverse)
    assert (float(c["sum"]), int(c["n"])) == (expected["sum"], expected["n"])
    np.testing.assert_array_equal(np.stack(ys), np.stack(stacked))


def test_a_scan_of_no_runs_gives_the_carry_and_empty_results():
    c, ys = lax.scan(lambda c, x: (c + x, c * x), 1.0, np.zeros((0,), "float32"))
    assert float(c) == 1.0 and ys.shape == (0,) and ys.dtype == c.dtype


def test_a_counted_loop_is_that_of_range():
    f = lambda a, b: lax.fori_loop(a, b, lambda i, c: 2 * c + i, 1)
    for a, b in [(0, 5), (2, 4), (3, 3), (4, 1)]:
        expected = 1
        for i in range(a, b):
            expected = 2 * expected + i
        assert int(f(a, b)) == int(hx.jit(f)(a, b)) == expected


@pytest.mark.parametrize(("lower", "upper", "dtype"), [
    (0, 3, "int32"), (np.int8(0), 3, "int32"), (np.int8(0), np.int8(3), "int32"), (0, hnp.asarray(3, "int64"), "int64"),
    (np.uint32(2**32 - 4), np.uint32(2**32 - 1), "uint32"),
])
def test_the_counter_has_the_dtype_of_the_bounds_unless_the_default_holds_them(lower, upper, dtype):
    count, last = lax.fori_loop(lower, upper, lambda i, c: (c[0] + 1, i), (0, hnp.asarray(lower, dtype)))
    assert (int(count), int(last), last.dtype) == (3, int(upper) - 1, dtype)


@pytest.mark.parametrize("given", [0, 1])
def test_a_bound_that_is_traced_has_its_own_dtype(given):
    seen = []

    def f(*bounds):
        return lax.fori_loop(*bounds, lambda i, c: seen.append(i.dtype) or c + 1, 0, unroll=False)

    bounds = [0, 3]
    bounds[given] = np.int8(bounds[given])
    assert int(hx.jit(f, static_argnums=1 - given)(*bounds)) == 3 and {*seen} == {np.dtype("int8")}


@pytest.mark.parametrize(("call", "words"), [
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), r"xs must have a leading axis, got f32\[\]"),
    (lambda: lax.fori_loop(np.zeros(1, int), 3, lambda i, c: c, 0), "the bounds must be integer scalars"),
    (lambda: lax.fori_loop(0, 1.0, lambda i, c: c, 0), "the bounds must be integer scalars"),
])
def test_what_has_no_iterations_is_refused(call, words):
    with pytest.raises(errors.HandlaxError, match=words):
        call()


def test_a_while_loop_tests_before_its_first_run():
    f = lambda x: lax.while_loop(lambda c: c < 100, lambda c: c * c, x)
    assert [float(hx.jit(f)(x)) for x in (2.0, 3.0, 100.0)] == [256.0, 6561.0, 100.0]


@pytest.mark.parametrize("call", [
    lambda: lax.scan(lambda c, x: (c, x), 0.0, None),
    lambda: lax.scan(lambda c, x: (c, x), 0.0, (np.ones(2), np.ones(3))),
    lambda: lax.scan(lambda c, x: (c, x), 0.0, np.ones(2), length=3),
    lambda: lax.scan(lambda c, x: (c[None], x), 0.0, np.ones(2)),
    lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
])
def test_a_loop_whose_parts_do_not_fit_is_refused(call):
    with pytest.raises(errors.HandlaxError) as caught:
        call()
    assert caught.value.where.startswith("at test_loops.py:")


def test_what_the_body_returns_unchanged_is_the_operand_itself():
    x, xs = hnp.arange(3.0), hnp.ones((4, 3))
    (same, _), (rows, _) = lax.scan(lambda c, x: ((c[0], c[1] + 1), (x, c[1])), (x, 0), xs, reverse=True)
    assert same is x and rows is xs
    (swapped, _), _ = lax.scan(lambda c, _: ((c[1], c[0]), None), (x, 2 * x), length=1)
    assert swapped.tolist() == [0.0, 2.0, 4.0]
    assert lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (x, 0))[0] is x
    assert lax.scan(lambda c, x: (c, c), x, length=2)[1].shape == (2, 3)


def test_what_the_body_returns_unchanged_stays_shared_between_lanes():
    def f(w, x, most):
        _, x, w = lax.while_loop(lambda c: c[0] < most, lambda c: (c[0] + 1, c[1] @ c[2], c[2]), (0, x, w))
        return w, x

    w, xs = hnp.eye(2) * 2, hnp.ones((3, 2))
    same, ys = hx.jit(hx.vmap(f, in_axes=(None, 0, 0), out_axes=(None, 0)))(w, xs, hnp.arange(3))
    assert same.tolist() == w.tolist() and ys.tolist() == [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]
