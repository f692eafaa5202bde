"""JAX's settings as context managers: guards that refuse transfers and executions, and settings without meaning here.

A transfer is *explicit* if ``device_put`` or ``device_get`` asks for it, and implicit if a call needs it: NumPy arrays
and numbers as arguments of compiled functions, arrays on other devices than those that execute the function, and
reading an array of a device with its own memory as a NumPy array. Evaluation by NumPy on a CPU transfers nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from ..base.config import configure, current
from ..base.errors import BadStaticArgument, ConfigurationError, TransferRefused
from ..base.immutables import ImmutableObject
from ..base.jax_settings import WITHOUT_MEANING, note_without_meaning
from ..base.watching import logger
from ..base.wrapping import context_variable

EXPLICIT: ContextVar[bool] = context_variable("handlax_explicit_transfer", False)


def check_transfer(direction: str, what: str) -> None:
    """Log or refuse a transfer of ``what``, as the setting for ``direction`` ("host_to_device", ...) says.

    Raises: TransferRefused: the setting disallows it.
    """
    level = getattr(current(), f"transfer_guard_{direction}")
    if level == "allow":
        return
    explicit = EXPLICIT.get()
    kind = f"{'explicit' if explicit else 'implicit'} transfer, {direction.replace('_', ' ')},"
    if level == "disallow_explicit" or (level == "disallow" and not explicit):
        hint = None if explicit else "device_put and device_get are explicit; transfer_guard('allow') allows it."
        raise TransferRefused(f"transfer_guard: an {kind} is not allowed here, got {what}.", hint=hint)
    if level == "log_explicit" or (level == "log" and not explicit):
        logger().warning("%s of %s", kind, what)


@contextmanager
def explicit_transfers() -> Any:
    """Within the block, transfers count as explicit."""
    around = EXPLICIT.get()
    try:
        EXPLICIT.set(True)
        yield
    finally:
        EXPLICIT.set(around)


def transfer_guard(new_val: str) -> AbstractContextManager[Any]:
    """Within the block, transfers between the host and devices, and among devices, are allowed, logged or refused.

    Args:
        new_val: "allow"; "log" or "disallow" for implicit transfers; "log_explicit" or "disallow_explicit" for all.

    Raises: ConfigurationError: another value. ``TransferRefused``: a refused transfer within the block.

    >>> from handlax import device_put, jit, numpy as hnp
    >>> f, x = jit(lambda x: x + 1), device_put(hnp.ones(2))
    >>> with transfer_guard("disallow"):
    ...     y = f(x)
    """
    return configure(transfer_guard=new_val)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` for transfers from the host to a device alone."""
    return configure(transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` for transfers among devices alone."""
    return configure(transfer_guard_device_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` for transfers to the host alone; reading an array on a CPU is no transfer."""
    return configure(transfer_guard_device_to_host=new_val)


def no_execution(new_val: bool = True) -> AbstractContextManager[Any]:
    """Within the block, executing an operation or a compiled function raises ``ExecutionRefused``.

    Functions may be traced, lowered and compiled.

    >>> from handlax import jit, numpy as hnp
    >>> x = hnp.ones(2)
    >>> with no_execution():
    ...     compiled = jit(lambda x: x + 1).lower(x).compile()
    >>> compiled(x)
    Array([2., 2.], dtype=float32)
    """
    return configure(no_execution=bool(new_val))


def legacy_prng_key(new_val: str) -> AbstractContextManager[Any]:
    """Set what happens if a raw uint32 key is passed to a function of ``random``: "allow", "warn" or "error"."""
    return configure(legacy_prng_key=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[Any]:
    """Set whether ``random.PRNGKey`` returns a typed key, as ``random.key`` does, instead of a raw uint32 key."""
    return configure(enable_custom_prng=bool(new_val))


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[Any]:
    """Has no effect: random bits always depend on the key and the element's index alone, as in JAX with this setting.

    Raises: ConfigurationError: ``new_val`` is false.
    """
    if not new_val:
        raise ConfigurationError("threefry_partitionable: it must be True: keys have no other bits, got False.")
    return configure()


def _without_meaning(name: str) -> Any:
    """A context manager that does nothing but log once that the setting of JAX has no meaning here."""

    def context(new_val: Any = None) -> AbstractContextManager[Any]:
        note_without_meaning(name if name in WITHOUT_MEANING else f"jax_{name}")
        return configure()

    context.__name__ = context.__qualname__ = name
    context.__doc__ = "Has no effect: a setting of JAX without a meaning here; a message says so once."
    return context


allow_f16_reductions = _without_meaning("allow_f16_reductions")
auto_pcast = _without_meaning("auto_pcast")
debug_key_reuse = _without_meaning("debug_key_reuse")
enable_checks = _without_meaning("enable_checks")
softmax_custom_jvp = _without_meaning("softmax_custom_jvp")
jax2tf_associative_scan_reductions = _without_meaning("jax2tf_associative_scan_reductions")
remove_size_one_mesh_axis_from_type = _without_meaning("remove_size_one_mesh_axis_from_type")


class UserContext(ImmutableObject):
    """A user's value in force in a scope: functions traced under one value are traced again under another."""

    __slots__ = ("_default",)
    _guard = ("contexts", "with context(value): ...")
    _default: Any

    def __init__(self, default_value: Any = None):
        object.__setattr__(self, "_default", default_value)

    @property
    def value(self) -> Any:
        """The value in force."""
        return current().user_contexts.get(self, self._default)

    def __call__(self, value: Any) -> AbstractContextManager[Any]:
        """Put a value in force for the extent of a ``with`` block. Raises: BadStaticArgument: it cannot be hashed."""
        try:
            hash(value)
        except TypeError:
            raise BadStaticArgument(
                f"make_user_context: values are part of cache keys and must be hashable, got {type(value).__name__}."
            ) from None
        return configure(user_contexts=current().user_contexts.set(self, value))


def make_user_context(default_value: Any = None) -> UserContext:
    """A value of the user's that functions may read while they are traced, and that is part of their traces' keys.

    >>> from handlax import jit
    >>> scale = make_user_context(1.0)
    >>> f = jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(f(2.0))
    6.0
    >>> print(f(2.0))
    2.0
    """
    return UserContext(default_value)
