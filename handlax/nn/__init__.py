"""``handlax.nn``: activations, softmax and other normalizations, attention, and initializers, under JAX's names."""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names
from .activations import *
from .attention import *
from .normalization import *
from .scaled_products import *

if _typing.TYPE_CHECKING:
    from . import initializers as initializers
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
