"""``handlax.experimental``: functions that JAX has in ``jax.experimental``.

Each of its modules is loaded when it is first asked for.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ..effects.base.config import enable_x64 as enable_x64
from ..effects.control.callbacks import io_callback as io_callback

__all__ = ["checkify", "enable_x64", "io_callback", "jet", "mesh_utils", "multihost_utils", "ode", "sparse"]
_MODULES = {*__all__} - {*globals()}

if _TYPE_CHECKING:
    from . import checkify as checkify
    from . import jet as jet
    from . import mesh_utils as mesh_utils
    from . import multihost_utils as multihost_utils
    from . import ode as ode
    from . import sparse as sparse
else:

    def __getattr__(name: str) -> _Any:
        if name in _MODULES:
            return _import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})
