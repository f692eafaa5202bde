"""handlax.custom_batching: functions that the user says how to map."""

from .interpreters.custom_vmap import custom_vmap as custom_vmap
from .interpreters.custom_vmap import sequential_vmap as sequential_vmap
