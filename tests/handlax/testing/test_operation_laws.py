"""The laws hold for an operation that is made in a function, which no module has under its name."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax.testing import OPERATION_LAWS


def doubling():
    @hx.operation
    class Doubled:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return 2 * x

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), hx.perform(op, *tangents)

        def transpose(op, ct, x):
            return hx.perform(op, ct)

        def lower(op, emit, x):
            return emit.binary("add", x, x)

    return Doubled()


@pytest.mark.parametrize("law", OPERATION_LAWS, ids=lambda law: law.name)
def test_an_operation_that_is_made_in_a_function_is_checked(law):
    law.check(doubling(), [[np.array([0.5, -2.0, 3.0])], [np.ones((2, 3))]])
