"""Counted, bounded caches: beside the registries, the only state of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple


class CacheInfo(NamedTuple):
    """How often a cache answered, how often it had to ask, and how full it is."""

    hits: int
    misses: int
    size: int
    capacity: int


CACHES: list[Cache] = []


class Cache:
    """A map from keys to what ``make()`` gave for them. Full, it drops its older half."""

    def __init__(self, name: str, capacity: int = 4096):
        self.name = name
        self.capacity = capacity
        self.entries: dict[Hashable, Any] = {}
        self.hits = 0
        self.misses = 0
        self.lock = threading.Lock()
        CACHES.append(self)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The entry of ``key``; made, outside the lock, where there is none. A failed ``make`` leaves nothing."""
        try:
            found = self.entries[key]
            self.hits += 1
            return found
        except KeyError:
            pass
        self.misses += 1
        made = make()
        with self.lock:
            if len(self.entries) >= self.capacity:
                for old in list(self.entries)[: self.capacity // 2]:
                    del self.entries[old]
            return self.entries.setdefault(key, made)

    def clear(self) -> None:
        with self.lock:
            self.entries.clear()

    def info(self) -> CacheInfo:
        return CacheInfo(self.hits, self.misses, len(self.entries), self.capacity)


def clear_caches() -> None:
    """Forget every trace, transformed program and compiled program."""
    for cache in CACHES:
        cache.clear()


def cache_info() -> dict[str, CacheInfo]:
    """The caches by name."""
    return {cache.name: cache.info() for cache in CACHES}
