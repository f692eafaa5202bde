"""Configuration: an immutable record of settings, one per process, overridden in a scope.

    with configure(default_float="float64"):    # for this thread or task, until the block ends
    config.update("default_float", "float64")   # for the process, as scripts do at their top

The record in force is part of every cache key that depends on a setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from pyrsistent import PMap, pmap

from .errors import ConfigurationError, Immutable
from .immutables import ImmutableObject


class Configuration(ImmutableObject):
    """All settings and tables of rules in force: immutable, hashable, compared by value."""

    __slots__ = ("_fields", "_hash", "mark", *(
        DEFAULT_NAMES := (
            "default_float", "default_int", "numpy_dtype_promotion", "numpy_rank_promotion",
            "default_matmul_precision", "default_device", "disable_jit", "debug_nans", "debug_infs",
            "check_leaks", "compilation_cache_dir", "platforms", "tables",
        )
    ))
    _guard = ("settings", "hx.configure(name=value), or hx.config.update(name, value).")

    _fields: PMap[str, Any]
    _hash: int
    mark: object | None  # stands for the record in cache keys, cheap to hash; None if it has tables of rules
    default_float: np.dtype[Any]
    default_int: np.dtype[Any]
    numpy_dtype_promotion: str
    numpy_rank_promotion: str
    default_matmul_precision: str | None
    default_device: Any
    disable_jit: bool
    debug_nans: bool
    debug_infs: bool
    check_leaks: bool
    compilation_cache_dir: str | None
    platforms: str | None
    tables: PMap[str, Any]

    def __init__(self, fields: PMap[str, Any]):
        object.__setattr__(self, "_fields", fields)
        object.__setattr__(self, "mark", None if fields["tables"] else object())
        for name in DEFAULTS:
            object.__setattr__(self, name, fields[name])
        object.__setattr__(self, "_hash", hash(tuple(fields[name] for name in DEFAULTS)))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Configuration) and self._fields == other._fields)

    def __hash__(self) -> int:
        return self._hash

    def set(self, **changes: Any) -> Configuration:
        """The record with some settings replaced."""
        fields = self._fields
        for name, value in changes.items():
            fields = fields.set(name, _checked(name, value))
        changed = self if fields == self._fields else Configuration(fields)
        return changed if changed.mark is None else _RECORDS.setdefault(changed, changed)

    def __repr__(self) -> str:
        return f"Configuration({', '.join(f'{k}={self._fields[k]!r}' for k in DEFAULTS)})"


DEFAULTS: Mapping[str, Any] = {
    "default_float": np.dtype("float32"),
    "default_int": np.dtype("int32"),
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
    "default_matmul_precision": None,
    "default_device": None,
    "disable_jit": False,
    "debug_nans": False,
    "debug_infs": False,
    "check_leaks": False,
    "compilation_cache_dir": None,
    "platforms": None,
    "tables": pmap(),
}

_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "default_float": tuple(map(np.dtype, ("float32", "float64"))),
    "default_int": tuple(map(np.dtype, ("int32", "int64"))),
    "numpy_dtype_promotion": ("standard", "strict"),
    "numpy_rank_promotion": ("allow", "warn", "raise"),
    "default_matmul_precision": (
        None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "fastest",
    ),
    **dict.fromkeys(("disable_jit", "debug_nans", "debug_infs", "check_leaks"), (False, True)),
}

# JAX's name -> name here, for settings that mean the same
_ALIASES: Mapping[str, str] = {
    "jax_debug_nans": "debug_nans",
    "jax_debug_infs": "debug_infs",
    "jax_disable_jit": "disable_jit",
    "jax_check_tracer_leaks": "check_leaks",
    "jax_default_matmul_precision": "default_matmul_precision",
    "jax_default_device": "default_device",
    "jax_numpy_dtype_promotion": "numpy_dtype_promotion",
    "jax_numpy_rank_promotion": "numpy_rank_promotion",
    "jax_compilation_cache_dir": "compilation_cache_dir",
    "jax_platforms": "platforms",
}


def _checked(name: str, value: Any) -> Any:
    """The value as the setting stores it. Raises ConfigurationError: no such setting, or not one of its choices."""
    if name not in DEFAULTS:
        hint = f"the settings are: {', '.join(DEFAULTS)}."
        if name in ("jax_enable_x64", "enable_x64"):
            hint = "64-bit dtypes are always there; set default_float='float64' and default_int='int64' for defaults."
        raise ConfigurationError(f"config: there is no setting {name!r}.", hint=hint)
    choices = _CHOICES.get(name)
    if choices is not None:
        if name in ("default_float", "default_int"):
            value = np.dtype(value)
        if value not in choices:
            listed = ", ".join(map(str, choices))
            raise ConfigurationError(f"config: {name} must be one of {listed}, got {value!r}.")
    return value


DEFAULT = Configuration(pmap(DEFAULTS))
CONFIG: ContextVar[Configuration | None] = ContextVar("handlax_config", default=None)


class Process:
    """Holds the record of the process. Not in ``Config``, whose ``__getattr__`` would slow down each read."""

    __slots__ = ("settings",)

    def __init__(self) -> None:
        self.settings = DEFAULT


PROCESS = Process()
# Interned records without tables of rules: equal settings have the same mark, and so the same cache entries.
_RECORDS: dict[Configuration, Configuration] = {DEFAULT: DEFAULT}


class Config:
    """The settings as attributes: reading gives the value in force here; ``update`` sets that of the process."""

    __slots__ = ()

    def update(self, name: str, value: Any) -> None:
        """Change a setting for the process; scopes opened by ``configure`` keep theirs."""
        PROCESS.settings = PROCESS.settings.set(**{_ALIASES.get(name, name): value})

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("settings", name, "set", f"hx.config.update({name!r}, value).")

    def __getattr__(self, name: str) -> Any:
        setting = _ALIASES.get(name, name)
        if setting not in DEFAULTS:
            _checked(setting, None)
        return getattr(current(), setting)


config = Config()


def current() -> Configuration:
    """The record in force: the innermost scope's, else the process's."""
    return CONFIG.get() or PROCESS.settings


@contextmanager
def configure(**changes: Any) -> Iterator[Configuration]:
    """Change settings for the extent of a ``with`` block, in this thread or task.

    Raises: ConfigurationError: there is no such setting, or it cannot have the value.
    """
    token = CONFIG.set(current().set(**changes))
    try:
        yield current()
    finally:
        CONFIG.reset(token)


def default_matmul_precision(new_val: str | None) -> Any:
    """Set the precision of matrix products that specify none, for the extent of a ``with`` block."""
    return configure(default_matmul_precision=new_val)


def numpy_dtype_promotion(new_val: str) -> Any:
    """Set which dtypes promote without being told, ``standard`` or ``strict``, for the extent of a ``with`` block."""
    return configure(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Any:
    """Set whether ranks are promoted: ``allow``, ``warn`` or ``raise``, for the extent of a ``with`` block."""
    return configure(numpy_rank_promotion=new_val)
