"""Configuration: an immutable record of settings, one per process, overridden in a scope.

    with configure(default_float="float64"):    # for this thread or task, until the block ends
    config.update("default_float", "float64")   # for the process, as scripts do at their top

A scope holds what it sets; everything else is that of the scope around it, at last of the process, also when that
is updated within the block. The record in force is part of every cache key that depends on a setting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

import numpy as np
from pyrsistent import PMap, pmap

from .caches import Owners, cached, process_lock
from .errors import ConfigurationError, Immutable, nearest
from .immutables import KeyedObject
from .jax_settings import ALIASES, FIXED, flags, from_environment, note_without_meaning, truth
from .wrapping import context_variable

# XLA reads it when its library is loaded, which nothing in the package does before this: warnings are logged.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# Settings that watch tracing, compiling and errors. They change no result: records that differ in them are equal.
WATCHES = ("no_tracing", "log_compiles", "explain_cache_misses", "traceback_filtering")

GUARDS = tuple([f"transfer_guard_{way}" for way in ("host_to_device", "device_to_device", "device_to_host")])


class Settings:
    """The names, types and defaults of all settings; ``Configuration`` stores them in this order, the watches last."""

    __slots__ = ()

    enable_x64: bool | None = None
    default_float: np.dtype[Any] = np.dtype("float32")
    default_int: np.dtype[Any] = np.dtype("int32")
    numpy_dtype_promotion: str = "standard"
    numpy_rank_promotion: str = "allow"
    default_matmul_precision: str | None = None
    default_device: Any = None
    disable_jit: bool = False
    disable_most_optimizations: bool = False
    debug_nans: bool = False
    debug_infs: bool = False
    check_leaks: bool = False
    check_static_indices: bool = False
    disable_bwd_checks: bool = False
    compilation_cache_dir: str | None = None
    platforms: str | None = None
    num_cpu_devices: int | None = None
    cpu_collectives_implementation: str | None = "gloo"
    default_prng_impl: str = "threefry2x32"
    mesh: Any = None
    abstract_mesh: Any = None
    transfer_guard: str = "allow"  # the last that was set for all directions
    transfer_guard_host_to_device: str = "allow"
    transfer_guard_device_to_device: str = "allow"
    transfer_guard_device_to_host: str = "allow"
    no_execution: bool = False
    legacy_prng_key: str = "allow"
    enable_custom_prng: bool = False
    user_contexts: PMap[Any, Any] = pmap()  # the values of contexts of the user's own
    tables: PMap[str, Any] = pmap()
    containers: frozenset[Any] = frozenset()  # the registry of types that vmap maps by specs of their own
    no_tracing: bool = False
    log_compiles: bool = False
    explain_cache_misses: bool = False
    traceback_filtering: str = "auto"


DEFAULTS: Mapping[str, Any] = {name: getattr(Settings, name) for name in Settings.__annotations__}
_REGISTRIES = ("user_contexts", "tables", "containers")  # changed by functions of their own, not by name


class Configuration(KeyedObject, Settings):
    """All settings and tables of rules in force: immutable, hashable, compared by value."""

    __slots__ = ("_values", "mark", "promotion", "memoises", "guarded", *DEFAULTS)
    _guard = ("settings", "hx.configure(name=value), or hx.config.update(name, value).")

    _values: tuple[Any, ...]  # in the order of DEFAULTS
    promotion: str  # the settings that promotion depends on
    memoises: bool  # whether eager calls may be answered by a look-up: no tables of rules, each operation as it is
    guarded: bool  # whether executions or transfers may be refused or logged
    mark: object | None  # stands for the record in cache keys, cheap to hash; None if it has tables of rules

    def __init__(self, values: tuple[Any, ...]):
        object.__setattr__(self, "_values", values)
        for name, value in zip(DEFAULTS, values):
            object.__setattr__(self, name, value)
        compared = values[: -len(WATCHES)]
        self._set_key(*compared)
        object.__setattr__(self, "mark", None if self.tables else _mark(compared))
        modes = self.numpy_dtype_promotion, self.numpy_rank_promotion, str(self.enable_x64), self.default_float.name
        object.__setattr__(self, "promotion", " ".join(modes))
        watched = self.debug_nans or self.debug_infs or self.no_execution or self.disable_jit
        object.__setattr__(self, "memoises", self.mark is not None and not watched)
        object.__setattr__(self, "guarded", self.no_execution or any([getattr(self, n) != "allow" for n in GUARDS]))

    def set(self, **changes: Any) -> Configuration:
        """The record with some settings replaced. ``enable_x64`` sets the default dtypes too, where they are not given.

        Raises: ConfigurationError: there is no such setting, or it cannot have the value.
        """
        return self.replaced(_expanded(changes))

    def replaced(self, values: Mapping[str, Any]) -> Configuration:
        """The record with these values, which are checked already, replaced.

        Raises: ConfigurationError: a default dtype has 64 bits although ``enable_x64`` is False.
        """
        replaced = tuple([values.get(name, value) for name, value in zip(DEFAULTS, self._values)])
        changed = Configuration(replaced) if values.get("tables", self.tables) else _record(replaced)
        for name in _WIDTHS[False]:
            if changed.enable_x64 is False and getattr(changed, name).itemsize == 8:
                raise ConfigurationError(
                    f"config: {name} must be of 32 bits while enable_x64 is False, got {getattr(changed, name)}.",
                    hint="set enable_x64 to True, or to None, under which what is named is kept.",
                )
        return changed

    def __repr__(self) -> str:
        return f"Configuration({', '.join(f'{k}={v!r}' for k, v in zip(DEFAULTS, self._values))})"


@cached("settings", 256)
def _record(values: tuple[Any, ...]) -> Configuration:
    """The interned ``Configuration`` of these values, for settings without rule tables."""
    return Configuration(values)


@cached("marks of settings", 256)
def _mark(compared: tuple[Any, ...]) -> object:
    """An object that identifies these values in cache keys: equal values have the same one, and it hashes fast."""
    return object()


# enable_x64 -> the default dtypes that come with it
_WIDTHS: Mapping[bool | None, Mapping[str, str]] = {
    None: {"default_float": "float32", "default_int": "int32"},
    False: {"default_float": "float32", "default_int": "int32"},
    True: {"default_float": "float64", "default_int": "int64"},
}

# The values that a setting may have. A later module adds those of which it alone knows, by ``add_choices``.
CHOICES: dict[str, tuple[Any, ...]] = {
    "default_float": tuple(map(np.dtype, ("float32", "float64"))),
    "default_int": tuple(map(np.dtype, ("int32", "int64"))),
    "numpy_dtype_promotion": ("standard", "strict"),
    "numpy_rank_promotion": ("allow", "warn", "raise"),
    "enable_x64": (None, False, True),
    **dict.fromkeys(
        ("no_execution", "enable_custom_prng", "disable_jit", "debug_nans", "debug_infs", "check_leaks",
         "check_static_indices", "disable_bwd_checks", "disable_most_optimizations"),
        (False, True),
    ),
    **dict.fromkeys(WATCHES, (False, True)),
    **dict.fromkeys(("transfer_guard", *GUARDS), ("allow", "log", "disallow", "log_explicit", "disallow_explicit")),
    "legacy_prng_key": ("allow", "warn", "error"),
    "cpu_collectives_implementation": ("gloo", "mpi", None),
    "traceback_filtering": ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
}
TEXTS = ("compilation_cache_dir", "default_device")  # any text of the environment is a value of theirs
# The classes of settings that are None where they are not set; a later module adds those of which it alone knows.
CLASSES: dict[str, type] = {}


def _expanded(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Checked values of the settings to change, with those that ``enable_x64`` and ``transfer_guard`` imply.

    Raises: ConfigurationError: there is no such setting, or it cannot have the value.
    """
    if "transfer_guard" in changes:  # of all directions
        changes = {**dict.fromkeys(GUARDS, changes["transfer_guard"]), **changes}
    if "enable_x64" in changes:
        changes = {**_WIDTHS[_checked("enable_x64", changes["enable_x64"])], **changes}
    return {name: _checked(name, value) for name, value in changes.items()}


def _checked(name: str, value: Any) -> Any:
    """The value as the setting stores it. Raises ConfigurationError: no such setting, or not one of its choices."""
    if name not in DEFAULTS:
        names = [known for known in DEFAULTS if known not in _REGISTRIES]
        hint = nearest(name, names) or f"the settings are: {', '.join(names)}."
        raise ConfigurationError(f"config: there is no setting {name!r}.", hint=hint)
    if name == "platforms":
        return value or None
    if name == "num_cpu_devices":
        return _device_count(value)
    if name in CLASSES and value is not None and not isinstance(value, CLASSES[name]):
        raise ConfigurationError(f"config: {name} must be a {CLASSES[name].__name__} or None, got {value!r}.")
    choices = CHOICES.get(name)
    if choices is not None:
        if name in ("default_float", "default_int"):
            value = np.dtype(value)
        if value not in choices:
            listed = ", ".join(map(str, choices))
            raise ConfigurationError(f"config: {name} must be one of {listed}, got {value!r}.")
    return value


def _device_count(value: Any) -> int | None:
    """The checked value of ``num_cpu_devices``; None and, as in JAX, -1 leave the number to the environment.

    Raises: ConfigurationError: the value is no positive integer, or another number of devices exists already.
    """
    count = None if value == -1 else value
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise ConfigurationError(f"config: num_cpu_devices must be a positive integer or None, got {value!r}.")
    made = PROCESS.cpu_devices
    if made is not None and count not in (None, made):
        raise ConfigurationError(
            f"config: num_cpu_devices is fixed at the first use of the CPU; it is {made}, got {count}.",
            hint="set it before the first array operation.",
        )
    return count


DEFAULT = _record(tuple(DEFAULTS.values()))


def _of_environment(names: Iterable[str]) -> dict[str, Any]:
    """The settings among ``names`` that environment variables of the package or of JAX name.

    Raises: ConfigurationError: a variable has a value that its setting cannot have.
    """
    given = [(name, *from_environment(name)) for name in names]
    return {name: _of_text(name, variable, text) for name, variable, text in given if text}


def _of_text(name: str, where: str, text: str) -> Any:
    """The checked value of a setting that a text gives; ``where``: the variable or flag whose text it is.

    Raises: ConfigurationError: the setting cannot have it.
    """
    choices = CHOICES.get(name, ())
    number = name == "num_cpu_devices" and text.isdecimal()
    try:
        return _checked(name, truth(text) if False in choices else int(text) if number else text)
    except (ConfigurationError, TypeError) as error:
        if not choices:
            raise
        listed = "0 or 1" if False in choices else f"one of {', '.join(map(str, choices))}"
        raise ConfigurationError(f"config: {where} must be {listed}, got {text!r}.") from error


class SettingScope:
    """The settings in a ``with configure(...)`` block; ``changes`` are those of this and the enclosing blocks."""

    __slots__ = ("changes", "settings", "__weakref__")

    def __init__(self, changes: Mapping[str, Any], settings: Configuration):
        self.changes = changes
        self.settings = settings


class Process(SettingScope):
    """The settings of the process; an update reaches every scope, in any thread, that does not set the same setting."""

    __slots__ = ("cpu_devices", "joined", "_inner", "_lock")

    def __init__(self) -> None:
        super().__init__({}, DEFAULT.set(**_of_environment((*CHOICES, *TEXTS))))
        self.cpu_devices: int | None = None  # how many there are, once they are made
        self.joined = 1  # how many processes are one program
        self._inner = Owners()  # the scopes, weakly: each lives as long as a context that is within it
        self._lock = process_lock()

    def scope(self, changes: Mapping[str, Any]) -> SettingScope:
        """A scope with these changes to the settings of the process.

        Raises: ConfigurationError: the changes contradict the settings of the process.
        """
        with self._lock:
            scope = SettingScope(changes, self.settings.replaced(changes))
            self._inner.add(scope)
        return scope

    def update(self, **changes: Any) -> None:
        """Change settings of the process and of every scope that does not set them; all or nothing.

        Raises: ConfigurationError: a setting cannot have the value, or a scope contradicts it.
        """
        with self._lock:
            settings = self.settings.set(**changes)
            records = [(scope, settings.replaced(scope.changes)) for scope in self._inner.alive()]
            self.settings = settings
            for scope, record in records:
                scope.settings = record


PROCESS = Process()


def add_choices(name: str, choices: tuple[Any, ...]) -> None:
    """State the values that a setting may have, and set it for the process if the environment does.

    Raises: ConfigurationError: the environment names another value.
    """
    CHOICES[name] = choices
    PROCESS.update(**_of_environment([name]))


CONFIG: ContextVar[SettingScope] = context_variable("handlax_config", PROCESS)


class Config:
    """The type of ``hx.config``: attributes read the settings of this thread; ``update`` sets those of the process."""

    __slots__ = ()

    def update(self, name: str, value: Any) -> None:
        """Change a setting for the process; a ``with configure(...)`` block that sets it too hides the change.

        A setting of JAX that has no meaning here, or no other value, is ignored, with one warning.
        """
        if name in FIXED:
            if value != FIXED[name]:
                note_without_meaning(name)
        else:
            PROCESS.update(**{ALIASES.get(name, name): value})

    def parse_flags_with_absl(self) -> None:
        """Change the settings that the command line of the process names: ``--jax_enable_x64``, ``--jax_name=value``.

        All other arguments, and those after ``--``, are the program's own.

        Raises: ConfigurationError: there is no such setting, or it cannot have the value.
        """
        for name, text in flags(sys.argv[1:]):
            fixed = name in FIXED
            self.update(name, truth(text) if fixed else _of_text(ALIASES.get(name, name), f"--{name}", text))

    def read(self, name: str) -> Any:
        """The value of the setting ``name`` in this thread or task."""
        return getattr(self, name)

    @property
    def x64_enabled(self) -> bool:
        """Whether ``enable_x64`` is True; where that is None, the 64-bit dtypes that are named are kept."""
        return bool(self.read("enable_x64"))

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("settings", name, "set", f"hx.config.update({name!r}, value).")

    def __getattr__(self, name: str) -> Any:
        setting = ALIASES.get(name, name)
        if name in FIXED:
            return FIXED[name]
        if setting not in DEFAULTS:
            _checked(setting, None)
        return getattr(current(), setting)


config = Config()
"""The settings in force, as attributes; ``configure`` sets them within a block."""


def current() -> Configuration:
    """The ``Configuration`` of the innermost ``with configure(...)`` block, else of the process."""
    return CONFIG.get().settings


@contextmanager
def configure(**changes: Any) -> Iterator[Configuration]:
    """Change settings for the extent of a ``with`` block, in this thread or task. Other settings are unchanged.

    Raises: ConfigurationError: there is no such setting, or it cannot have the value.
    """
    token = enter(**changes)
    try:
        yield current()
    finally:
        leave(token)


@contextmanager
def in_force(settings: Configuration) -> Iterator[None]:
    """Put a whole record in force, as it was read elsewhere, for the extent of a ``with`` block."""
    token = CONFIG.set(PROCESS.scope({name: getattr(settings, name) for name in DEFAULTS}))
    try:
        yield
    finally:
        leave(token)


def enter(**changes: Any) -> Token[SettingScope]:
    """Change settings in this thread or task until ``leave``, or until the enclosing ``with`` block ends."""
    return CONFIG.set(PROCESS.scope({**CONFIG.get().changes, **_expanded(changes)}))


def leave(token: Token[SettingScope]) -> None:
    """Undo the ``enter`` that returned ``token``, and every later one."""
    CONFIG.reset(token)


def enable_x64(new_val: bool | None = True) -> Any:
    """Set whether arrays have 64-bit elements, in a ``with`` block; None: only arrays whose dtype is given."""
    return configure(enable_x64=new_val)


def default_matmul_precision(new_val: str | None) -> Any:
    """Set the precision of matrix products that specify none, for the extent of a ``with`` block."""
    return configure(default_matmul_precision=new_val)


def numpy_dtype_promotion(new_val: str) -> Any:
    """Set which dtypes promote implicitly, ``standard`` or ``strict``, for the extent of a ``with`` block."""
    return configure(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Any:
    """Set whether ranks are promoted: ``allow``, ``warn`` or ``raise``, for the extent of a ``with`` block."""
    return configure(numpy_rank_promotion=new_val)


def default_prng_impl(new_val: str) -> Any:
    """Set the PRNG implementation of keys that name none, for the extent of a ``with`` block."""
    return configure(default_prng_impl=new_val)
