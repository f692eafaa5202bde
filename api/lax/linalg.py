"""Factorisations and solves of ``handlax.lax``."""

from ..effects.linalg import cholesky as cholesky
from ..effects.linalg import triangular_solve as triangular_solve
