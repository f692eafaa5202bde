"""``handlax.extend.xla``: classes of other libraries as arrays, as JAX has them in ``jax.interpreters.xla``.

    canonicalize_dtype_handlers[C] = lambda x: x.data
    core.pytype_aval_mappings[C] = lambda x: typeof(x.data)
"""

from ..effects.core.arrays import CONVERSIONS as canonicalize_dtype_handlers

__all__ = ["canonicalize_dtype_handlers"]
