"""Factorisations and solves of ``handlax.lax``."""

from ..effects.base.lazy_module import primitives_of as _primitives_of
from ..effects.operations.linalg.cholesky import cholesky as cholesky
from ..effects.operations.linalg.eig import EigImplementation as EigImplementation
from ..effects.operations.linalg.eig import eig as eig
from ..effects.operations.linalg.eigh import EighImplementation as EighImplementation
from ..effects.operations.linalg.eigh import eigh as eigh
from ..effects.operations.linalg.lu import lu as lu
from ..effects.operations.linalg.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from ..effects.operations.linalg.qr import geqrf as geqrf
from ..effects.operations.linalg.qr import householder_product as householder_product
from ..effects.operations.linalg.qr import ormqr as ormqr
from ..effects.operations.linalg.qr import qr as qr
from ..effects.operations.linalg.schur import hessenberg as hessenberg
from ..effects.operations.linalg.schur import schur as schur
from ..effects.operations.linalg.schur import tridiagonal as tridiagonal
from ..effects.operations.linalg.svd import SvdAlgorithm as SvdAlgorithm
from ..effects.operations.linalg.svd import svd as svd
from ..effects.operations.linalg.triangular import triangular_solve as triangular_solve
from ..effects.operations.linalg.tridiagonal_systems import tridiagonal_solve as tridiagonal_solve
from .composed_linalg import cholesky_update as cholesky_update
from .composed_linalg import qdwh as qdwh
from .composed_linalg import symmetric_product as symmetric_product

__getattr__ = _primitives_of(__name__)
