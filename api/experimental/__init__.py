"""``handlax.experimental``: functions that JAX has in ``jax.experimental``."""

from ..effects.control.callbacks import io_callback as io_callback
from . import checkify as checkify
