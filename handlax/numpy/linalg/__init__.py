"""``handlax.numpy.linalg``: factors, solutions, norms and products of matrices, under NumPy's and JAX's names."""

from . import decompositions as _decompositions
from . import norms as _norms
from . import products as _products
from . import solutions as _solutions
from .decompositions import *
from .norms import *
from .products import *
from .solutions import *

__all__ = sorted([*_decompositions.__all__, *_norms.__all__, *_products.__all__, *_solutions.__all__])
