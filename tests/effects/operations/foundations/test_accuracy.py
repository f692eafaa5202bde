"""What is asked of functions with ``accuracy`` is compared with the bounds that the page of accuracies states."""

import pathlib
import re

import numpy as np
import pytest

from handlax import errors, lax
from handlax.dtypes import finfo

pytestmark = pytest.mark.optimised

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "explanation" / "accuracy.md"
FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log1p", "logistic", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "cbrt", "erfc"
)


def stated(name):
    """The larger bound of the page, eager or compiled."""
    cells = re.search(rf"\| `{name}` \| (\d+) \| (\d+) ", PAGE.read_text())
    return max(map(int, cells.groups()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_much_as_the_page_states_is_granted_and_no_more(name, dtype):
    f, ulps, x = getattr(lax, name), stated(name), np.array(0.5, dtype)
    eps = float(finfo(dtype).eps)
    for accuracy in (None, *lax.AccuracyMode, lax.Tolerance(ulps=ulps), lax.Tolerance(rtol=ulps * eps, atol=1e-30)):
        assert f(x, accuracy=accuracy) == f(x)
    for accuracy in (lax.Tolerance(atol=1.0), lax.Tolerance(1.0, 0.9 * ulps * eps, ulps - 1)):
        with pytest.raises(errors.BadArgument, match=f"bounded by ulps={ulps}"):
            f(x, accuracy=accuracy)


def test_tolerances_are_values():
    assert lax.Tolerance(rtol=0.5) == lax.Tolerance(0.0, 0.5, 0) != lax.Tolerance(atol=0.5)
    for given in ({}, {"atol": -1.0, "ulps": 2}):
        with pytest.raises(ValueError, match="none negative"):
            lax.Tolerance(**given)


def test_complex_functions_have_no_bound():
    assert lax.exp(1j, accuracy=lax.AccuracyMode.HIGHEST) == lax.exp(1j)
    with pytest.raises(errors.BadArgument, match="not bounded"):
        lax.exp(1j, accuracy=lax.Tolerance(ulps=1000))
