"""``handlax.dtypes``: names, families, promotion and limits of dtypes. See ``handlax.effects.types.dtypes``."""

import ml_dtypes as _ml_dtypes

from .effects.base.errors import DTypeMismatch as _DTypeMismatch
from .effects.types.dtype_families import *
from .effects.types.dtypes import *
from .effects.types.dtypes import canonical as canonical

# under JAX's names
bfloat16 = _ml_dtypes.bfloat16  # the type of scalars, as NumPy's float32 is
TypePromotionError = _DTypeMismatch
