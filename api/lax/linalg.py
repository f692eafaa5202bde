"""Factorisations and solves of ``handlax.lax``."""

from ..effects.operations.linalg import cholesky as cholesky
from ..effects.operations.linalg import triangular_solve as triangular_solve
from .tridiagonal import tridiagonal_solve as tridiagonal_solve
