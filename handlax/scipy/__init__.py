"""``handlax.scipy``: functions of SciPy on arrays, under JAX's names.

Each of its modules is loaded when it is first asked for.
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names

if _typing.TYPE_CHECKING:
    from . import cluster as cluster
    from . import fft as fft
    from . import integrate as integrate
    from . import interpolate as interpolate
    from . import linalg as linalg
    from . import ndimage as ndimage
    from . import optimize as optimize
    from . import signal as signal
    from . import sparse as sparse
    from . import spatial as spatial
    from . import special as special
    from . import stats as stats
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
