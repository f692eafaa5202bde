"""Products of two dtypes, and by a precision or an algorithm: eagerly, compiled, and in the text of the program."""

import re

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import BadArgument
from handlax.lax import DotAlgorithmPreset

NAMED = [preset for preset in DotAlgorithmPreset if preset is not DotAlgorithmPreset.DEFAULT]
X, Y = np.linspace(0.1, 1.0, 6).reshape(2, 3), np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def text(x, y, **options):
    return hx.jit(lambda x, y: lax.dot(x, y, **options)).lower(x, y).as_text()


@pytest.mark.parametrize("preset", NAMED, ids=str)
def test_operands_are_rounded_to_a_dtype_that_the_algorithm_takes(preset):
    """Its own dtype where it takes that, else the first that it does; the sum has the dtype of the operands."""
    stored = preset.value.storage
    for dtype in ("float32", "float64"):
        x, y = hnp.asarray(X, dtype), hnp.asarray(Y, dtype)
        z = lax.dot(x, y, precision=preset)
        rounded = [v.astype(dtype if dtype in stored or not stored else stored[0]).astype("float64") for v in (x, y)]
        assert z.dtype == dtype
        error = 4 * max([float(hx.dtypes.finfo(each).eps) for each in (preset.value.accumulate or dtype, dtype)])
        np.testing.assert_allclose(z, rounded[0] @ rounded[1], rtol=error, atol=error)


@pytest.mark.parametrize("preset", NAMED, ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_text_names_the_algorithm(preset, dtype):
    recipe = preset.value
    found = text(hnp.asarray(X, dtype), hnp.asarray(Y, dtype), precision=preset)
    names = dict(re.findall(r"(\w+_type|num_primitive_operations|allow_imprecise_accumulation) = (\w+)", found))
    short = {"float8_e5m2": "f8E5M2", "f8": "f8E5M2", "float16": "f16", "bfloat16": "bf16", "tf32": "tf32",
             "float32": "f32", "float64": "f64", "": {"bfloat16": "bf16", "float32": "f32"}[dtype]}
    assert names["lhs_precision_type"] == names["rhs_precision_type"] == short[recipe.multiply]
    assert names["accumulation_type"] == short[recipe.accumulate]
    assert names["num_primitive_operations"] == str(recipe.passes)
    assert names["allow_imprecise_accumulation"] == str(recipe.imprecise).lower()


@pytest.mark.parametrize(("given", "same"), [
    ("BF16_BF16_F32", DotAlgorithmPreset.BF16_BF16_F32), (DotAlgorithmPreset.DEFAULT, None),
    ("highest", ("HIGHEST",) * 2), ((None, "high"), (lax.Precision.DEFAULT, lax.Precision.HIGH)),
    ("DEFAULT", lax.Precision.DEFAULT),
])
def test_a_precision_has_several_names(given, same):
    assert text(X, Y, precision=given) == text(X, Y, precision=same)


@pytest.mark.parametrize("wrong", ["fast", 3, ("high",) * 3, ("high", 3), lax.Precision])
def test_what_is_no_precision_is_refused(wrong):
    with pytest.raises(BadArgument, match=r"precision: must be a lax\.Precision, its name, a pair of these"):
        lax.dot(X, Y, precision=wrong)


SMALL = ["float8_e5m2", "float8_e4m3fn", "int4", "float32", "bfloat16"]


@pytest.mark.each_choice
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("left", SMALL)
@pytest.mark.parametrize("right", SMALL)
def test_products_of_two_dtypes_are_those_of_their_numbers(left, right, compiled):
    x, y = np.array([[1, 2], [-3, 0]]), np.array([[2, 1], [1, -2]])
    f = lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="float32")
    z = (hx.jit(f) if compiled else f)(hnp.asarray(x, left), hnp.asarray(y, right))
    assert z.dtype == "float32" and z.tolist() == (x @ y).tolist()


def test_a_product_of_floats_as_integers_is_constant_almost_everywhere():
    f = lambda x: lax.dot(x, Y.astype(np.float32), preferred_element_type="int32")
    y, dy = hx.jvp(f, (X.astype(np.float32),), (X.astype(np.float32),))
    assert y.dtype == "int32" and dy.dtype == hx.dtypes.float0


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))], ids=str)
def test_dot_is_that_of_numpy_for_vectors_and_matrices(shapes):
    x, y = (np.arange(1.0, 1 + np.prod(shape), dtype="float32").reshape(shape) for shape in shapes)
    numbers = (((x.ndim - 1,), (0,)), ((), ()))
    np.testing.assert_array_equal(lax.dot(x, y), np.dot(x, y))
    np.testing.assert_array_equal(lax.dot(x, y, dimension_numbers=numbers), np.dot(x, y))


def test_the_hint_says_which_operand_would_fit_transposed():
    fits = lambda left, right: lax.dot(np.ones(left), np.ones(right))
    for shapes, hint in (((2, 3), (2, 3)), "rhs would"), (((2, 3), (2,)), "lhs would"), (((2, 3), (4,)), None):
        with pytest.raises(hx.errors.ShapeMismatch) as found:
            fits(*shapes)
        assert (found.value.hint or "").startswith(hint or "") and bool(found.value.hint) == (hint is not None)
