"""``handlax.scipy.linalg``: factorisations, linear systems, functions of matrices and special matrices.

Names and signatures are SciPy's and JAX's. ``overwrite_a`` and ``check_finite`` and their like are accepted and
ignored.
"""

from . import matrix_factors as _matrix_factors
from . import matrix_functions as _matrix_functions
from . import special_matrices as _special_matrices
from . import systems as _systems
from .matrix_factors import *
from .matrix_functions import *
from .special_matrices import *
from .systems import *

__all__ = sorted([
    *_matrix_factors.__all__, *_matrix_functions.__all__, *_special_matrices.__all__, *_systems.__all__
])
