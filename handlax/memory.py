"""Memories: ``Space.Device``, in which a device computes, and ``Space.Host``, which it can read."""

from .effects.types.array_type import Space as Space
