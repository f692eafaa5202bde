"""Inputs for the laws: the domains that most operations share."""

from __future__ import annotations

from handlax.testing.strategies import Domain

FINITE = (0.0, -0.0, 1.0, -1.0)
SPECIAL = (*FINITE, float("inf"), float("-inf"), float("nan"))
REAL = Domain(extremes=SPECIAL)
POSITIVE = Domain(0.1, 3.0, extremes=SPECIAL)
UNIT = Domain(-0.9, 0.9, extremes=SPECIAL)
SMOOTH = Domain(apart=(0.0,), extremes=SPECIAL)
INTEGERS = Domain(-(2.0**62), 2.0**62, extremes=(0, 1, -1, 127, -128, 2**31 - 1, -(2**31), -(2**63)))
