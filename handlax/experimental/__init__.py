"""``handlax.experimental``: functions that JAX has in ``jax.experimental``.

Each of its modules is loaded when it is first asked for.
"""

import typing as _typing

from ..effects.base.config import enable_x64 as enable_x64
from ..effects.base.lazy_module import late_names as _late_names
from ..effects.control.callbacks import io_callback as io_callback

if _typing.TYPE_CHECKING:
    from . import array_serialization as array_serialization
    from . import checkify as checkify
    from . import compilation_cache as compilation_cache
    from . import custom_partitioning as custom_partitioning
    from . import jet as jet
    from . import layout as layout
    from . import mesh_utils as mesh_utils
    from . import multihost_utils as multihost_utils
    from . import ode as ode
    from . import serialize_executable as serialize_executable
    from . import sparse as sparse
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
