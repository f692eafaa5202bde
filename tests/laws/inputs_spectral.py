"""Inputs for eigenvalues and singular values, and for the reductions that lead to them."""

from __future__ import annotations

from handlax.effects.operations.linalg.eig import Eig
from handlax.effects.operations.linalg.eigh import Eigh
from handlax.effects.operations.linalg.schur import Hessenberg, Schur, Tridiagonal
from handlax.effects.operations.linalg.svd import Svd, SvdAlgorithm
from handlax.effects.types import dtypes

from .inputs import Case, Domain

REALS = frozenset({dtypes.float32, dtypes.float64})
WIDE = frozenset({dtypes.float64, dtypes.complex128})  # the sign of a vector differs between precisions
MATRIX = Domain(-1.0, 1.0)  # of distinct values, almost surely
SQUARE = (((3, 3),), ((2, 4, 4),), ((2, 0, 0),))
ANY = (((3, 3),), ((2, 4, 2),), ((2, 4),), ((2, 3, 0),))

# vectors of complex matrices have phases, which LAPACK chooses: their derivatives have tests of their own
CASES = [
    *[
        Case(Eigh(lower, False, vectors, None), (MATRIX,), SQUARE, family)
        for lower in (False, True) for vectors, family in ((True, REALS & WIDE), (False, None))
    ],
    *[Case(Svd(False, vectors, None), (MATRIX,), ANY, family) for vectors, family in ((True, REALS), (False, None))],
    *[
        Case(Eig(left, right, True), (MATRIX,), SQUARE, WIDE if left or right else None)
        for left, right in ((False, False), (False, True), (True, False), (True, True))
    ],
    *[Case(Schur(vectors), (MATRIX,), SQUARE) for vectors in (False, True)],
    Case(Hessenberg(), (MATRIX,), (*SQUARE, ((1, 1),))),
    *[Case(Tridiagonal(lower), (MATRIX,), (((3, 3),), ((2, 4, 4),), ((1, 1),))) for lower in (False, True)],
    Case(Svd(True, True, SvdAlgorithm.QR), (MATRIX,), (((3, 3),), ((2, 2, 2),)), REALS),
]
