"""Inputs for eigenvalues and singular values, and for the reductions that lead to them."""

from __future__ import annotations

from handlax.effects.operations.linalg.eig import Eig
from handlax.effects.operations.linalg.eigh import Eigh
from handlax.effects.operations.linalg.schur import Hessenberg, Schur, Tridiagonal
from handlax.effects.operations.linalg.svd import Svd, SvdAlgorithm
from handlax.effects.types import dtypes
from handlax.testing.strategies import Domain, Operands

REALS = frozenset({dtypes.float32, dtypes.float64})
WIDE = frozenset({dtypes.float64, dtypes.complex128})  # the sign of a vector differs between precisions
MATRIX = Domain(-1.0, 1.0)  # of distinct values, almost surely
SQUARE = (((3, 3),), ((2, 4, 4),), ((2, 0, 0),))
ANY = (((3, 3),), ((2, 4, 2),), ((2, 4),), ((2, 3, 0),))

# vectors of complex matrices have phases, which LAPACK chooses: their derivatives have tests of their own
CASES = [
    *[
        Operands(Eigh(lower, False, vectors, None), (MATRIX,), SQUARE, family)
        for lower in (False, True) for vectors, family in ((True, REALS & WIDE), (False, None))
    ],
    *[
        Operands(Svd(False, vectors, None), (MATRIX,), ANY, family)
        for vectors, family in ((True, REALS), (False, None))
    ],
    *[
        Operands(Eig(left, right, True), (MATRIX,), SQUARE, WIDE if left or right else None)
        for left, right in ((False, False), (False, True), (True, False), (True, True))
    ],
    *[Operands(Schur(vectors), (MATRIX,), SQUARE) for vectors in (False, True)],
    Operands(Hessenberg(), (MATRIX,), (*SQUARE, ((1, 1),))),
    *[Operands(Tridiagonal(lower), (MATRIX,), (((3, 3),), ((2, 4, 4),), ((1, 1),))) for lower in (False, True)],
    Operands(Svd(True, True, SvdAlgorithm.QR), (MATRIX,), (((3, 3),), ((2, 2, 2),)), REALS),
]
