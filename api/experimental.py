"""What stands in JAX's ``experimental`` and has a place here."""

from .effects.callbacks import io_callback as io_callback
