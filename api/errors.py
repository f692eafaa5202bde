"""The errors of handlax: one tree under ``HandlaxError``, each also of the fitting builtin."""

from .effects.errors import *  # noqa: F403
