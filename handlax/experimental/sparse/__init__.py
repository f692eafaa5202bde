"""``handlax.experimental.sparse``: sparse arrays in the formats BCOO, BCSR, COO, CSR and CSC, with JAX's names.

    todense(sparsify(f)(x)) == f(todense(x))

A sparse array is a pytree of ordinary arrays, and its functions are composed of operations on these, so that it can be
differentiated, mapped, compiled and sharded. ``sparsify`` is a handler that answers each operation by its rule for
sparse operands, from the rule table ``sparse``.
"""

from . import linalg as linalg
from .bcoo import *
from .bcsr import *
from .layouts import *
from .matrices import *
from .sparse_array import *
from .sparse_derivatives import *
from .sparse_products import *
from .sparsify import *
from .todense import *
