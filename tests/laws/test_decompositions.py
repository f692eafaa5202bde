"""A decomposition computes what the operation computes, with results of the same types, eagerly and in a handler."""

from __future__ import annotations

import pytest
from laws.test_laws import CASES, examples

from handlax.effects.base.stack import STACK, installed
from handlax.effects.core.arrays import as_array
from handlax.effects.core.columns import DECOMPOSE
from handlax.interpreters.core.body_transform import BodyTransformer
from handlax.testing import OPERATION_LAWS
from handlax.testing.closeness import assert_close
from handlax.testing.operation_laws import results

COMPILED = next(law for law in OPERATION_LAWS if law.name == "compiled")
DECOMPOSED = [case for case in CASES if DECOMPOSE.has(type(case.op))]


class Decomposing(BodyTransformer):
    """Answers an operation of one kind by its decomposition, and offers all others to the handlers outside."""

    def answer(self, op, operands):
        return self.decompose(op, operands) if type(op) is self.kind else self.outer.answer(op, operands)


@pytest.mark.parametrize("case", DECOMPOSED, ids=str)
def test_a_decomposition_computes_the_results(case):
    op = case.op
    for operands in examples(case, COMPILED, all_pairs=False):
        xs = [as_array(x) for x in operands]
        run = Decomposing(STACK.get(), "decomposing")
        run.kind = type(op)
        with installed(run):
            found = results(op, xs)
        for y, z in zip(found, results(op, xs)):
            assert y.type == z.type
            assert_close(y, z, what=f"{op} decomposed")
