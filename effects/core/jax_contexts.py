"""JAX's settings as context managers: guards that refuse transfers and executions, and settings without meaning here.

A transfer is *explicit* where ``device_put`` or ``device_get`` asks for it, and implicit where a call needs it: NumPy
arrays and numbers as arguments of compiled functions, arrays on other devices than the one where a function is
executed, and the data of a device that has its own memory, read as NumPy's. What NumPy computes on a CPU is none.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..base.config import configure, current
from ..base.errors import BadStaticArgument, ConfigurationError, TransferRefused
from ..base.immutables import ImmutableObject
from ..base.jax_settings import note_without_meaning
from ..base.watching import logger

EXPLICIT: ContextVar[bool] = ContextVar("handlax_explicit_transfer", default=False)


def check_transfer(direction: str, what: str) -> None:
    """Log or refuse a transfer, as the settings say. Raises: TransferRefused."""
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
    """Within it, transfers are explicit."""
    token = EXPLICIT.set(True)
    try:
        yield
    finally:
        EXPLICIT.reset(token)


def transfer_guard(new_val: str) -> AbstractContextManager[Any]:
    """Within it, transfers between the host and devices, and among devices, are allowed, logged or refused.

    Args:
        new_val: "allow"; "log" or "disallow" what is implicit; "log_explicit" or "disallow_explicit" everything.

    Raises: ConfigurationError: it is none of these. ``TransferRefused``: a transfer within it.

    >>> from handlax import device_put, jit, numpy as hnp
    >>> f, x = jit(lambda x: x + 1), device_put(hnp.ones(2))
    >>> with transfer_guard("disallow"):
    ...     y = f(x)
    """
    return configure(transfer_guard=new_val)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` of transfers from the host alone."""
    return configure(transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` of transfers among devices alone."""
    return configure(transfer_guard_device_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[Any]:
    """``transfer_guard`` of transfers to the host alone. A CPU, whose memory is the host's, needs none."""
    return configure(transfer_guard_device_to_host=new_val)


def no_execution(new_val: bool = True) -> AbstractContextManager[Any]:
    """Within it, it is an error, ``ExecutionRefused``, that an operation or a compiled function is executed.

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
    """Set what becomes of keys given as words to functions of ``random``: "allow", "warn" or "error"."""
    return configure(legacy_prng_key=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[Any]:
    """Set whether ``random.PRNGKey`` gives a key as ``random.key`` does, instead of its words."""
    return configure(enable_custom_prng=bool(new_val))


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[Any]:
    """Nothing: each element of random bits depends on its own index alone, which JAX has behind this setting.

    Raises: ConfigurationError: it is switched off.
    """
    if not new_val:
        raise ConfigurationError("threefry_partitionable: it must be True: keys have no other bits, got False.")
    return nullcontext()


def _without_meaning(name: str, setting: str) -> Any:
    """The context manager of a setting of JAX that has no meaning here."""

    def context(new_val: Any = None) -> AbstractContextManager[Any]:
        note_without_meaning(setting)
        return nullcontext()

    context.__name__ = context.__qualname__ = name
    context.__doc__ = "Nothing: a setting of JAX that has no meaning here, which is said once."
    return context


allow_f16_reductions = _without_meaning("allow_f16_reductions", "jax_allow_f16_reductions")
auto_pcast = _without_meaning("auto_pcast", "jax_auto_pcast")
enable_checks = _without_meaning("enable_checks", "jax_enable_checks")
softmax_custom_jvp = _without_meaning("softmax_custom_jvp", "jax_softmax_custom_jvp")
jax2tf_associative_scan_reductions = _without_meaning(*["jax2tf_associative_scan_reductions"] * 2)
remove_size_one_mesh_axis_from_type = _without_meaning(
    "remove_size_one_mesh_axis_from_type", "jax_remove_size_one_mesh_axis_from_type"
)


class UserContext(ImmutableObject):
    """A value of your own in force in a scope; what is traced under one value is traced anew under another."""

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
    """A value of your own that functions may read while they are traced, and that is part of the key of their traces.

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
