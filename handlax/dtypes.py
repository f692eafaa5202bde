"""``handlax.dtypes``: names, families, promotion and limits of dtypes. See ``handlax.effects.types.dtypes``."""

from .effects.base.errors import DTypeMismatch as _DTypeMismatch
from .effects.types.dtype_families import *
from .effects.types.dtypes import *
from .effects.types.dtypes import canonical as canonical

# aliases under JAX's names
TypePromotionError = _DTypeMismatch
