"""``debug_nans``: the operation that gave the first NaN is named with its line."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax.errors import FoundNaN


def test_debug_nans_names_the_operation_and_the_line():
    f = hx.jit(lambda x: hx.lax.log(x) + 1)
    with hx.debug_nans():
        assert float(f(1.0)) == 1.0
        with pytest.raises(FoundNaN, match=r"log.*NaN"):
            f(-1.0)
    assert np.isnan(np.asarray(f(-1.0)))


def test_of_donated_arguments_the_result_alone_is_named():
    f = hx.jit(lambda x: hx.lax.log(x) + 1, donate_argnums=0)
    with hx.debug_nans(), pytest.raises(FoundNaN, match=r"<lambda>: results must be numbers, got .*NaN"):
        f(hx.device_put(np.full(3, -1, "float32")))
