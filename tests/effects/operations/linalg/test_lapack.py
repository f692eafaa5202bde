"""Calls of LAPACK: what they are on other platforms than a CPU, over several devices, and evaluated by SciPy."""

import itertools

import numpy as np
import pytest
from helpers.matrices import matrix

import handlax as hx
from handlax import lax
from handlax.effects.base.stack import perform
from handlax.effects.operations.linalg import lapack
from handlax.effects.operations.linalg.cholesky import Cholesky
from handlax.effects.operations.linalg.determinant import Determinant, LogDeterminant
from handlax.effects.operations.linalg.eig import GEEV, Eig, _of_pairs, _paired
from handlax.effects.operations.linalg.eigh import Eigh
from handlax.effects.operations.linalg.lu import Lu
from handlax.effects.operations.linalg.qr import Geqrf, HouseholderProduct, Ormqr, Qr
from handlax.effects.operations.linalg.schur import Hessenberg, Schur, Tridiagonal
from handlax.effects.operations.linalg.solve import Solve
from handlax.effects.operations.linalg.svd import Svd, SvdAlgorithm
from handlax.effects.operations.linalg.triangular import TriangularSolve
from handlax.effects.operations.linalg.tridiagonal_systems import TridiagonalSolve
from handlax.interpreters.core.record import record
from handlax.lowering.compile.placement import over
from handlax.lowering.compile.stablehlo_modules import lower_program

FACTORISATIONS = (
    (lax.linalg.cholesky, "cusolver_potrf_ffi"), (lax.linalg.lu, "cusolver_getrf_ffi"),
    (lax.linalg.lu, "cu_lu_pivots_to_permutation"), (lax.linalg.qr, "cusolver_geqrf_ffi"),
    (lax.linalg.qr, "cusolver_orgqr_ffi"),
    (lambda x: tuple(lax.linalg.eig(x, compute_left_eigenvectors=False)), "cusolver_geev_ffi"),
    (lambda x: lax.linalg.svd(x, algorithm=SvdAlgorithm.JACOBI), "cusolver_gesvdj_ffi"),
    (lambda x: lax.linalg.svd(x, algorithm=SvdAlgorithm.POLAR), "cusolver_gesvdp_ffi"),
)


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


@pytest.mark.parametrize(("algorithm", "m", "n"), [("JACOBI", 34, 33), ("POLAR", 34, 20), ("JACOBI", 34, 20)])
def test_vectors_of_a_gpu_s_algorithms_are_cut_to_those_asked_for(algorithm, m, n):
    f = lambda x: list(lax.linalg.svd(x, full_matrices=False, algorithm=SvdAlgorithm[algorithm]))
    program = record(f, [hx.typeof(np.zeros((3, m, n), "complex64"))])
    call = next(line for line in lower_program(program, "f", platform="cuda").text.splitlines() if "cusolver_" in line)
    assert f"full_matrices = {str(algorithm == 'JACOBI' and n <= 32).lower()}" in call
    assert [t.shape for t in program.out_types] == [(3, m, n), (3, n), (3, n, n)]


def test_eigenvectors_of_pairs_are_unpacked_as_on_the_host():
    x = matrix((4, 6, 6), "float64")
    packed = [GEEV.on_host(x.dtype, 6, False, True)(each, False, True) for each in x]
    w, v = np.stack([re + 1j * im for re, im, *_ in packed]), np.stack([each[3] for each in packed])
    assert (w.imag != 0).any() and (w.imag == 0).any()
    expected = np.stack([_paired(*each) for each in zip(w, v)])
    np.testing.assert_array_equal(_of_pairs(hx.numpy.asarray(w), hx.numpy.asarray(v)), expected)


def test_the_permutation_of_several_factorisations_is_row_major_on_a_gpu_too():
    line = next(line for line in text(lax.linalg.lu, platform="cuda").splitlines() if "cu_lu_pivots" in line)
    assert line.count("dense<[1, 0]> : tensor<2xindex>") == 2 and "dense<[0, 1]>" not in line


def test_a_routine_that_a_platform_lacks_is_refused_when_the_program_is_lowered():
    with pytest.raises(hx.errors.MissingRule, match=r"geqp3 has no counterpart on the platform 'cuda'"):
        text(lambda x: lax.linalg.qr(x, pivoting=True), platform="cuda")
    with pytest.raises(hx.errors.MissingRule, match=r"getrf has no counterpart on the platform 'tpu'"):
        text(lax.linalg.lu, platform="tpu")


def test_over_several_devices_leading_dimensions_are_cut_together_and_no_others():
    mesh = hx.sharding.AbstractMesh((2,), ("i",))
    rule = "<([i, j, k], [i, l])->([i, m, n]) {i=4, j=3, k=3, l=3, m=3, n=3}, custom>"
    assert f"sdy.sharding_rule = #sdy.op_sharding_rule{rule}" in text(lax.linalg.qr, placement=over(mesh))
    assert "sharding_rule" not in text(lax.linalg.qr)


def operations(n, dtype):
    """Each operation that calls LAPACK, with operands of about n rows; n is beyond LAPACK's blocks of 32 columns."""
    x, wide = matrix((n, n), dtype), matrix((n, n // 3), dtype, 1)
    tall, right = wide.T.copy(), matrix((n, 4), dtype, 2)
    definite = x @ x.conj().T + n * np.eye(n, dtype=dtype)
    reflections = [np.asarray(y) for y in lax.linalg.geqrf(wide)]
    yield from ((Cholesky(), definite), (Lu(), x), (Lu(), wide), (Lu(), tall), (Geqrf(), tall), (Qr(True, False), wide))
    yield from ((Qr(False, False), tall), (Qr(True, True), wide), (Qr(False, True), x), (Schur(True), x))
    yield from ((HouseholderProduct(), *reflections), (Ormqr(True, True), *reflections, right), (Schur(False), x))
    yield from ((Eig(True, True, True), x), (Eig(False, False, True), x))
    yield from ((Solve(False), x, right), (Solve(True), x, right), (TridiagonalSolve(False), *x[:3], right))
    yield TriangularSolve(True, True, True, True, False), definite, right
    yield from ((Eigh(True, False, True, None), definite), (Eigh(False, False, False, None), definite))
    yield from ((Hessenberg(), x), (Tridiagonal(True), definite))
    yield from ((Svd(True, True, None), wide), (Svd(False, False, None), x), (Svd(False, True, SvdAlgorithm.QR), tall))


@pytest.mark.parametrize("op", [
    Cholesky(), Determinant(), LogDeterminant(), Eig(True, True, True), Eigh(True, False, True, None), Schur(True),
    Hessenberg(), Tridiagonal(True), Solve(False), TriangularSolve(True, True, True, True, False),
], ids=lambda op: op.name)
def test_what_is_about_square_matrices_refuses_others(op):
    operands = [np.ones((2, 3), "float32"), np.ones((3, 1), "float32")][: 1 + isinstance(op, Solve | TriangularSolve)]
    with pytest.raises(hx.errors.ShapeMismatch, match=r"must form a square matrix, got f32\[2,3\]"):
        perform(op, *map(hx.numpy.asarray, operands))


def assert_eager_is_compiled(cases):
    results = lambda *xs: [op.as_results(perform(op, *map(hx.numpy.asarray, x))) for (op, *_), x in zip(cases, xs)]
    operands = [x for _, *x in cases]
    for (op, *_), eager, compiled in zip(cases, results(*operands), hx.jit(results)(*operands)):
        for a, b in zip(eager, compiled, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(op), strict=True)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_eager_factors_and_solutions_are_the_compiled_ones_to_the_last_bit(dtype):
    assert_eager_is_compiled(list(operations(45, dtype)))


def test_matrices_with_nan_or_infinity_are_answered_at_once_and_alike():
    spoilt = list(itertools.product((np.nan, np.inf), ((0, 0), (1, 1), (5, 0), (0, -1))))
    cases = []
    for op, *xs in operations(6, "float64"):
        stacks = [np.stack([x] * len(spoilt)) for x in xs]
        for x, (value, (row, column)) in zip(stacks[0], spoilt):
            x[(row % len(x), column)[: x.ndim]] = value
        cases.append((op, *stacks))
    assert_eager_is_compiled(cases)


class Asked:
    """A library of which the calls are noted that ask for a routine's room."""

    def __init__(self, library, calls):
        self.library, self.calls = library, calls

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def called(*args, **options):
            if name.endswith("_lwork") or options.get("lwork") == -1:
                self.calls.append(name)
            return function(*args, **options)

        return called


@pytest.fixture
def asked(monkeypatch):
    calls, libraries = [], lapack._libraries()
    monkeypatch.setattr(lapack, "_libraries", lambda: [Asked(library, calls) for library in libraries])
    lapack._on_host.cache_clear()
    yield calls
    lapack._on_host.cache_clear()


def test_a_routine_is_asked_once_how_much_room_it_takes(asked):
    total = 0
    for op, *xs in operations(6, "float32"):
        perform(op, *[hx.numpy.asarray(np.stack([x] * 3)) for x in xs])
        assert len(asked) <= 1, op
        total += len(asked)
        asked.clear()
    assert total >= 5
