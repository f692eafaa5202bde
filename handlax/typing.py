"""``handlax.typing``: annotations for arguments that become arrays and dtypes, under JAX's names."""

from .effects.core.array_interface import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
