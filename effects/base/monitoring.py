"""Events that listeners hear of: that something happened, how long it took, from when to when, and numbers.

    register_event_listener(print)
    record_event("/my/event", size=3)      # print("/my/event", size=3)

There are listeners of four kinds. Each is called in the thread that records the event, in the order of registration.
Tracing, lowering and compiling of a function are recorded under JAX's names, and so is what ``compilation_cache_dir``
has and has not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import NotRegistered, need_function

TRACE_SECONDS = "/jax/core/compile/jaxpr_trace_duration"
LOWER_SECONDS = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE_SECONDS = "/jax/core/compile/backend_compile_duration"
HIT, MISSED = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"

Listener = Callable[..., None]


class Listeners:
    """The functions called for events of one kind, in the order of registration.

    Registration replaces the tuple of functions as a whole, so that another thread may record an event meanwhile.
    """

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()

    def add(self, where: str, callback: Listener) -> None:
        need_function(where, callback)
        self.listeners = (*self.listeners, callback)

    def remove(self, where: str, callback: Listener) -> None:
        """Remove the first registration of ``callback``. Raises: NotRegistered: ``callback`` is not registered."""
        if callback not in self.listeners:
            raise NotRegistered(f"{where}: the function must be registered, got {callback!r}.")
        place = self.listeners.index(callback)
        self.listeners = self.listeners[:place] + self.listeners[place + 1 :]

    def __call__(self, *event: Any, **metadata: str | int) -> None:
        for listener in self.listeners:
            listener(*event, **metadata)


EVENTS, DURATIONS, TIME_SPANS, SCALARS = Listeners(), Listeners(), Listeners(), Listeners()


def record_event(event: str, **kwargs: str | int) -> None:
    """Call ``listener(event, **kwargs)`` for every function registered by ``register_event_listener``."""
    EVENTS(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Record that an event took ``duration`` seconds.

    Calls ``listener(event, duration, **kwargs)`` for every function registered by
    ``register_event_duration_secs_listener``.
    """
    DURATIONS(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Record when an event started and ended, in seconds since 1970.

    Calls ``listener(event, start_time, end_time, **kwargs)`` for every function registered by
    ``register_event_time_span_listener``.
    """
    TIME_SPANS(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call ``listener(event, value, **kwargs)`` for every function registered by ``register_scalar_listener``."""
    SCALARS(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have ``callback(event, **kwargs)`` called at every ``record_event``."""
    EVENTS.add("register_event_listener", callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have ``callback(event, seconds, **kwargs)`` called at every ``record_event_duration_secs``.

    Tracing, lowering and compilation of a function are such events; ``kwargs["fun_name"]`` is the function's name,
    ``kwargs["fun_site"]`` the file and line that define it, ``kwargs["fun_code"]`` a number of its code.

    >>> heard = []
    >>> listen = lambda event, seconds, **kwargs: heard.append(kwargs.get("fun_name"))
    >>> register_event_duration_secs_listener(listen)
    >>> from handlax import jit
    >>> y = jit(lambda x: x + 40)(2)
    >>> unregister_event_duration_listener(listen)
    >>> heard[0]
    'jit(<lambda>)'
    """
    DURATIONS.add("register_event_duration_secs_listener", callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Have ``callback(event, start, end, **kwargs)`` called at every ``record_event_time_span``."""
    TIME_SPANS.add("register_event_time_span_listener", callback)


def register_scalar_listener(callback: Listener) -> None:
    """Have ``callback(event, value, **kwargs)`` called at every ``record_scalar``."""
    SCALARS.add("register_scalar_listener", callback)


def unregister_event_listener(callback: Listener) -> None:
    """Undo one ``register_event_listener(callback)``. Raises: NotRegistered: ``callback`` is not registered."""
    EVENTS.remove("unregister_event_listener", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Undo one ``register_event_duration_secs_listener(callback)``.

    Raises: NotRegistered: ``callback`` is not registered.
    """
    DURATIONS.remove("unregister_event_duration_listener", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Undo one ``register_event_time_span_listener(callback)``. Raises: NotRegistered: there is none."""
    TIME_SPANS.remove("unregister_event_time_span_listener", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Undo one ``register_scalar_listener(callback)``. Raises: NotRegistered: ``callback`` is not registered."""
    SCALARS.remove("unregister_scalar_listener", callback)


def clear_event_listeners() -> None:
    """Unregister all listeners: of events, durations, time spans and scalars."""
    for kind in (EVENTS, DURATIONS, TIME_SPANS, SCALARS):
        kind.listeners = ()
