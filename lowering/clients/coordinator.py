"""The coordinator of several processes; a program of its own, which imports nothing of the package.

    python coordinator.py ADDRESS PROCESSES START_TIMEOUT OPTIONS

First it waits for all processes: each sends its index and is answered ``go``, or, when the time is over, which are
``missing``, since XLA's runtime would abort those that wait. Then it runs jaxlib's distributed runtime service at the
same port, with these options as JSON. The connections of the processes stay open: one that breaks tells at once that
its process has left, and the others are told its index.

It prints ``ready`` when it listens, or why it cannot. It serves until its standard input ends and no process is
connected any more, for a few seconds at most if the input was ``done``; else for some heartbeat timeouts, within which
the remaining processes learn which one died. When it exits, XLA's runtime aborts all processes that are still
connected.
"""

import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

ESTABLISHED = "01"  # a connection's state in Linux's tables


def listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family, _, _, _, address_of_socket = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address_of_socket[:2], family=family, dualstack_ipv6=both, backlog=4096)


def gather(listener: socket.socket, processes: int, timeout: float) -> dict[int, socket.socket]:
    """The connections of the processes that come before the timeout, by index. Closes the listener."""
    deadline = time.monotonic() + timeout
    by_index: dict[int, socket.socket] = {}
    with listener:
        while len(by_index) < processes and time.monotonic() < deadline:
            with suppress(OSError, ValueError):  # also if the visitor is none of the processes
                listener.settimeout(max(deadline - time.monotonic(), 0.01))
                visitor = listener.accept()[0]
                visitor.settimeout(5)
                by_index[int(visitor.makefile().readline())] = visitor
            if len(by_index) == processes:
                by_index = {index: connection for index, connection in by_index.items() if waits(connection)}
    return by_index


def waits(visitor: socket.socket) -> bool:
    """Whether the other end is still connected; it sends nothing more."""
    visitor.setblocking(False)
    try:
        return bool(visitor.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        visitor.setblocking(True)


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
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    runtime = importlib.import_module("jaxlib._jax")
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
