"""``handlax.experimental.compilation_cache.compilation_cache``: the setting ``compilation_cache_dir`` as functions."""

from __future__ import annotations

import os

from ...effects.base.config import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """``config.update("compilation_cache_dir", path)``: keep compiled programs in this folder, for later processes."""
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Has no effect: each compilation reads the setting, and nothing of a former folder is remembered."""
