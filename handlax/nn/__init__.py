"""``handlax.nn``: activations, softmax and other normalizations, attention, and initializers, under JAX's names."""

from . import activations, attention, initializers, normalization, scaled_products
from .activations import *
from .attention import *
from .normalization import *
from .scaled_products import *

__all__ = ["initializers"]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += normalization.__all__
__all__ += scaled_products.__all__
