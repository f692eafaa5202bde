"""``handlax.interop``: other libraries in the same process, whose functions are programs of handlax and the reverse.

    handlax.interop.jax.from_jax(f)    handlax.interop.jax.to_jax(f)
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names

if _typing.TYPE_CHECKING:
    from . import jax as jax
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
