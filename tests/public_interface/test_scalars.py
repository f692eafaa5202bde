"""A number takes the dtype of the arrays that it meets, rounded once, in every public function."""

import importlib

import numpy as np
import pytest

from handlax import numpy as hnp
from handlax import tree
from handlax.errors import IntegerOverflow

from .scalar_cases import FLOATS, INTEGERS, WITHOUT

MODULES = ("numpy", "numpy.linalg", "lax", "lax.linalg", "nn", "nn.initializers", "random")
FLOAT, INTEGER = 0.1, 2**40 + 1
OTHER_FLOATS = (float(np.float32(FLOAT)), FLOAT - 1e-9)
OTHER_INTEGERS = (INTEGER - 1, 1)


def equal(a, b):
    xs, ys = tree.leaves(a), tree.leaves(b)
    return len(xs) == len(ys) and all(
        x.dtype == y.dtype and np.array_equal(np.asarray(x), np.asarray(y), equal_nan=x.dtype.kind in "fc")
        for x, y in zip(xs, ys)
    )


def check(call, x, number, others):
    """``call`` gives for a Python and a NumPy number what it gives for an array, and not what it gives for others."""
    right = call(x, hnp.array(np.array(number)))
    assert any(not equal(right, call(x, hnp.array(np.array(other)))) for other in others)
    assert equal(call(x, number), right)
    assert equal(call(x, np.array(number)[()]), right)


@pytest.mark.parametrize("case", FLOATS)
def test_a_float_is_rounded_to_the_dtype_of_the_array(case):
    check(FLOATS[case], hnp.array(np.array([0.1, -1.7, 0.3, 2.5])), FLOAT, OTHER_FLOATS)


@pytest.mark.parametrize("case", INTEGERS)
def test_an_integer_takes_the_dtype_of_the_array(case):
    check(INTEGERS[case], hnp.array(np.array([2**40 + 1, -7, 3, 12])), INTEGER, OTHER_INTEGERS)


@pytest.mark.parametrize("call", [
    lambda x, n: x + n, lambda x, n: x.at[0].set(n), lambda x, n: hnp.full_like(x, n), lambda x, n: hnp.append(x, n),
    lambda x, n: hnp.pad(x, 1, constant_values=n), lambda x, n: hnp.where(x > 0, x, n),
])
def test_an_integer_that_fits_neither_the_array_nor_the_default_is_refused_and_others_wrap_around(call):
    x = hnp.zeros(2, "int8")
    with pytest.raises(IntegerOverflow, match=r"an integer must fit its dtype, got 1099511627776"):
        call(x, 2**40)
    assert equal(call(x, 300), call(x, 44))


@pytest.mark.parametrize("call", [
    lambda x, n: x + n, lambda x, n: x < n, lambda x, n: x / n, lambda x, n: hnp.where(x > 0, x, n),
    lambda x, n: hnp.arctan2(n, x), lambda x, n: hnp.append(x, n),
])
@pytest.mark.parametrize("number", [np.uint8(200), np.int16(300), np.int32(7), np.float16(0.1), np.float32(2.5)])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float64", "bool"])
def test_a_numpy_scalar_of_a_width_that_was_chosen_is_an_array_of_it(call, number, dtype):
    x = hnp.array(np.array([1, 0, 5]).astype(dtype))
    assert equal(call(x, number), call(x, hnp.array(np.array(number))))


def test_a_numpy_integer_of_64_bits_never_wraps_around():
    x = hnp.array(np.array([1, 2], "uint8"))
    assert (x + np.int64(3)).dtype == "uint8" and (x / np.int64(-2)).tolist() == [-0.5, -1.0]
    for number in (np.int64(-3), np.int64(300)):
        with pytest.raises(IntegerOverflow, match=f"got {number} for uint8"):
            _ = x < number


def test_every_public_function_is_called_with_a_number_or_says_why_not():
    listed = {case.split()[0] for case in (*FLOATS, *INTEGERS)}
    without, module = [], ""
    for word in " ".join(WITHOUT.values()).split():
        if word.endswith(":"):
            module = word.removesuffix(":")
        else:
            without.append(f"{module}.{word}")
    assert len(without) == len(set(without)) and not listed & set(without)
    public = set()
    for name in MODULES:
        module = importlib.import_module(f"handlax.{name}")
        own = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        found = {n: getattr(module, n) for n in own}
        public |= {f"{name}.{n}" for n, f in found.items() if callable(f) and not isinstance(f, type)}
    listed = {case for case in listed if not case.startswith(("operator.", "Array."))}
    missing, gone = sorted(public - listed - set(without)), sorted((listed | set(without)) - public)
    assert not missing, f"scalar_cases.py: add a call to FLOATS or INTEGERS, or a word to WITHOUT, for {missing}"
    assert not gone, f"scalar_cases.py: these are not public: {gone}"
