"""``handlax.custom_batching``: functions with a batching rule that the user writes."""

from .interpreters.custom.custom_vmap import custom_vmap as custom_vmap
from .interpreters.custom.custom_vmap import sequential_vmap as sequential_vmap
