"""Inputs for linear maps with a derivative rule of the user: one residual, one value."""

from __future__ import annotations

import numpy as np
from laws.inputs import REAL

from handlax import tree
from handlax.effects.control.custom_rules import Adjoint
from handlax.effects.functions.keys import UserFunction
from handlax.effects.types.array_type import array_type
from handlax.interpreters.custom.custom_vjp import UserLinear
from handlax.testing.strategies import Operands

NUMBER = array_type((), np.dtype("float64"))
ROW = array_type((3,), np.dtype("float64"))


def spread(residuals, values):
    """From a number to a row."""
    return [values[0] * residuals[0]]


def gathered(residuals, cts):
    """From a row to a number: the adjoint of ``spread``."""
    return [(cts[0] * residuals[0]).sum()]


ONE = tree.structure([0])
FORWARD = UserLinear(UserFunction(spread), (), ONE, ONE, ONE, (ROW,))
BACKWARD = UserLinear(UserFunction(gathered), (), ONE, ONE, ONE, (NUMBER,))
FLOAT64 = frozenset((np.dtype("float64"),))

CASES = [
    Operands(Adjoint(BACKWARD, FORWARD, (ROW,), (ROW,)), (REAL, REAL), (((3,), ()),), FLOAT64),
    Operands(Adjoint(BACKWARD, None, (ROW,), (ROW,)), (REAL, REAL), (((3,), ()),), FLOAT64),
    Operands(Adjoint(FORWARD, None, (ROW,), (NUMBER,)), (REAL, REAL), (((3,), (3,)),), FLOAT64),
]
