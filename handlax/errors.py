"""``handlax.errors``: all errors derive from ``HandlaxError``, and each from the matching builtin exception."""

from .effects.base.errors import *  # noqa: F403
