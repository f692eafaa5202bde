"""What is looked for in an operation, against NumPy's own checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from laws.test_laws import CASES

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.core.arrays import as_array
from handlax.effects.operations.elementwise.arithmetic import Add, Div, Mul
from handlax.effects.types.dtypes import is_inexact
from handlax.experimental import checkify
from handlax.interpreters.library.effectful.automatic_checks import NAN, NaNOrigin, may_be_nan
from handlax.library import nan_origin

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def found(f, *args, wanted=checkify.automatic_checks):
    """What is found eagerly, and in the compiled program, which must be the same."""
    lines = []
    for g in (checkify.checkify(f, wanted), hx.jit(checkify.checkify(f, wanted))):
        text = g(*args)[0].get()
        lines.append(None if text is None else text.splitlines()[0])
    assert len(set(lines)) == 1
    return lines[0]


@pytest.mark.each_choice
@pytest.mark.parametrize("i", [-4, -3, 2, 3])
@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: x[i], lambda x, i: x[i, 1:3], lambda x, i: x[hnp.array([i, 0]), 1],
        lambda x, i: x.at[i].get(mode="fill"), lambda x, i: x.at[i].set(1.0), lambda x, i: x.at[i, 0].add(1.0),
        lambda x, i: x.at[i].mul(2.0), lambda x, i: x.at[i].min(2.0), lambda x, i: x.at[hnp.array([i])].max(2.0),
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0), lambda x, i: lax.dynamic_update_index_in_dim(x, x[0], i, 0),
    ],
)
def test_an_index_is_out_of_bounds_where_numpy_says_so(read, i):
    line = found(read, hnp.asarray(X), hnp.int32(i))
    if -3 <= i < 3:
        assert line is None
    else:
        assert line.startswith("out-of-bounds indexing of f32[3")
        assert line.endswith(f": index {i + 3 if i < 0 else i} on axis 0 with size 3.")


def test_a_static_index_is_checked_too():
    error, y = checkify.checkify(lambda x: x[5, 1:3], checkify.index_checks)(hnp.asarray(X))
    assert error.get().startswith("out-of-bounds indexing") and y.tolist() == [9.0, 10.0]
    assert checkify.checkify(lambda x: x[2], checkify.index_checks)(hnp.asarray(X))[0].get() is None
    assert hnp.asarray(X)[-9].tolist() == X[0].tolist() and hnp.asarray(X)[2**40].tolist() == X[2].tolist()


def test_a_window_must_lie_within():
    assert found(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)), X, hnp.int32(1)) is None
    assert "index 2 on axis 0" in found(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)), X, hnp.int32(2))
    assert "index 3 on axis 1" in found(lambda x, i: lax.dynamic_slice(x, (0, i), (2, 2)), X, hnp.int32(3))


def with_nan(x, number):
    """The array with a NaN at its end if there is to be one, and else without any."""
    if x.size and is_inexact(x.dtype):
        x = np.where(np.isnan(x), np.ones((), x.dtype), x)
        x.reshape(-1)[x.size - number :] = np.nan
    return x


def test_nan_come_about_as_the_operation_declares():
    """Infinities among the operands, of every dtype, do not make one; one that is passed on is in the result."""
    rng = np.random.default_rng(0)
    for case, dtype in [(each, dtype) for each in CASES for dtype in sorted(filter(is_inexact, each.dtypes), key=str)]:
        shapes = max(case.shapes, key=lambda shapes: sum(map(math.prod, shapes)))
        xs = [with_nan(np.array(x), 0) for x in case.draw(dtype, shapes, rng, extremes=True)]
        origin = NAN.find(type(case.op))(case.op, *map(as_array, xs))
        if origin is NaNOrigin.MADE:
            continue
        for number in range(1 + (origin is NaNOrigin.PASSED and len(xs) > 0 and may_be_nan(as_array(xs[0])))):
            with np.errstate(all="ignore"):
                ys = case.op.as_results(hx.perform(case.op, *[with_nan(x, number) for x in xs[:1]], *xs[1:]))
            made = [np.isnan(np.asarray(y)).any() for y in ys if may_be_nan(y)]
            assert any(made) == (number > 0 and bool(made)), (case, dtype, xs)


@pytest.mark.parametrize(("kind", "number", "origin"), [
    (Add, 2.0, NaNOrigin.PASSED), (Add, 0.0, NaNOrigin.PASSED), (Add, math.inf, NaNOrigin.MADE),
    (Mul, 2.0, NaNOrigin.PASSED), (Mul, 0.0, NaNOrigin.MADE), (Mul, -math.inf, NaNOrigin.MADE),
    (Div, 2.0, NaNOrigin.PASSED), (Div, -0.0, NaNOrigin.MADE), (Div, math.inf, NaNOrigin.MADE),
])
def test_a_number_that_is_known_makes_nan_only_where_it_can(kind, number, origin):
    assert NAN.find(kind)(kind(), as_array(X), as_array(number)) is origin
    assert NAN.find(kind)(kind(), as_array(X), as_array(X)) is NaNOrigin.MADE


def test_each_array_is_asked_once_whether_it_contains_nan():
    checked = checkify.checkify(lambda x: hnp.tanh(x) * x + x.sum(), checkify.nan_checks)
    text = str(hx.make_program(checked)(X))
    assert text.count(" = reduce_or") == 4  # x, which tanh passes on, the product, both sums


def test_a_nan_is_blamed_on_the_operation_that_made_it():
    assert found(lambda x: hnp.cos(hnp.sin(x)), np.float32(np.inf)) == "nan generated by primitive: sin."
    assert found(lambda x: hnp.sin(x) + 1, np.float32(np.nan)) is None
    assert found(lambda x: hnp.log(x).sum(), X - 1) == "nan generated by primitive: log."
    assert found(lambda x: hnp.log(x), X) is None


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_a_divisor_of_zero_is_found_anywhere(dtype):
    x, zero = np.ones(3, dtype), np.array([1, 0, 2], dtype)
    assert found(lambda x, y: lax.div(x, y), x, zero, wanted=checkify.div_checks) == "division by zero."
    assert found(lambda x, y: lax.div(x, y), zero, x, wanted=checkify.div_checks) is None
    assert found(lambda x, y: lax.div(x, y), x[:0], zero[:0], wanted=checkify.div_checks) is None


# functions of a lane in which nothing goes wrong, and what goes wrong in one of them for some lanes
RIGHT = {
    "softmax": lambda row: hx.nn.softmax(row).sum(),
    "its gradient": lambda row: hx.grad(lambda r: (hx.nn.softmax(r) ** 2).sum())(row).sum(),
    "attention": lambda row: (hx.nn.softmax(row[:, None] * row, axis=-1) @ row).sum(),
    "shares of rows": lambda row: (row[:, None] / row).sum(),
    "places": lambda row: (1 / (4 - hnp.arange(row.shape[0]))).sum(),
    "places of two axes": lambda row: (row[:, None] / (4 - hnp.arange(row.shape[0]))).sum(),
    "a table": lambda row: (hnp.arange(4.0)[hnp.arange(row.shape[0])] * row).sum(),
    "rows of a lane": lambda row: row[hnp.arange(row.shape[0])[::-1]].sum(),
    "written rows": lambda row: row.at[hnp.arange(row.shape[0])].mul(2.0).sum(),
    "written table": lambda row: hnp.zeros(4).at[hnp.arange(row.shape[0])].add(row).sum(),
    "a read row": lambda row: lax.dynamic_index_in_dim(hnp.pad(row, 1), row.shape[0], 0).sum(),
    "a loop": lambda row: lax.scan(lambda c, x: (c + x, c / x), 0.0, row)[1].sum(),
    "a prefix": lambda row: hnp.log(lax.cumprod(row, reverse=True)).sum(),
    "joined": lambda row: (1 / hnp.concatenate([row, row[1:]])).sum(),
}
WRONG = {
    "a divisor": lambda row: (1 / (row - 3)).sum(),
    "a logarithm": lambda row: hnp.log(row - 2).sum(),
    "a table": lambda row: hnp.arange(2.0)[hnp.arange(row.shape[0])].sum(),
    "a written row": lambda row: row.at[row.shape[0]].set(1.0).sum(),
}
ROWS = hnp.concatenate([hnp.arange(1.0, 8.0), hnp.zeros(2)])
LANES = [hx.Ragged(ROWS, lengths) for lengths in ((3, 0, 4), hnp.array([3, 0, 4]), hnp.array([0, 0]))]


@pytest.mark.each_choice
@pytest.mark.parametrize("x", LANES, ids=["known", "values", "empty"])
@pytest.mark.parametrize("name", RIGHT)
def test_padding_and_spare_rows_of_lanes_are_not_checked(name, x):
    f = RIGHT[name]
    each = hx.vmap(f, hx.ragged_axis)
    assert checkify.checkify(each, checkify.automatic_checks)(x)[0].get() is None
    inside = checkify.checkify(f, checkify.automatic_checks)
    assert hx.vmap(inside, hx.ragged_axis)(x)[0].get() is None
    assert nan_origin(each)(x)[0].get() is None
    with hx.configure(debug_nans=True):
        each(x)


@pytest.mark.parametrize("x", LANES[:2], ids=["known", "values"])
@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_in_a_lane_is_found_around_the_lanes_and_in_them(name, x):
    f = WRONG[name]
    lines = [checkify.checkify(f, checkify.automatic_checks)(row)[0].get() for row in x.to_list()]
    first = next(i for i, line in enumerate(lines) if line is not None)
    assert checkify.checkify(hx.vmap(f, hx.ragged_axis), checkify.automatic_checks)(x)[0].get() is not None
    error = hx.vmap(checkify.checkify(f, checkify.automatic_checks), hx.ragged_axis)(x)[0].get()
    assert error.startswith(f"in lane {first}: ") and error.split()[3:5] == lines[first].split()[:2]
