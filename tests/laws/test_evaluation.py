"""Evaluate rules perform nothing and read no context: neither handlers nor settings."""

from __future__ import annotations

import contextvars
import itertools

import numpy as np
import pytest
from laws.test_laws import CASES, examples

import handlax as hx
from handlax.effects.base.config import CONFIG
from handlax.effects.base.stack import STACK
from handlax.effects.core.columns import EVALUATE
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.testing import OPERATION_LAWS
from handlax.testing.closeness import data

KINDS = sorted({type(case.op) for case in CASES}, key=lambda kind: kind.name)
TYPING = next(law for law in OPERATION_LAWS if law.name == "typing")
FEW = 3  # draws of each operation with certain fields


class Refused:
    """In place of the handlers and settings in force: what asks it for anything fails."""

    def __getattr__(self, name):
        raise AssertionError(f"the rule reads the context: {name}")


def evaluated_apart(rule, op, operands):
    """What the rule gives in a context of which it must read nothing but NumPy's handling of errors."""
    context = contextvars.Context()
    for variable in (STACK, CONFIG):
        context.run(variable.set, Refused())
    context.run(np.seterr, all="ignore")
    return context.run(rule, op, *operands)


@pytest.mark.parametrize("initial", sorted({kind.name[0] for kind in KINDS}))
def test_an_evaluate_rule_performs_nothing_and_reads_no_context(initial):
    for case in CASES:
        op = case.op
        if op.name[0] != initial or op.bodied or op.deferred:  # what these evaluate are programs
            continue
        for operands in itertools.islice(examples(case, TYPING), FEW):
            try:
                found = evaluated_apart(EVALUATE.find(type(op)), op, map(data, operands))
            except AssertionError as error:
                raise AssertionError(f"{op}: {error}") from error
            for y, kind in zip(op.as_results(found), op.as_results(op.result_type(*map(hx.typeof, operands)))):
                assert np.shape(y)[: len(kind.shape)] == kind.shape, op


@pytest.mark.parametrize("rule", [
    lambda op, x: hx.numpy.sin(x), lambda op, x: np.sin(x).astype(hx.dtypes.canonicalize_dtype(float)),
], ids=["performs", "reads a setting"])
def test_a_rule_that_does_is_found(rule):
    with pytest.raises(AssertionError, match="the rule reads the context"):
        evaluated_apart(rule, Sin(), [np.ones(2)])
