"""``handlax.numpy``: NumPy's functions under JAX's names, composed of operations.

Folders and files are chapters of NumPy's reference; what a chapter exports is its ``__all__``. The folder ``linalg`` is
``handlax.numpy.linalg``; this folder's files may import those of all sub-folders.
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names
from .array_methods import attach as _attach
from .arrays.adding_elements import *
from .arrays.building_matrices import *
from .arrays.creation import *
from .arrays.index_arrays import *
from .arrays.index_updates import *
from .arrays.indexing_operations import *
from .arrays.joining_splitting import *
from .arrays.numerical_ranges import *
from .arrays.padding import *
from .arrays.shape_manipulation import *
from .dtype_routines import *
from .functional_programming import *
from .input_output import *
from .mathematics.arithmetic import *
from .mathematics.bitwise import *
from .mathematics.differences import *
from .mathematics.einstein_summation import *
from .mathematics.elementary_functions import *
from .mathematics.floating_point import *
from .mathematics.logic import *
from .mathematics.matrix_products import *
from .mathematics.reductions import *
from .mathematics.universal_functions import *
from .namespace_info import __array_api_version__ as __array_api_version__
from .namespace_info import __array_namespace_info__ as __array_namespace_info__
from .polynomials import *
from .signal_processing import *
from .statistics.averages import *
from .statistics.histograms import *
from .statistics.nan_reductions import *
from .statistics.order_statistics import *
from .statistics.set_routines import *
from .statistics.sorting_searching import *

_attach(globals())

if _typing.TYPE_CHECKING:
    from . import fft as fft
    from . import linalg as linalg
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
