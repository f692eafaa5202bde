"""``handlax.distributed``: the processes of a program joined, under JAX's names."""

from .joining import initialize as initialize
from .joining import is_initialized as is_initialized
from .joining import shutdown as shutdown
