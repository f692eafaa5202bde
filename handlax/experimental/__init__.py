"""``handlax.experimental``: functions that JAX has in ``jax.experimental``.

Each of its modules is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..effects.base.config import enable_x64 as enable_x64
from ..effects.base.lazy_module import late_names as _late_names
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
    __getattr__, __dir__ = _late_names(__name__, dict.fromkeys(_MODULES, "."))
