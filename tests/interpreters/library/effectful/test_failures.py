"""Checks, whose failures leave a program as values."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


def log(x):
    hx.check(x > 0, "x must be positive, got {}", x)
    return hnp.log(x)


def said(error):
    """The first line of what went wrong, None where nothing did."""
    found = error.get()
    return None if found is None else found.splitlines()[0]


def line_of(f, text):
    """The line of this file on which ``text`` stands in ``f``."""
    first = f.__code__.co_firstlineno
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if n >= first and text in line)


def test_a_check_raises_at_once_where_nothing_is_traced():
    assert float(log(1.0)) == 0.0
    with pytest.raises(errors.CheckFailed, match=r"x must be positive, got -1\.0\.") as caught:
        log(-1.0)
    assert f"test_failures.py:{line_of(log, 'hx.check')}" in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_a_failure_leaves_what_is_compiled_and_names_the_line(wrap):
    for f in (hx.checkify(wrap(log)), wrap(hx.checkify(log))):
        error, y = f(-1.0)
        assert said(error) == "x must be positive, got -1.0." and np.isnan(y)
        assert f"test_failures.py:{line_of(log, 'hx.check')}" in error.get()
        with pytest.raises(errors.CheckFailed, match="positive"):
            error.throw()
        error, y = f(1.0)
        assert error.get() is None and not error
        error.throw()


def test_the_first_failure_is_kept():
    def f(x):
        hx.check(x > 0, "first")
        hx.check(x > 10, "second")
        return x

    found = [said(hx.checkify(f)(x)[0]) for x in (-1.0, 1.0, 11.0)]
    assert found == ["first.", "second.", None]


def test_the_offending_index_and_its_value_are_shown():
    f = hx.jit(hx.checkify(lambda x, y: hx.check(x < y, "{} must be below {}", x, y)))
    x = np.zeros((2, 3), "float32")
    x[1, 0] = x[1, 2] = 7.5
    assert said(f(x, hnp.float32(1.0))[0]) == "7.5 must be below 1.0 at index [1, 0]."
    with pytest.raises(errors.CheckFailed, match=r"at index \[1, 0\]"):
        hx.check(x < 1, "small")


def test_loops_and_branches_are_looked_into():
    def scanned(x):
        return lax.scan(lambda c, y: (log(c) + y, None), x, hnp.arange(3.0))[0]

    def branch(x):
        return lax.cond(x > 0, lambda: 1.0, lambda: (hx.raise_("negative: {}", x), 0.0)[1])

    def loop(x):
        return lax.while_loop(lambda c: c < 10, lambda c: (hx.check(c != 4.0, "four"), c * 2)[1], x)

    assert said(hx.checkify(scanned)(1.0)[0]) == "x must be positive, got 0.0."
    assert said(hx.checkify(scanned)(9.0)[0]) is None
    assert [said(hx.checkify(branch)(x)[0]) for x in (1.0, -3.0)] == [None, "negative: -3.0."]
    assert [said(hx.checkify(loop)(x)[0]) for x in (1.0, 3.0)] == ["four.", None]
    assert said(hx.jit(hx.checkify(hx.grad(scanned)))(1.0)[0]) == "x must be positive, got 0.0."
    assert said(hx.checkify(hx.grad(hx.checkpoint(scanned)))(1.0)[0]) == "x must be positive, got 0.0."


def test_a_test_of_a_loop_may_check():
    def test(c):
        hx.check(c < 5, "too far: {}", c)
        return c < 10

    assert said(hx.checkify(lambda x: lax.while_loop(test, lambda c: c * 2, x))(1)[0]) == "too far: 8."


def test_a_gradient_goes_through_a_checked_function():
    f = lambda x: hx.checkify(log)(x)[1]
    assert float(hx.grad(f)(4.0)) == 0.25
    (error, _), tangent = hx.jvp(lambda x: (hx.checkify(log)(x)), (4.0,), (1.0,))
    assert not error and float(tangent[1]) == 0.25


XS = np.array([1.0, -1.0, -2.0], "float32")


def test_the_lane_is_named_inside_and_around_vmap():
    inside = hx.vmap(hx.checkify(log))(XS)[0]
    assert inside.number.shape == (3,)
    for error in (inside, hx.checkify(hx.vmap(log))(XS)[0], hx.jit(hx.checkify(hx.vmap(log)))(XS)[0]):
        assert said(error) == "x must be positive, got -1.0 in lane 1."
    nested = hx.checkify(hx.vmap(hx.vmap(log)))(np.stack([abs(XS), XS]))[0]
    assert said(nested) == "x must be positive, got -1.0 in lane (1, 1)."
    mixed = hx.vmap(hx.checkify(hx.vmap(log)))(np.stack([abs(XS), XS]))[0]
    assert said(mixed) == "x must be positive, got -1.0 in lane (1, 1)."
    rows = hx.checkify(hx.vmap(log))(np.stack([abs(XS), XS]))[0]
    assert said(rows) == "x must be positive, got -1.0 at index [1] in lane 1."


def test_values_that_all_lanes_share_are_shown_too():
    f = lambda x, y: hx.check(x < y, "{} below {}", x, y)
    error = hx.checkify(hx.vmap(f, in_axes=(0, None)))(hnp.arange(3.0), 2.0)[0]
    assert said(error) == "2.0 below 2.0 in lane 2."
    error = hx.checkify(hx.vmap(f, in_axes=(None, 0)))(1.0, hnp.arange(3.0))[0]
    assert said(error) == "1.0 below 0.0 in lane 0."


def test_only_lanes_that_take_a_branch_check_in_it():
    f = lambda x: lax.cond(x > 0, lambda: (hx.check(x < 2, "{} is too large", x), x)[1], lambda: -x)
    xs = hnp.array([1.0, -5.0, 3.0, 4.0])
    for g in (hx.checkify(hx.vmap(f)), hx.jit(hx.checkify(hx.jit(hx.vmap(f))))):
        assert said(g(xs)[0]) == "3.0 is too large in lane 2."
    assert said(hx.checkify(hx.vmap(f))(-abs(xs))[0]) is None
    assert said(hx.vmap(hx.checkify(f))(xs)[0]) == "3.0 is too large in lane 2."


def test_lanes_that_go_different_ways_inside_others():
    f = lambda x: lax.cond(x > 0, lambda: (hx.check(x < 2, "{} is too large", x), x)[1], lambda: -x)
    grid = hnp.array([[1.0, -5.0, 1.0], [1.0, 3.0, 4.0]])
    assert said(hx.vmap(hx.checkify(hx.vmap(f)))(grid)[0]) == "3.0 is too large in lane (1, 1)."
    expected = "3.0 is too large in lane 1 of one vmap, 1 of another."
    assert said(hx.checkify(hx.vmap(hx.vmap(f)))(grid)[0]) == expected
    row = lambda xs: lax.cond(xs[0] > 0, lambda: (hx.vmap(log)(xs), xs)[1], lambda: xs)
    error, _ = hx.checkify(hx.vmap(row))(hnp.array([[-1.0, -1.0], [1.0, -3.0]]))
    assert said(error) == "x must be positive, got -3.0 in lane 1 of one vmap, 1 of another."
    loop = lambda x: lax.while_loop(lambda c: c < 5, lambda c: (hx.check(c != 3, "three"), c + 1)[1], x)
    assert said(hx.checkify(hx.vmap(loop))(hnp.array([4.5, 2.5, 3.0, 2.0]))[0]) == "three in lane 2."


def test_a_custom_rule_checks_in_the_place_of_its_function():
    @hx.custom_jvp
    def double(x):
        hx.check(x < 1, "function {}", x)
        return x * 2

    @double.defjvp
    def _(primals, tangents):
        hx.check(primals[0] < 1, "rule {}", primals[0])
        return primals[0] * 2, tangents[0] * 2

    assert said(hx.checkify(double)(3.0)[0]) == "function 3.0."
    assert said(hx.checkify(hx.jit(hx.grad(double)))(3.0)[0]) == "rule 3.0."
    assert said(hx.checkify(hx.vmap(double))(hnp.array([0.0, 3.0]))[0]) == "function 3.0 in lane 1."


def test_check_finite_names_the_leaf():
    tree = {"a": hnp.arange(3.0), "b": hnp.array([[1.0, 2.0], [hnp.inf, 0.0]]), "n": 3}
    error, same = hx.checkify(lambda t: hx.check_finite(t, "params"))(tree)
    assert said(error) == "params['b'] must be finite, got inf at index [1, 0]."
    assert hx.tree.structure(same) == hx.tree.structure(tree)
    with pytest.raises(errors.CheckFailed, match="the value must be finite, got nan"):
        hx.check_finite(hnp.nan)


@pytest.mark.parametrize("dtype", ["complex64", "float16", "bfloat16", "float8_e5m2", "float64"])
def test_check_finite_takes_every_inexact_dtype(dtype):
    assert said(hx.checkify(hx.check_finite)(hnp.ones(2, dtype))[0]) is None
    assert "at index [1]" in said(hx.checkify(hx.check_finite)(hnp.array([1.0, np.inf]).astype(dtype))[0])


@pytest.mark.parametrize(("index", "bad"), [([0, 4, -5], None), ([0, 5], 5), ([-6], -6)])
def test_check_bounds_counts_from_the_end_too(index, bad):
    error, _ = hx.checkify(lambda i: hx.check_bounds(i, 5))(hnp.array(index))
    expected = None if bad is None else f"the index must be within an axis of size 5, got {bad}"
    assert said(error) is None if bad is None else said(error).startswith(expected)


def test_check_bounds_takes_unsigned_indices_and_no_floats():
    f = lambda i: hx.check_bounds(i, 5, "{i}")
    assert said(hx.checkify(f)(hnp.uint8(7))[0]) == "{i} must be within an axis of size 5, got 7."
    with pytest.raises(errors.DTypeMismatch):
        f(1.5)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.array(1 / 3, "float64"), "0.3333333333333333"),
        (np.array(2**40 + 1, "int64"), "1099511627777"),
        (np.array(2**64 - 1, "uint64"), "18446744073709551615"),
        (np.array(-7, "int8"), "-7"),
        (np.array(200, "uint8"), "200"),
        (np.array(True), "True"),
        (np.array(1.5, "float16"), "1.5"),
        (np.array(0.1, ml_dtypes.bfloat16), "0.1"),
        (np.array(1 + 2j, "complex64"), "(1+2j)"),
        (np.array(1 / 3 - 2j, "complex128"), "(0.3333333333333333-2j)"),
        (np.array(0.1, "float32"), "0.1"),
    ],
)
def test_values_of_every_width_are_shown_as_they_are(x, text):
    error, _ = hx.jit(hx.checkify(lambda x: hx.raise_("got {}", x)))(x)
    assert error.get().startswith(f"got {text}")


def test_an_error_is_a_value():
    error, _ = hx.jit(hx.checkify(log))(-1.0)
    moved = hx.tree.map(lambda x: x, error)
    assert moved.get() == error.get() and len(hx.tree.leaves(error)) == 2
    with pytest.raises(errors.CheckFailed):
        raise pickle.loads(pickle.dumps(error.exception()))

    def again(x):
        return lax.scan(lambda c, y: (c, hx.checkify(log)(y)[0]), 0, x)[1]

    stacked = again(XS)
    assert said(stacked) == "x must be positive, got -1.0 in lane 1."
    with pytest.raises(errors.ConcretizationError, match="look outside"):
        hx.jit(lambda x: hx.checkify(log)(x)[0].get())(1.0)


def test_nested_checkify_keeps_its_own():
    def f(x):
        inner, y = hx.checkify(log)(x)
        hx.check(y < 1, "y is {}", y)
        return inner

    outer, inner = hx.jit(hx.checkify(f))(-1.0)
    assert said(inner) == "x must be positive, got -1.0." and said(outer) == "y is nan."


def test_a_check_of_nothing_holds():
    hx.check(hnp.ones((0,)) > 2, "never")
    assert said(hx.checkify(lambda x: hx.check(x > 2, "never"))(hnp.ones((0, 3)))[0]) is None


def test_an_unhandled_check_is_refused_by_a_device():
    with pytest.raises(errors.UnhandledEffect, match="Check"):
        hx.jit(log)(1.0)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda: hx.check(True, "{} {}", 1), "for each value"),
        (lambda: hx.check(True, "{name}", 1), "for each value"),
        (lambda: hx.check(True, "{}", hnp.ones(3)), "scalars"),
        (lambda: hx.jit(hx.checkify(lambda: hx.check(True, "{}" * 17, *range(17))))(), "64 bytes"),
    ],
)
def test_a_message_that_does_not_fit_is_refused_while_tracing(f, text):
    with pytest.raises(errors.BadArgument, match=text):
        f()


def endless(x):
    """Doubles without end, unless a check ends it."""
    def body(c):
        hx.check(c < 100, "{} is too large", c)
        return c * 2

    return lax.while_loop(lambda c: c > 0, body, x)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_a_program_can_end_at_the_first_failure(wrap):
    for f in (hx.checkify(wrap(endless), stop=True), wrap(hx.checkify(endless, stop=True))):
        error, y = f(1.0)
        assert said(error) == "128.0 is too large." and float(y) == 0.0
    stop = hx.checkify(wrap(log), stop=True)
    assert said(stop(-2.0)[0]) == "x must be positive, got -2.0."
    error, y = stop(1.0)
    assert not error and float(y) == 0.0
    assert float(hx.grad(lambda x: stop(x)[1])(4.0)) == 0.25


def test_ending_in_lanes_and_branches():
    assert said(hx.vmap(hx.checkify(endless, stop=True))(hnp.array([1.0, 3.0]))[0]) == "128.0 is too large in lane 0."
    assert said(hx.checkify(hx.vmap(log), stop=True)(XS)[0]) == "x must be positive, got -1.0 in lane 1."
    branch = lambda x: lax.cond(x > 0, lambda: 1.0, lambda: (hx.raise_("negative: {}", x), 0.0)[1])
    assert [said(hx.checkify(branch, stop=True)(x)[0]) for x in (1.0, -3.0)] == [None, "negative: -3.0."]
    error, ys = hx.checkify(hx.vmap(branch), stop=True)(hnp.array([1.0, -3.0, -4.0]))
    assert said(error) == "negative: -3.0 in lane 1." and ys.tolist() == [0.0, 0.0, 0.0]


def _diverging(x):
    return lax.cond(x < 0, lambda x: (hx.check(x > -2, "low {}", x), x)[1], lambda x: x, x)


def _each_row(row):
    return lax.scan(lambda c, x: (hx.check(x > -2, "low {}", x), (c + x, None))[1], 0.0, row)[0]


@pytest.mark.parametrize(
    ("f", "in_axes", "x"),
    [
        (_diverging, 0, hnp.array([1.0, -1.0, -3.0, -4.0])),
        (hx.vmap(_diverging), 0, hnp.array([[1.0, -1.0], [-1.0, -3.0]])),
        (lambda row: lax.scan(lambda c, x: (c, _diverging(x)), 0.0, row)[1], 0, hnp.array([[1.0, -1.0], [1.0, -3.0]])),
        (_each_row, hx.ragged_axis, hx.Ragged(hnp.array([1.0, -3.0, 1.0, -4.0]), (0, 2, 2))),
        (_each_row, hx.ragged_axis, hx.Ragged(hnp.array([1.0, -3.0, 1.0, -4.0]), hnp.array([0, 2, 2]))),
    ],
    ids=["branch", "lanes of lanes", "branch in a loop", "known lengths", "lengths as values"],
)
def test_a_failure_in_a_lane_names_it_whether_the_program_stops_or_not(f, in_axes, x):
    lines = [
        transform(hx.checkify(hx.vmap(f, in_axes), stop=stop))(x)[0].get().splitlines()[0]
        for stop in (False, True)
        for transform in (lambda g: g, hx.jit)
    ]
    assert len(set(lines)) == 1 and "low -3.0 in lane" in lines[0]
