"""Softmax, an operation because its derivative needs only its value, and because it masks ragged padding once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...base.stack import perform
from ...base.wrapping import ignoring_errors
from ...core.operation import operation
from ...sharding.sharding_rules import alike
from ...types.dtypes import INEXACT, is_complex
from ..elementwise.complex_parts import real
from ..elementwise.conversion import convert, performed_wide
from ..elementwise.transcendental import exp
from ..foundations.half_precision import wide
from ..foundations.shapes import broadcast_along, reduce_sum, reduced_type
from .reductions import ReduceMax


# y[i] = e^x[i] / (sum of e^x[j] over j along axes)
@operation
class Softmax:
    axes: tuple[int, ...]
    dtypes = INEXACT

    def result_type(op, x):
        reduced_type(op, x)
        return x

    sharding_rule = alike

    def evaluate(op, x):
        return wide(lambda v: _of_array(op, v))(x)

    def batch(op, dims, x):
        (d,) = dims
        return perform(Softmax(tuple([axis + (axis >= d) for axis in op.axes])), x), d

    def jvp(op, primals, tangents):
        """dy = y dx - y (sum of y dx), whose transpose is y (ct - (sum of y ct)): one reader of each product."""
        (x,), (dx,) = primals, tangents
        y = perform(op, x)
        dy = y * dx
        return y, dy - y * broadcast_along(reduce_sum(dy, op.axes), x.type.shape, op.axes)

    def decompose(op, x):
        return performed_wide(partial(_performed, op))(x)

    def flops(op, operands, results):
        """Five operations for each element: max, difference, exponential, sum, quotient."""
        return 5 * int(operands[0].size)


@ignoring_errors
def _of_array(op: Any, x: Any) -> Any:
    """The softmax of a NumPy array."""
    top = np.max(x.real, axis=op.axes, keepdims=True, initial=-np.inf)
    powers = np.exp(x - top)
    return powers / np.sum(powers, axis=op.axes, keepdims=True)


def _performed(op: Any, x: Any) -> Any:
    """The softmax composed of operations."""
    shape, kind = x.type.shape, x.type.dtype
    top = perform(ReduceMax(op.axes, keeps_nan=False), real(x) if is_complex(kind) else x)
    powers = exp(x - broadcast_along(convert(top, kind), shape, op.axes))
    return powers / broadcast_along(reduce_sum(powers, op.axes), shape, op.axes)
