"""``handlax.experimental.sparse``: sparse arrays in the formats BCOO, BCSR, COO, CSR and CSC, with JAX's names.

    todense(sparsify(f)(x)) == f(todense(x))

A sparse array is a pytree of ordinary arrays, and its functions are composed of operations on these, so that it can be
differentiated, mapped, compiled and sharded. ``sparsify`` is a handler that answers each operation by its rule for
sparse operands, from the rule table ``sparse``.
"""

from . import linalg as linalg
from .bcoo import BCOO as BCOO
from .bcoo import bcoo_extract as bcoo_extract
from .bcoo import bcoo_fromdense as bcoo_fromdense
from .bcoo import bcoo_sort_indices as bcoo_sort_indices
from .bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from .bcoo import bcoo_todense as bcoo_todense
from .bcoo import bcoo_transpose as bcoo_transpose
from .bcoo import bcoo_update_layout as bcoo_update_layout
from .bcsr import BCSR as BCSR
from .bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from .bcsr import bcsr_concatenate as bcsr_concatenate
from .bcsr import bcsr_dot_general as bcsr_dot_general
from .bcsr import bcsr_extract as bcsr_extract
from .bcsr import bcsr_fromdense as bcsr_fromdense
from .bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from .bcsr import bcsr_todense as bcsr_todense
from .layouts import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from .layouts import bcoo_concatenate as bcoo_concatenate
from .layouts import bcoo_dynamic_slice as bcoo_dynamic_slice
from .layouts import bcoo_gather as bcoo_gather
from .layouts import bcoo_reshape as bcoo_reshape
from .layouts import bcoo_rev as bcoo_rev
from .layouts import bcoo_slice as bcoo_slice
from .layouts import bcoo_squeeze as bcoo_squeeze
from .matrices import COO as COO
from .matrices import CSC as CSC
from .matrices import CSR as CSR
from .matrices import coo_fromdense as coo_fromdense
from .matrices import coo_matmat as coo_matmat
from .matrices import coo_matvec as coo_matvec
from .matrices import coo_todense as coo_todense
from .matrices import csr_fromdense as csr_fromdense
from .matrices import csr_matmat as csr_matmat
from .matrices import csr_matvec as csr_matvec
from .matrices import csr_todense as csr_todense
from .matrices import empty as empty
from .matrices import eye as eye
from .matrices import random_bcoo as random_bcoo
from .sparse_array import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from .sparse_array import JAXSparse as JAXSparse
from .sparse_array import SparseEfficiencyError as SparseEfficiencyError
from .sparse_array import SparseEfficiencyWarning as SparseEfficiencyWarning
from .sparse_derivatives import grad as grad
from .sparse_derivatives import jacfwd as jacfwd
from .sparse_derivatives import jacobian as jacobian
from .sparse_derivatives import jacrev as jacrev
from .sparse_derivatives import value_and_grad as value_and_grad
from .sparse_products import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from .sparse_products import bcoo_dot_general as bcoo_dot_general
from .sparse_products import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from .sparse_products import bcoo_multiply_dense as bcoo_multiply_dense
from .sparse_products import bcoo_multiply_sparse as bcoo_multiply_sparse
from .sparse_products import bcoo_reduce_sum as bcoo_reduce_sum
from .sparsify import SparseTracer as SparseTracer
from .sparsify import sparsify as sparsify
from .todense import todense as todense
