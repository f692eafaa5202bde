"""Calls of LAPACK: what they are on other platforms than a CPU, and over several devices."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax.interpreters.core.record import record
from handlax.lowering.compile.emitter import lower_program

FACTORISATIONS = (
    (lax.linalg.cholesky, "cusolver_potrf_ffi"), (lax.linalg.lu, "cusolver_getrf_ffi"),
    (lax.linalg.lu, "cu_lu_pivots_to_permutation"), (lax.linalg.qr, "cusolver_geqrf_ffi"),
    (lax.linalg.qr, "cusolver_orgqr_ffi"),
)  # fmt: skip


def text(f, **options):
    def results(x):
        y = f(x)
        return list(y) if isinstance(y, tuple) else [y]

    program = record(results, [hx.typeof(np.zeros((4, 3, 3), "float32"))])
    return lower_program(program, "f", **options).text


@pytest.mark.parametrize(("f", "target"), FACTORISATIONS, ids=lambda x: getattr(x, "__name__", x))
def test_on_a_gpu_the_routine_is_that_of_cusolver(f, target):
    assert f"@{target}(" in text(f, platform="cuda")
    assert "@lapack_" not in text(f, platform="cuda")


def test_a_routine_that_a_platform_lacks_is_refused_when_the_program_is_lowered():
    with pytest.raises(hx.errors.MissingRule, match=r"geqp3 has no counterpart on the platform 'cuda'"):
        text(lambda x: lax.linalg.qr(x, pivoting=True), platform="cuda")
    with pytest.raises(hx.errors.MissingRule, match=r"getrf has no counterpart on the platform 'tpu'"):
        text(lax.linalg.lu, platform="tpu")


def test_over_several_devices_leading_dimensions_are_cut_together_and_no_others():
    mesh = hx.sharding.AbstractMesh((2,), ("i",))
    rule = "<([i, j, k], [i, l])->([i, m, n]) {i=4, j=3, k=3, l=3, m=3, n=3}, custom>"
    assert f"sdy.sharding_rule = #sdy.op_sharding_rule{rule}" in text(lax.linalg.qr, mesh=mesh)
    assert "sharding_rule" not in text(lax.linalg.qr)
