"""The connections of this process, by the table of its open files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...effects.base.lazy_module import LazyModule

if TYPE_CHECKING:  # a process that is alone does not need it
    import socket
else:
    socket = LazyModule("socket")


def listening_ports() -> frozenset[int]:
    """The ports at which this process listens; empty if the system has no table of open files."""
    return frozenset([
        each.getsockname()[1] for each in _sockets() if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)])


def break_connections(ports: frozenset[int]) -> None:
    """End the connections of this process that lead from or to one of these ports: nothing more is read from them.

    They may be written to until their owners have read the end: Gloo forgets what it could not write, and waits for it.
    """
    for each in _sockets():
        with suppress(OSError):
            if ports & {each.getsockname()[1], each.getpeername()[1]}:
                each.shutdown(socket.SHUT_RD)


def _sockets() -> Iterator[socket.socket]:
    """The open TCP sockets of this process, each as a duplicate that is closed after its iteration."""
    table = Path("/proc/self/fd")
    for number in [int(entry.name) for entry in table.iterdir()] if table.exists() else ():
        with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:  # OSError: no socket, or closed by now
            if copy.type == socket.SOCK_STREAM and copy.family in (socket.AF_INET, socket.AF_INET6):
                yield copy
