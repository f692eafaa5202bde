"""Inputs for operations on matrices: factorisations and solutions of linear systems."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from handlax.effects.operations.linalg.cholesky import Cholesky
from handlax.effects.operations.linalg.determinant import Determinant, LogDeterminant
from handlax.effects.operations.linalg.lu import Lu, LuPivotsToPermutation
from handlax.effects.operations.linalg.qr import Geqrf, HouseholderProduct, Ormqr, Qr
from handlax.effects.operations.linalg.solve import Solve
from handlax.effects.operations.linalg.triangular import TriangularSolve
from handlax.effects.operations.linalg.tridiagonal_systems import TridiagonalSolve
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import Shape
from handlax.testing.strategies import Domain, Operands

from .inputs import FINITE

PLAIN = Domain(extremes=FINITE)
MATRIX = Domain(-1.0, 1.0)  # of full rank, almost surely
PIVOTS = Domain(0, 2, dtype=dtypes.int32)


@dataclass(frozen=True)
class Definite(Domain):
    """Hermitian positive definite matrices."""

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        x = rng.standard_normal(shape)
        if dtypes.is_complex(dtype):
            x = x + 1j * rng.standard_normal(shape)
        return np.asarray(x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(dtype)


@dataclass(frozen=True)
class Dominant(Domain):
    """Matrices whose triangles are well conditioned."""

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.asarray(super().draw(dtype, shape, rng) / 8 + 2 * np.eye(shape[-1])).astype(dtype)


SOLUTIONS = [
    Operands(Cholesky(), (Definite(),), (((3, 3),), ((2, 3, 3),), ((0, 0),))),
    *[
        Operands(
            TriangularSolve(left, *flags),
            (Dominant(), PLAIN),
            (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 4))) if left else (((3, 3), (2, 3)), ((2, 3, 3), (2, 4, 3))),
        )
        for left, *flags in product((False, True), repeat=5)
    ],
    *[
        Operands(Solve(flag), (MATRIX, PLAIN), (((3, 3), (3, 2)), ((2, 4, 4), (2, 4, 1)), ((0, 0), (0, 2))))
        for flag in (False, True)
    ],
    *[
        Operands(
            TridiagonalSolve(flag), (MATRIX, Domain(2.0, 3.0), MATRIX, PLAIN),
            (((3,), (3,), (3,), (3, 2)), ((2, 4), (2, 4), (2, 4), (2, 4, 1)), ((1,), (1,), (1,), (1, 2))),
        )
        for flag in (False, True)
    ],
    *[
        Operands(op(), (MATRIX,), (((3, 3),), ((2, 4, 4),), ((2, 2),), ((2, 0, 0),)))
        for op in (Determinant, LogDeterminant)
    ],
]

FACTORISATIONS = [
    Operands(Lu(), (MATRIX,), (((3, 3),), ((2, 4, 2),), ((2, 4),), ((2, 0, 3),))),
    Operands(LuPivotsToPermutation(3), (PIVOTS,), (((3,),), ((2, 2),), ((0, 3),))),
    *[
        Operands(Qr(*flags), (MATRIX,), (((3, 3),), ((2, 4, 2),), ((2, 4),), ((2, 3, 0),)))
        for flags in product((False, True), repeat=2)
    ],
    Operands(Geqrf(), (MATRIX,), (((3, 3),), ((2, 4, 2),), ((2, 4),), ((2, 3, 0),))),
    Operands(HouseholderProduct(), (MATRIX, MATRIX), (((3, 3), (2,)), ((2, 4, 2), (2, 2)), ((2, 3, 0), (2, 0)))),
    *[
        Operands(
            Ormqr(left, adjoint), (MATRIX, MATRIX, MATRIX),
            (((3, 2), (2,), (3, 4) if left else (4, 3)), ((2, 4, 2), (2, 1), (2, 4, 3) if left else (2, 3, 4))),
        )
        for left, adjoint in product((False, True), repeat=2)
    ],
]

CASES = [*SOLUTIONS, *FACTORISATIONS]
