"""``handlax.nn``: activations, softmax and other normalizations, attention, and initializers, under JAX's names."""

from . import activations, attention, initializers, normalization
from .activations import *
from .attention import *
from .normalization import *

__all__ = ["initializers"]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += normalization.__all__
