"""The caches of the process: all bounded, all counted by ``cache_info`` and emptied by ``clear_caches``.

    Cache             a dictionary from keys to values
    cached            a decorator: the results of a function by its arguments
    AttachedCache     a dictionary on each of many objects, freed with the object
    WeakCache         the same for objects without such an attribute, found by identity

``per_process`` is a decorator for what is the same for the whole process; it is no cache, and is not cleared.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .deep_calls import on_deep_stack

P = ParamSpec("P")
R = TypeVar("R")


class CacheInfo(NamedTuple):
    """Hits, misses, entries and capacity of a cache.

    Hits on the hottest paths are not counted: these read the cache's dictionary directly.
    """

    hits: int
    misses: int
    size: int
    capacity: int


CACHES: list[AnyCache] = []
_MISSING = object()


class AnyCache(ABC):
    """The base of all caches: named, counted, and safe to clear at any time, which never changes a result."""

    def __init__(self, name: str, capacity: int):
        self.name = name
        self.capacity = capacity
        self.hits = 0
        self.misses = 0
        CACHES.append(self)

    @abstractmethod
    def __len__(self) -> int:
        """The number of entries."""

    @abstractmethod
    def clear(self) -> None:
        """Drop every entry."""

    def info(self) -> CacheInfo:
        return CacheInfo(self.hits, self.misses, len(self), self.capacity)


class Cache(AnyCache):
    """A map from keys to values. When it is full, the older half is dropped.

    ``entries`` is the same dictionary for the life of the cache, so that a hot path may keep a reference to it, look up
    there, and call ``add`` after a miss.
    """

    def __init__(self, name: str, capacity: int = 4096):
        super().__init__(name, capacity)
        self.entries: dict[Any, Any] = {}

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of ``key``; on a miss, ``make()``, called without a lock, and stored unless it raises.

        ``make`` may nest as deeply as a program does: it is called by ``on_deep_stack``.
        """
        value = self.entries.get(key, _MISSING)  # an exception for a miss would take 0.5 us
        if value is _MISSING:
            return self.add(key, on_deep_stack(make))
        self.hits += 1
        return value

    def add(self, key: Hashable, value: Any) -> Any:
        """Store ``value`` under ``key``, unless another thread has stored one; return the value stored."""
        self.misses += 1
        if len(self.entries) >= self.capacity:
            self.drop_older_half(self.capacity)
        return self.entries.setdefault(key, value)

    def drop_older_half(self, least: int = 1) -> None:
        """Drop the older half of the entries, if there are still at least ``least``.

        Threads that do so at once drop the same half. No lock is held: a value's finalizer may need this cache.
        """
        keys = list(self.entries)
        if len(keys) >= least:
            for old in keys[: (len(keys) + 1) // 2]:
                self.entries.pop(old, None)

    def __len__(self) -> int:
        return len(self.entries)

    def clear(self) -> None:
        self.entries.clear()


class _FunctionCache(AnyCache):
    """The cache of a function decorated with ``functools.lru_cache``, which looks keys up in C."""

    def __init__(self, name: str, function: Any):
        super().__init__(name, function.cache_parameters()["maxsize"])
        self.function = function

    def __len__(self) -> int:
        return int(self.function.cache_info().currsize)

    def clear(self) -> None:
        self.function.cache_clear()

    def info(self) -> CacheInfo:
        hits, misses, _, size = self.function.cache_info()
        return CacheInfo(hits, misses, size, self.capacity)


def cached(name: str, capacity: int = 1024) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: cache the results of a function of hashable arguments; the least recently used are dropped."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached_function: Any = functools.lru_cache(capacity)(function)
        _FunctionCache(name, cached_function)
        return cached_function

    return decorate


def process_lock() -> Any:
    """A reentrant lock of the process, which is free in a forked child: the thread that held it is not there."""
    lock: Any = threading.RLock()
    os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock


def per_process(function: Callable[[], R]) -> Callable[[], R]:
    """Decorator: the function is called once, however many threads call; every call returns that result."""
    lock = process_lock()
    results: list[R] = []

    def first_call() -> R:
        with lock:
            if not results:
                results.append(function())
            return results[0]

    return functools.cache(functools.wraps(function)(first_call))


class AttachedCache(AnyCache):
    """A cache spread over many objects, its owners: each has one part, a dictionary, which is freed with the owner.

    A part is the attribute ``attribute`` of an owner; if that is None, the owner is a ``Part``. Several
    caches may share ``owners``, each with its own attribute. All parts are cleared as soon as ``capacity`` entries were
    added since the last clearing.
    """

    def __init__(self, name: str, attribute: str | None, capacity: int = 4096, owners: Owners | None = None):
        super().__init__(name, capacity)
        self.attribute = attribute
        self.misses_at_clear = 0
        self.owners = Owners() if owners is None else owners

    def new_part(self) -> Part:
        """A dictionary that is an owner."""
        part = Part()
        self.owners.add(part)
        return part

    def parts(self) -> list[dict[Any, Any]]:
        """The dictionaries of the owners alive."""
        owners, name = self.owners.alive(), self.attribute
        return owners if name is None else [getattr(owner, name) for owner in owners]

    def add(self, part: dict[Any, Any], key: Hashable, value: Any) -> Any:
        """Store ``value`` under ``key`` in ``part``, unless another thread has stored one; return the value stored."""
        self.misses += 1
        if self.misses - self.misses_at_clear >= self.capacity:  # counting the entries of all parts is too slow
            self.clear()
        return part.setdefault(key, value)

    def __len__(self) -> int:
        return sum(map(len, self.parts()))

    def clear(self) -> None:
        self.misses_at_clear = self.misses
        for part in self.parts():
            part.clear()


class Part(dict[Any, Any]):
    """A dictionary that is itself the owner of its part of an ``AttachedCache``; compared by identity."""

    __slots__ = ("__weakref__",)
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


class Owners:
    """Objects by weak references, such as those that have parts of an ``AttachedCache``."""

    __slots__ = ("references", "bound", "lock")

    def __init__(self) -> None:
        self.references: list[weakref.ref[Any]] = []
        self.bound = 1024  # so many references are looked through for dead ones: twice as many as were alive
        self.lock = threading.Lock()

    def add(self, owner: Any) -> None:
        self.references.append(weakref.ref(owner))
        if len(self.references) > self.bound:
            self.forget_dead()

    def forget_dead(self) -> None:
        """Drop the references to freed objects, while other threads may add references.

        Not if another thread, or this one outside of a finalizer, is doing so: waiting for itself it would never end.
        """
        if not self.lock.acquire(blocking=False):
            return
        try:
            count = len(self.references)
            self.references[:count] = [reference for reference in self.references[:count] if reference() is not None]
            self.bound = max(1024, 2 * len(self.references))
        finally:
            self.lock.release()

    def alive(self) -> list[Any]:
        owners = [reference() for reference in list(self.references)]
        return [owner for owner in owners if owner is not None]


class HoldsParts:
    """An owner of parts of a ``WeakCache`` to which their entries refer: it holds them, to be freed with them."""

    cache_parts: dict[str, Part]  # by the name of the cache


class WeakCache(AttachedCache):
    """An ``AttachedCache`` whose parts are found by the identity of an owner that needs no attribute for it.

    A part is freed with its owner, unless its entries refer to the owner; such an owner is a ``HoldsParts``. A part
    belongs to the caller if the owner cannot be weakly referenced.
    """

    def __init__(self, name: str, capacity: int = 4096):
        super().__init__(name, None, capacity)
        self.watched: dict[int, tuple[weakref.ref[Any], Part]] = {}

    def part(self, owner: Any) -> Part:
        """The dictionary of entries of ``owner``."""
        if isinstance(owner, HoldsParts):
            return owner.cache_parts.get(self.name) or owner.cache_parts.setdefault(self.name, self.new_part())
        number = id(owner)
        entry = self.watched.get(number)
        if entry is not None and entry[0]() is owner:
            return entry[1]
        part = self.new_part()
        with contextlib.suppress(TypeError):
            self.watched[number] = weakref.ref(owner, lambda _: self.watched.pop(number, None)), part
        return part


def clear_caches() -> None:
    """Empty all caches: traces, transformed programs and compiled programs are made anew when they are needed."""
    for cache in CACHES:
        cache.clear()


def cache_info() -> dict[str, CacheInfo]:
    """Hits, misses, size and capacity of every cache, by its name."""
    return {cache.name: cache.info() for cache in CACHES}
