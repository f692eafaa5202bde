"""The connections of this process, by the table of its open files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISSOCK
from typing import TYPE_CHECKING, Any

from ...effects.base.lazy_module import LazyModule

if TYPE_CHECKING:  # a process that is alone does not need it
    import socket
else:
    socket = LazyModule("socket")


Address = tuple[str, int]
"""A host, as a number, and a port."""


def listening() -> frozenset[Address]:
    """Where this process listens; empty if the system has no table of open files."""
    return frozenset([_address(each.getsockname()) for each in _sockets()
                      if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)])


def addresses_of(host: str, port: int) -> frozenset[Address]:
    """The addresses of a host by its name, which may have several; none if it is not known any more."""
    with suppress(OSError):
        return frozenset([_address(found[4]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
    return frozenset()


def break_connections(addresses: frozenset[Address]) -> None:
    """End the connections of this process that lead from or to one of these: nothing more is read from them.

    They may be written to until their owners have read the end: Gloo forgets what it could not write, and waits for it.
    """
    for each in _sockets():
        with suppress(OSError):
            if addresses & {_address(each.getsockname()), _address(each.getpeername())}:
                each.shutdown(socket.SHUT_RD)


def _address(found: Any) -> Address:
    """An address as a socket tells it; gRPC's sockets are of version 6, with addresses of version 4 within them."""
    return found[0].removeprefix("::ffff:"), found[1]


def _sockets() -> Iterator[socket.socket]:
    """The open TCP sockets of this process, each as a duplicate that is closed after its iteration."""
    table = Path("/proc/self/fd")
    for number in [int(entry.name) for entry in table.iterdir()] if table.exists() else ():
        with suppress(OSError):  # closed by now
            if S_ISSOCK(os.fstat(number).st_mode):  # of another file not even a duplicate: its end would end its locks
                with socket.socket(fileno=os.dup(number)) as copy:
                    if copy.type == socket.SOCK_STREAM and copy.family in (socket.AF_INET, socket.AF_INET6):
                        yield copy
