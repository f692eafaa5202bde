"""``handlax.errors``: all errors derive from ``HandlaxError``, and each from the matching builtin exception."""

from .effects.base.errors import *  # noqa: F403
from .effects.base.errors import __all__ as __all__
