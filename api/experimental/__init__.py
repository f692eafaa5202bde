"""``handlax.experimental``: functions that JAX has in ``jax.experimental``."""

from ..effects.base.config import enable_x64 as enable_x64
from ..effects.control.callbacks import io_callback as io_callback
from . import checkify as checkify
from . import jet as jet
from . import mesh_utils as mesh_utils
from . import multihost_utils as multihost_utils
from . import ode as ode
from . import sparse as sparse
