"""The coordinator of several processes; a program of its own, which imports nothing of the package.

    python coordinator.py ADDRESS PROCESSES START_TIMEOUT OPTIONS

First it waits for all processes: each sends its index and is answered ``go``, or, when the time is over, which are
``missing``, since XLA's runtime would abort those that wait. Then it runs jaxlib's distributed runtime service at the
same port, with these options as JSON. The connections of the processes stay open: one that breaks tells at once that
its process has left, and the others are told its index.

It prints ``ready`` when it listens and has loaded jaxlib, or why it cannot. It serves until its standard input ends and
no process is connected any more, for a few seconds at most if the input was ``done``; else for some heartbeat timeouts,
within which the remaining processes learn which one died. When it exits, XLA's runtime aborts all processes that are
still connected.
"""

import importlib
import json
import os
import re
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

ESTABLISHED = "01"  # a connection's state in Linux's tables


def listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family, _, _, _, address_of_socket = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address_of_socket[:2], family=family, dualstack_ipv6=both, backlog=4096)


def gather(listener: socket.socket, processes: int, timeout: float) -> dict[int, socket.socket]:
    """The connections of the processes that come before the timeout, and stay, by index. Closes the listener.

    Visitors are heard as they speak, so that one that says little, or is none of the processes, holds up no other.
    """
    deadline = time.monotonic() + timeout
    by_index: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            ready = waiting.select(0 if len(by_index) == processes else left)
            if not ready and len(by_index) == processes:
                break
            for key, _ in ready:
                visitor: Any = key.fileobj
                if visitor is listener:
                    with suppress(OSError):  # it has left meanwhile
                        waiting.register(listener.accept()[0], selectors.EVENT_READ, bytearray())
                    continue
                by_index = {index: known for index, known in by_index.items() if known is not visitor}
                index = heard(visitor, key.data)
                if index is not None and index < processes:
                    by_index[index] = visitor
                elif index is not None or not _BEGINNING.fullmatch(key.data):
                    waiting.unregister(visitor)
                    visitor.close()
        strangers: list[Any] = [key.fileobj for key in waiting.get_map().values()]
    for each in strangers:
        if each not in by_index.values():
            each.close()
    return by_index


_BEGINNING = re.compile(rb"\d{1,9}")  # of the line in which a process says its index


def heard(visitor: socket.socket, said: bytearray) -> int | None:
    """The index that a visitor has said in a line, with what it says now, which is added to ``said``.

    None: no whole line, or something else; ``said`` is empty then where it has left.
    """
    try:
        more = visitor.recv(64, socket.MSG_DONTWAIT)
    except OSError:
        more = b""
    said[:] = said + more if more else b""
    return int(said) if said.endswith(b"\n") and _BEGINNING.fullmatch(said[:-1]) else None


def answer(visitors: Iterable[socket.socket], text: str) -> None:
    for visitor in visitors:
        with suppress(OSError):
            visitor.sendall(f"{text}\n".encode())


def tell_who_leaves(visitors: dict[int, socket.socket]) -> None:
    """Wait for the connections of all processes to end, and tell the others the index of each that does."""
    waiting = selectors.DefaultSelector()
    for index, visitor in visitors.items():
        waiting.register(visitor, selectors.EVENT_READ, index)
    while waiting.get_map():
        for key, _ in waiting.select():
            waiting.unregister(key.fileobj)
            visitors.pop(key.data).close()
            answer(visitors.values(), str(key.data))


def is_connected(port: int) -> bool:
    """Whether some process is connected to the port; True where the system has no table of connections."""
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return not tables or any([row[3] == ESTABLISHED and row[1].endswith(f":{port:04X}") for row in rows])


def main(address: str, processes: int, start_timeout: int, options: str) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # the processes themselves report who died
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the process that has started this one
    listener = listen(address)
    runtime = importlib.import_module("jaxlib._jax")  # takes seconds, which are none of the processes' time to come
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    visitors = gather(listener, processes, start_timeout)
    missing = [str(number) for number in range(processes) if number not in visitors]
    if missing:
        answer(visitors.values(), f"missing {', '.join(missing)}")
        return
    # recoverable: the death of one process does not end the others
    service = runtime.get_distributed_runtime_service(address, processes, recoverable=True, **json.loads(options))
    answer(visitors.values(), "go")
    threading.Thread(target=tell_who_leaves, args=(visitors,), daemon=True).start()
    port, end = int(address.rpartition(":")[2]), sys.stdin.read()
    patience = 5 if end.strip() == "done" else 3 * json.loads(options)["heartbeat_timeout"]
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and is_connected(port):
        time.sleep(0.05)
    service.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
