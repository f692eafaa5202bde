"""``handlax.scipy``: functions of SciPy on arrays, under JAX's names.

Each of its modules is loaded when it is first asked for.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]  # fmt: skip

if _TYPE_CHECKING:
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

    def __getattr__(name: str) -> _Any:
        if name in __all__:
            return _import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
