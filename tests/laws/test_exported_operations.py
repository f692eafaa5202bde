"""Every operation is exported: the artifact that was written and read computes what the compiled operation does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from laws.test_laws import CASES, examples

import handlax as hx
from handlax.effects.core.arrays import as_array, perform
from handlax.testing import OPERATION_LAWS
from handlax.testing.closeness import assert_close

(COMPILED,) = [law for law in OPERATION_LAWS if law.name == "compiled"]
STABLE = [case for case in CASES if not COMPILED.reason(case.op.exempt) and not hasattr(case.op, "mesh")]

UNPROMISED = [f"lapack_{t}{name}_ffi" for name in ("gesvd", "geqp3", "ormqr", "unmqr") for t in "sdcz"]
CHECKS = [*map(hx.export.DisabledSafetyCheck.custom_call, UNPROMISED)]


def exported(case):
    """Give the operation on its inputs of all dtypes, jitted, and the inputs."""
    known = replace(case, dtypes=frozenset([t for t in case.dtypes if t.name not in ("int2", "uint2")]))  # JAX's format
    draws = [[as_array(x) for x in operands] for operands in examples(known, COMPILED, all_pairs=False)]
    return hx.jit(lambda draws: [perform(case.op, *xs) for xs in draws]), draws


@pytest.mark.sweep
@pytest.mark.parametrize("case", STABLE, ids=str)
def test_an_exported_operation_gives_what_the_compiled_one_gives(case):
    f, draws = exported(case)
    read = hx.export.deserialize(hx.export.export(f, disabled_checks=CHECKS)(draws).serialize())
    for y, expected in zip(hx.tree.leaves(read.call(draws)), hx.tree.leaves(f(draws)), strict=True):
        assert y.type == expected.type.strong()
        assert_close(y, expected, what=f"{case.op} exported")
