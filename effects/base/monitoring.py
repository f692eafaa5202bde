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
    """The functions that hear of events of one kind. Their tuple is replaced as a whole: any thread may call."""

    __slots__ = ("listeners",)

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()

    def add(self, where: str, callback: Listener) -> None:
        need_function(where, callback)
        self.listeners = (*self.listeners, callback)

    def remove(self, where: str, callback: Listener) -> None:
        """Raises: NotRegistered: it is no listener of this kind."""
        if callback not in self.listeners:
            raise NotRegistered(f"{where}: the function must be registered, got {callback!r}.")
        place = self.listeners.index(callback)
        self.listeners = self.listeners[:place] + self.listeners[place + 1 :]

    def __call__(self, *event: Any, **metadata: str | int) -> None:
        for listener in self.listeners:
            listener(*event, **metadata)


EVENTS, DURATIONS, TIME_SPANS, SCALARS = Listeners(), Listeners(), Listeners(), Listeners()


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners of events that this one happened: ``listener(event, **kwargs)``."""
    EVENTS(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners of durations how many seconds an event took: ``listener(event, duration, **kwargs)``."""
    DURATIONS(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tell the listeners of time spans from when to when an event lasted, in seconds since 1970."""
    TIME_SPANS(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners of scalars a number: ``listener(event, value, **kwargs)``."""
    SCALARS(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have ``callback(event, **kwargs)`` called at every ``record_event``."""
    EVENTS.add("register_event_listener", callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have ``callback(event, seconds, **kwargs)`` called at every ``record_event_duration_secs``.

    Compilation is such an event; ``fun_name`` is the function's.

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
    """Undo ``register_event_listener``, once. Raises: NotRegistered: it is no such listener."""
    EVENTS.remove("unregister_event_listener", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Undo ``register_event_duration_secs_listener``, once. Raises: NotRegistered: it is no such listener."""
    DURATIONS.remove("unregister_event_duration_listener", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Undo ``register_event_time_span_listener``, once. Raises: NotRegistered: it is no such listener."""
    TIME_SPANS.remove("unregister_event_time_span_listener", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Undo ``register_scalar_listener``, once. Raises: NotRegistered: it is no such listener."""
    SCALARS.remove("unregister_scalar_listener", callback)


def clear_event_listeners() -> None:
    """Forget all listeners of all kinds."""
    for kind in (EVENTS, DURATIONS, TIME_SPANS, SCALARS):
        kind.listeners = ()
