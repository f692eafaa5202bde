"""Functions are compared on drawn inputs: those that differ are found, with simple inputs and the operation."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.operations import Sin
from handlax.testing import WAYS, LawFails, Way, assert_close, compare, comparisons
from handlax.testing.comparisons import DrawnInputs, on_devices
from handlax.testing.strategies import Domain, arrays

VECTORS = st.tuples(arrays("float64", (8,), domain=Domain(-3.0, 3.0)))
PAIRS = st.tuples(*[arrays("float64", (3,), domain=Domain(-3.0, 3.0))] * 2)


def test_a_function_equals_another_library_s():
    report = compare(hnp.sinh, np.sinh, inputs=VECTORS, examples=20, loose=10.0, seconds=300.0)
    assert [examples for _, examples, _ in report.held] == [20]


def test_a_function_that_differs_is_found_with_a_simple_input():
    with pytest.raises(LawFails, match="<lambda> equals absolute") as caught:
        compare(lambda x: hnp.maximum(x, -x - 0.5), np.abs, inputs=VECTORS)
    (x,) = caught.value.example
    assert np.count_nonzero(x) == 1 and x.min() < 0


def test_a_function_is_the_same_in_all_ways():
    def f(x):
        y = lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) + x, x)
        return {"y": lax.cond(y.sum() > 0, lambda: y, lambda: -y), "sum": y.sum()}

    report = compare(f, inputs=VECTORS, examples=2)
    assert [law.name for law, *_ in report.held] == [way.name for way in WAYS]


def test_each_way_gets_its_share_of_the_time():
    def slow(f):
        return lambda *xs: time.sleep(0.02) or f(*xs)

    ways = [Way("slow", slow), Way("plain", lambda f: f)]
    report = compare(hnp.sin, hnp.sin, inputs=VECTORS, ways=ways, examples=10**6, seconds=0.5)
    counts = [examples for _, examples, _ in report.held]
    assert len(counts) == 3 and min(counts) >= 1 and max(counts) - min(counts) <= 1


def test_several_functions_and_ways_are_compared_at_once():
    report = compare(hnp.sinh, np.sinh, hnp.sinh, inputs=VECTORS, ways=WAYS[:1], examples=2, loose=10.0)
    assert [law.name for law, *_ in report.held] == ["sinh 2", "sinh 3", "NumPy"]


def test_functions_of_one_name_are_numbered():
    with pytest.raises(LawFails, match="<lambda> 1 equals <lambda> 2"):
        compare(lambda x: x, lambda x: -x - 1, inputs=VECTORS)


@pytest.mark.parametrize(("broken", "of"), [
    (lambda x: not np.any(x), arrays("float64", (3,))),
    (lambda x: x.size == 0, arrays("float64", st.sampled_from([(3,), (4,), (0,)]))),
    (lambda x: x.ndim and x.size == 1, arrays("float64", st.sampled_from([(3,), (4,), (1,)]))),
    (lambda x: np.any(x == 0), arrays("float64", (3,))),
    (lambda x: np.any(x < 0), arrays("float64", (3,))),
    (lambda x: np.any(np.isnan(x)), arrays("float64", (3,))),
    (lambda x: np.any(np.isinf(x)), arrays("float64", (3,))),
    (lambda x: np.any(np.abs(x) > 1e6), arrays("float64", (3,))),
], ids=["zeros", "empty", "one element", "a zero", "a negative number", "NaN", "infinity", "a large number"])
def test_what_breaks_functions_is_among_the_first_inputs(broken, of):
    def partial(x):
        assert not broken(x), "what breaks it"
        return hnp.asarray(x)

    with pytest.raises(LawFails, match="what breaks it"):
        compare(hnp.asarray, partial, inputs=st.tuples(of), examples=9, seconds=300.0)


def test_inputs_are_distinct_and_few_are_zeros():
    """Of each argument."""
    seen = []
    compare(lambda y, x: seen.append((y, x)) or y, lambda y, x: y, inputs=PAIRS, seconds=300.0)
    assert len(seen) == len({repr(args) for args in seen}) == 50
    assert min([sum(args[i].any() for args in seen) for i in range(2)]) >= 30


@pytest.mark.parametrize("seed", range(0, 500, 50))
def test_a_quadrant_that_is_wrong_is_found_with_any_seed(seed):
    def arctan2(y, x):
        with np.errstate(over="ignore"):
            quotient = y / np.where(x == 0, 1.0, x)
        return np.where(x == 0, np.arctan2(y, x), np.arctan(quotient) + np.pi * (x < 0))

    drawn = DrawnInputs(PAIRS)
    inputs = [drawn.example(None, number) for number in range(seed, seed + 50)]
    assert not all([np.allclose(arctan2(*args), np.arctan2(*args)) for args in inputs])


def test_an_exception_comes_with_the_inputs_and_the_function_that_raised_it():
    def broken(x):
        raise ValueError(f"there is no way, of {x.size}")

    said = r"(?s)  broken raises ValueError: there is no way, of 8\n.*The inputs: \(array\(\[0"
    with pytest.raises(LawFails, match=said):
        compare(hnp.sin, broken, inputs=VECTORS)
    with pytest.raises(LawFails, match=r"  sin by broken raises ValueError: there is no way, of 8\n"):
        compare(hnp.sin, inputs=VECTORS, ways=[Way("broken", lambda f: broken)])


def positive(error):
    """A function that raises an error where an element is negative."""
    def identity(x):
        if np.any(x < 0):
            raise error("must be positive")
        return x

    return identity


def test_functions_that_raise_one_kind_of_error_agree():
    """Also if one's class is derived from the other's, as those of this library are from Python's."""
    (held,) = compare(positive(ValueError), positive(hx.errors.BadArgument), inputs=VECTORS, seconds=300.0).held
    assert held.examples == 50


def test_functions_that_raise_two_kinds_of_errors_differ():
    said = "identity 1 raises ValueError: must be positive\n  identity 2 raises TypeError: must be positive\n"
    with pytest.raises(LawFails, match=said):
        compare(positive(ValueError), positive(TypeError), inputs=VECTORS)


def test_functions_that_raise_for_every_input_are_not_compared():
    said = "<lambda> 1 and <lambda> 2 must return for some inputs, every input raised TypeError: .*takes 0 positional"
    with pytest.raises(hx.errors.BadArgument, match=said):
        compare(lambda: 0.0, lambda: 0.0, inputs=VECTORS, examples=3)


def test_a_report_says_that_there_is_one_device(monkeypatch):
    only = hx.devices()[:1]
    monkeypatch.setattr(comparisons, "local_devices", lambda: only)
    report = compare(hnp.sin, inputs=VECTORS, examples=1)
    assert report.left_out == {"devices": f"there is one device, {only[0]}, and nothing to divide"}
    assert [law.name for law, *_ in report.held] == [way.name for way in WAYS[:3]]


@pytest.mark.parametrize(("shape", "count"), [((8,), 8), ((6, 5), 6), ((1, 3), 3), ((), 8), ((0, 11), 8)])
def test_a_function_is_executed_on_several_devices(shape, count):
    x = np.ones(shape, "float32")
    assert len(hx.devices()) == 8
    assert len(on_devices(hnp.sin)(x).sharding.device_set) == count


def test_numbers_keep_their_weak_types_on_devices():
    vectors = arrays("float16", (8,), domain=Domain())
    compare(lambda x, y: x * y, inputs=st.tuples(st.floats(-1, 1), vectors), examples=5)


@pytest.mark.parametrize(("made", "expected", "said"), [
    (lambda x: (x, [x]), lambda x: (x, (x,)), r"the results at \[1\]: a list of 1, expected a tuple of 1"),
    (lambda x: {"a": x}, lambda x: {"a": x, "b": x}, r"the results: .*'b'"),
    (lambda x: [x, None], lambda x: [x, x], r"the results at \[1\]: None, expected a leaf"),
    (lambda x: {"a": [x, x[:2]]}, lambda x: {"a": [x, x[:3]]},
     r"the result at \['a'\]\[1\]: the type is f64\[2\], expected f64\[3\]"),
    (lambda x: hnp.float32(x), lambda x: x * 1.0, r"the result: the type is f32\[8\], expected f64\[8\]"),
    (lambda x: hnp.float32(1.0), lambda x: hnp.asarray(1.0), r"the result: the type is f32\[\], expected f32\[\]~"),
    (lambda x: x > 0, lambda x: np.asarray(x > 0, "int8"), r"the result: booleans of bool, expected integers of int8"),
    (lambda x: x[:2], lambda x: np.asarray(x[:3]), r"the result: shapes \(2,\) and \(3,\)"),
])
def test_results_of_another_structure_or_type_are_found_and_their_place_is_named(made, expected, said):
    with pytest.raises(LawFails, match=said):
        compare(lambda x: made(hnp.asarray(x)), lambda x: expected(hnp.asarray(x)), inputs=VECTORS, examples=1)


def test_a_weak_type_that_a_way_makes_strong_is_found():
    strong = Way("strong", lambda f: lambda *xs: hx.tree.map(hnp.float32, f(*xs)))
    with pytest.raises(LawFails, match=r"the type is f32\[\], expected f32\[\]~"):
        compare(lambda x: x + 1.0, inputs=st.tuples(st.floats(-1, 1)), ways=[strong])


def test_a_way_that_is_one_for_this_function_alone_is_compared_too():
    with pytest.raises(LawFails, match="The first operation that differs: unknown, since TypeError"):
        compare(hnp.sin, inputs=VECTORS, ways=[Way("one array", lambda f: lambda x: 1.0 + f(x))], examples=1)


def test_defaults_of_other_libraries_are_no_differences():
    compare(lambda x: (hnp.float32(x).sum(), hnp.argmax(x), hnp.float16(x)), lambda x: (x.sum(), x.argmax(), x),
            inputs=VECTORS, examples=10, loose=2.0)


def test_a_function_that_writes_to_its_argument_changes_no_other_s():
    def doubled(x):
        x *= 2
        return x

    compare(lambda x: hnp.asarray(x) * 2, doubled, inputs=VECTORS, examples=5)


def test_inputs_that_fail_are_shown_and_found_again_by_their_seed():
    wrong = lambda x: hnp.where(hnp.asarray(x) > 1.5, 0.0, x)
    with pytest.raises(LawFails, match=r"The inputs: \(2\.0,\)") as caught:
        compare(wrong, lambda x: hnp.asarray(x), inputs=st.tuples(st.floats(0.0, 3.0)))
    seed = int(str(caught.value).rpartition("seed=")[2].rstrip("."))
    with pytest.raises(LawFails):
        compare(wrong, lambda x: hnp.asarray(x), inputs=st.tuples(st.floats(0.0, 3.0)), seed=seed, examples=1)


def test_integers_that_differ_are_shown_as_floats_are():
    """Also of two dtypes."""
    inputs = st.tuples(arrays("int64", (3,), domain=Domain(-9, 9)))
    with pytest.raises(LawFails) as caught:
        compare(lambda x: hnp.asarray(x, "int32"), lambda x: x + (x > 3), inputs=inputs, seconds=300.0)
    assert [line.strip() for line in str(caught.value).splitlines()[1:5]] == [
        "the result: 1 of 3 elements differ", "got      [0, 0, 4]", "expected [0, 0, 5]",
        "first at [2]: got 4, expected 5",
    ]


def test_the_first_inputs_are_compared_whatever_the_seconds_say():
    (held,) = compare(hnp.asarray, np.asarray, inputs=VECTORS, seconds=0.0).held
    assert held.examples == len(comparisons.EDGES) == 10


def test_the_operation_that_differs_is_looked_for_once(monkeypatch):
    """And not for all inputs that are simpler ones."""
    looked = []
    monkeypatch.setattr(comparisons, "first_difference", lambda *args, otherwise: looked.append(args))
    with pytest.raises(LawFails, match="The first operation that differs: none"):
        compare(hnp.sin, inputs=VECTORS, ways=[Way("wrong", lambda f: lambda x: f(x) + 1.0)])
    assert len(looked) == 1


def test_inputs_are_made_simpler_as_long_as_there_is_time():
    wrong = lambda x: hnp.maximum(x, -hnp.asarray(x) - 0.5)
    with pytest.raises(LawFails, match="The time was over while this was made smaller"):
        compare(wrong, np.abs, inputs=VECTORS, seconds=0.0)


def test_bad_arguments_are_refused():
    with pytest.raises(hx.errors.BadArgument, match="must draw tuples of arguments, got ndarray"):
        compare(hnp.sin, np.sin, inputs=arrays("float64", (3,)))
    with pytest.raises(hx.errors.BadArgument, match="got neither"):
        compare(hnp.sin, inputs=VECTORS, ways=())


def test_the_first_operation_that_a_way_computes_otherwise_is_named():
    wrong = hx.handle(hx.handler({Sin: lambda op, x: hnp.where(x > 1.0, 2.0, hx.perform(op, x))}))
    with pytest.raises(LawFails, match=r"The first operation that differs: sin at test_comparisons.py:\d+"):
        compare(lambda x: hnp.exp(hnp.sin(x)), inputs=VECTORS, ways=[Way("a wrong sine", wrong)])


def test_integers_are_equal_and_floats_are_close():
    assert_close(np.float32(1.0), np.float32(1.0 + 1e-6))
    with pytest.raises(AssertionError):
        assert_close(np.float32(1.0), np.float32(1.0 + 1e-4))
    with pytest.raises(AssertionError):
        assert_close(np.int32(1), np.int32(2))
    with pytest.raises(AssertionError, match="dtypes"):
        assert_close(np.float32(1.0), np.float64(1.0))
