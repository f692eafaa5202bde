"""The coordinator of several processes; a program of its own, which imports nothing of the package.

    python coordinator.py ADDRESS PROCESSES START_TIMEOUT OPTIONS

First it waits for all processes: each proves that it knows the secret of the launch and is answered ``go``, or, when
the time is over, which are ``missing``, since XLA's runtime would abort those that wait. Then it runs jaxlib's
distributed runtime service at the same port, with these options as JSON. The connections of the processes stay open:
one that breaks tells at once that its process has left, and the others are told its index.

It prints ``ready`` when it listens and has loaded jaxlib, or why it cannot. It serves until its standard input has a
line or ends, and no process is connected any more, for a few seconds at most if the line is ``done``; else for some
heartbeat timeouts, within which the remaining processes learn which one died. When it exits, XLA's runtime aborts all
processes that are still connected.
"""

import hmac
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

LAUNCH_SECRET = "HANDLAX_LAUNCH_SECRET"
ESTABLISHED = "01"  # a connection's state in Linux's tables


def listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family, _, _, _, address_of_socket = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address_of_socket[:2], family=family, dualstack_ipv6=both, backlog=4096)


class Visitor:
    """A connection to the coordinator, from which ``index`` is known when it has proved to be one of the processes.

    The coordinator says a number once used; a process answers its index, its name, and the digest of the number and the
    index by the secret of the launch (HMAC, RFC 2104).
    """

    def __init__(self, connection: socket.socket):
        self.connection, self.number = connection, os.urandom(16).hex()
        self.said, self.index, self.name = b"", -1, ""
        answer([connection], self.number)

    def hears(self, secret: str, processes: int) -> bool:
        """Hear what it says now; whether it may stay: it has said nothing else than one of the processes would."""
        try:
            more = self.connection.recv(512, socket.MSG_DONTWAIT)
        except OSError:
            more = b""
        self.said += more
        hello = _HELLO.fullmatch(self.said)
        if hello is None or self.index >= 0:  # it has left, says more, or has not come to the end of the line
            begins = len(self.said) < _LONGEST and _BEGINNING.match(self.said)
            return bool(more and begins and self.index < 0)
        index, proof = int(hello[1]), hello[3].decode()
        if index >= processes or not hmac.compare_digest(proof, proof_of(secret, self.number, index)):
            return False
        self.index, self.name = index, hello[2].decode(errors="replace")
        return True


def proof_of(secret: str, number: str, index: int) -> str:
    """What process ``index`` answers to the coordinator's number."""
    return hmac.new(secret.encode(), f"{number} {index}".encode(), "sha256").hexdigest()


class Duplicate(Exception):
    """Two processes with one index."""


class Gathering:
    """Those who visit a listener: ``by_index`` are the processes, and ``strangers`` may prove to be some, first ones
    first.
    """

    def __init__(self, listener: socket.socket, processes: int, secret: str):
        self.listener, self.processes, self.secret = listener, processes, secret
        self.by_index: dict[int, Visitor] = {}
        self.strangers: dict[Visitor, None] = {}
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(listener, selectors.EVENT_READ)

    def is_whole(self) -> bool:
        return len(self.by_index) == self.processes

    def admit(self) -> None:
        """Take a new visitor among the strangers, of whom the first leaves if they are too many."""
        with suppress(OSError):  # it has left meanwhile
            visitor = Visitor(self.listener.accept()[0])
            self.strangers[visitor] = None
            self.waiting.register(visitor.connection, selectors.EVENT_READ, visitor)
        for visitor in [*self.strangers][:-_MOST]:
            self.dismiss(visitor)

    def hear(self, visitor: Visitor) -> None:
        """Hear what a visitor says now: it stays, proves to be a process, or is dismissed. Raises: Duplicate."""
        if not visitor.hears(self.secret, self.processes):
            self.dismiss(visitor)
        elif visitor.index >= 0:
            other = self.by_index.get(visitor.index, visitor)
            if other.name != visitor.name:
                said = f"duplicate {visitor.index} {other.name} {visitor.name}"
                answer([each.connection for each in (*self.by_index.values(), visitor)], said)
                raise Duplicate(said)
            del self.strangers[visitor]
            self.by_index[visitor.index] = visitor  # of one that comes again, its first connection was lost

    def dismiss(self, visitor: Visitor) -> None:
        self.waiting.unregister(visitor.connection)
        visitor.connection.close()
        self.strangers.pop(visitor, None)
        if self.by_index.get(visitor.index) is visitor:
            del self.by_index[visitor.index]


def gather(listener: socket.socket, processes: int, timeout: float, secret: str = "") -> dict[int, socket.socket]:
    """The connections of the processes that come before the timeout, and stay, by index. Closes the listener.

    Visitors are heard as they speak, so that one that says little, or is none of the processes, holds up no other.
    Raises: Duplicate: two processes have one index; both are told.
    """
    deadline, gathering = time.monotonic() + timeout, Gathering(listener, processes, secret)
    try:
        with listener, gathering.waiting:
            while (left := deadline - time.monotonic()) > 0:
                ready = gathering.waiting.select(0 if gathering.is_whole() else left)
                if not ready:  # all have come and say no more, or the time is over
                    break
                for key, _ in ready:
                    if key.data is None:
                        gathering.admit()
                    elif key.data.connection.fileno() >= 0:  # it was not dismissed for the sake of another
                        gathering.hear(key.data)
    except Duplicate:
        gathering.strangers |= dict.fromkeys(gathering.by_index.values())
        raise
    finally:
        for visitor in gathering.strangers:
            visitor.connection.close()
    return {index: visitor.connection for index, visitor in gathering.by_index.items()}


_BEGINNING = re.compile(rb"\d{1,9}( |$)")  # of the line in which a process says its index
_HELLO = re.compile(rb"(\d{1,9}) (\S{1,255}) ([0-9a-f]{64})\n")
_LONGEST = 400  # bytes of such a line
_MOST = 256  # so many visitors may be about to say who they are


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
    rows = [line.split() for table in tables for line in table.read_text().splitlines()]
    return not tables or any([row[3] == ESTABLISHED and row[1].endswith(f":{port:04X}") for row in rows])


def main(address: str, processes: int, start_timeout: int, options: str) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # the processes themselves report who died
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the process that has started this one
    listener = listen(address)
    runtime = importlib.import_module("jaxlib._jax")  # takes seconds, which are none of the processes' time to come
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    try:
        visitors = gather(listener, processes, start_timeout, os.environ.get(LAUNCH_SECRET, ""))
    except Duplicate:
        return
    missing = [str(number) for number in range(processes) if number not in visitors]
    if missing:
        answer(visitors.values(), f"missing {', '.join(missing)}")
        return
    # recoverable: the death of one process does not end the others
    service = runtime.get_distributed_runtime_service(address, processes, recoverable=True, **json.loads(options))
    answer(visitors.values(), "go")
    threading.Thread(target=tell_who_leaves, args=(visitors,), daemon=True).start()
    port, end = int(address.rpartition(":")[2]), sys.stdin.readline()
    patience = 5 if end.strip() == "done" else 3 * json.loads(options)["heartbeat_timeout"]
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and is_connected(port):
        time.sleep(0.05)
    service.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
