"""Infinities and NaNs are values, whatever of its own NumPy lets others use."""

import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from handlax.interpreters.core.numpy_errors import ErrorState, error_state

WITHOUT = """
import warnings
from numpy._core import umath
del umath._make_extobj
warnings.simplefilter("error")
import numpy as np
import handlax as hx
from handlax import numpy as hnp
from handlax.interpreters.core.numpy_errors import ERRORS, ErrorState
assert type(ERRORS) is ErrorState
x = hnp.array([0.0, -1.0])
before = np.geterr()
for _ in range(2):
    assert (hnp.log(x)[0], float((x / 0.0)[1])) == (-np.inf, -np.inf)
    assert np.isnan(hx.jvp(hnp.log, (x,), (x,))[1][0])
assert np.geterr() == before
"""


def test_without_numpys_private_variable_nothing_warns_either():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", [SimpleNamespace(), None])
def test_the_fallback_sets_and_resets(module):
    errors, silent = error_state(module)
    assert type(errors) is ErrorState
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        token = errors.set(silent)
        inner = errors.set(silent)
        np.float32(1) / np.float32(0)
        errors.reset(inner)
        errors.reset(token)
    assert np.geterr() == before
