"""``handlax.experimental.compilation_cache``: the folder of compiled programs, under JAX's names; imports any layer."""

from . import compilation_cache as compilation_cache
