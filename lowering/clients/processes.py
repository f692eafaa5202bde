"""The connection of this process with the other processes of one program, by XLA's distributed runtime.

    connect(Membership("10.0.0.1:1234", count=4, index=0))      before the first client is made

The processes connect to a coordinator, which process 0 starts as a process of its own, so that whichever process dies,
the others can still ask which are alive. Each sends heartbeats. A process without one for the heartbeat timeout is
dead, and calls that wait for it raise ProcessFailure; a slow process is waited for.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...effects.base import config
from ...effects.base.errors import HandlaxError, ProcessesDiffer, ProcessFailure
from ...effects.base.lazy_module import LazyModule
from ...effects.base.source_locations import user_site
from .jaxlib_modules import Client, RuntimeFailure, _jax
from .joint_actions import ActionComparison, Joint, JointActions, count_with
from .open_sockets import Address, addresses_of, break_connections
from .runtime_access import empty_in_children

if TYPE_CHECKING:  # a process that is alone needs none of them
    import ipaddress
    import json
    import socket
    import tempfile

    from . import coordinator
else:
    coordinator = LazyModule("handlax.lowering.clients.coordinator")
    ipaddress, json, socket, tempfile = [LazyModule(name) for name in ("ipaddress", "json", "socket", "tempfile")]

_COORDINATOR = Path(__file__).with_name("coordinator.py")
_CURRENT: list[Connection] = []
empty_in_children(_CURRENT)
_ENDED = "handlax/ended/"
_LONGEST_WAIT = 1800  # seconds
_SHORTEST_START = 60  # seconds that the coordinator has to start, which loads jaxlib
_SOON = 6  # seconds in which the coordinator tells of a process that has left, or did something else
_MET = 4096  # so many of the last new programs are known to have been launched
_PATIENCE = 10.0  # seconds that the end waits for its threads


@dataclass(frozen=True, slots=True)
class Membership:
    """This process's index, the number of processes, the coordinator's address, and the timeouts, in seconds.

    ``credentials`` are jaxlib's options for mutual TLS, ``secret`` is known to the processes of the launch alone.
    ``local_devices`` are the GPUs of this process; None: all.
    """

    coordinator_address: str
    count: int
    index: int
    bind_address: str
    local_devices: tuple[int, ...] | None = None
    partition: int | None = None
    start_timeout: int = 300
    heartbeat_timeout: int = 100
    end_timeout: int = 300
    credentials: Mapping[str, Any] = field(default_factory=dict)
    secret: str = field(default="", repr=False)


def connection() -> Connection | None:
    """The connection with other processes; None: this process is alone."""
    return _CURRENT[0] if _CURRENT else None


def connect(membership: Membership) -> None:
    """Wait for all processes and join them. Raises ProcessFailure: one is missing after ``start_timeout``."""
    started = _start_coordinator(membership) if membership.index == 0 else None
    try:
        line = _come_together(membership)
    except BaseException:
        if started is not None:
            _kill(started)
        raise
    client = _jax.get_distributed_runtime_client(
        membership.coordinator_address, membership.index, init_timeout=membership.start_timeout,
        shutdown_timeout=membership.end_timeout, heartbeat_timeout=membership.heartbeat_timeout,
        use_compression=True, shutdown_on_destruction=False, **membership.credentials,
    )
    client.connect()
    _CURRENT.append(Connection(membership, client, started, line))
    config.PROCESS.joined = membership.count


def _come_together(membership: Membership) -> socket.socket:
    """Wait until the coordinator says that all processes have come; the connection on which it tells who leaves.

    Raises: ProcessFailure: they have not come within ``start_timeout``, or one is there twice.
    """
    host, _, port = membership.coordinator_address.rpartition(":")
    deadline = time.monotonic() + membership.start_timeout
    reason = "it cannot be reached"
    while time.monotonic() <= deadline:
        with suppress(OSError), ExitStack() as closing:
            line = closing.enter_context(socket.create_connection((host.strip("[]"), int(port)), timeout=5))
            line.settimeout(max(deadline - time.monotonic(), 0) + 5)  # the coordinator answers when the time is over
            proof = coordinator.proof_of(membership.secret, _line_of(line), membership.index)
            line.sendall(f"{membership.index} {socket.gethostname()}:{os.getpid()} {proof}\n".encode())
            answer, _, about = _line_of(line).partition(" ")
            if answer == "go":
                closing.pop_all()
                line.settimeout(None)
                return line
            if answer == "missing":
                reason = f"process {about} is missing"
                break
            if answer == "duplicate":
                index, *names = about.split()
                reason = f"process {index} is there twice, {' and '.join(names)}"
                break
            reason = "it sends this process away, which has another secret or another number of processes"
        time.sleep(0.1)
    raise ProcessFailure(
        f"distributed.initialize: all {membership.count} processes must come to "
        f"{membership.coordinator_address} within {membership.start_timeout} s, {reason}.",
        hint="start them all with the same address; initialization_timeout gives them more time.",
    )


def _line_of(connection: socket.socket) -> str:
    """The next line that the other end sends, byte by byte; "" at its end, or where it sends no text.

    gRPC does, of processes that have met already and are about to end.
    """
    said = b""
    while (byte := connection.recv(1)) not in (b"", b"\n"):
        if byte < b" ":
            return ""
        said += byte
    return said.decode(errors="replace")


def disconnect() -> None:
    """Wait for all processes to disconnect, then leave; does nothing in a process that is alone.

    Raises: ProcessFailure: one did not come within ``end_timeout``.
    """
    if _CURRENT:
        _CURRENT.pop().close()


def _start_coordinator(membership: Membership) -> subprocess.Popen[str]:
    """Start the coordinator, and wait until it accepts connections.

    Raises: ProcessFailure: it does not, within ``start_timeout`` or a minute.
    """
    timeouts = {"heartbeat_timeout": membership.heartbeat_timeout, "shutdown_timeout": membership.end_timeout}
    options = json.dumps(timeouts | dict(membership.credentials))
    facts = [membership.bind_address, str(membership.count), str(membership.start_timeout), options]
    command = [sys.executable, "-P", str(_COORDINATOR), *facts]
    path = os.pathsep.join([entry for entry in sys.path if entry])  # jaxlib is where this process finds it
    patience = max(membership.start_timeout, _SHORTEST_START)
    with tempfile.TemporaryFile("w+") as errors:  # of any size: a pipe that nobody reads would stop the coordinator
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "PYTHONPATH": path, coordinator.LAUNCH_SECRET: membership.secret},
        )
        try:
            output: Any = started.stdout
            if select.select([output], [], [], patience)[0] and output.readline() == "ready\n":
                threading.Thread(target=started.wait, name="handlax coordinator", daemon=True).start()  # it is reaped
                return started
        except BaseException:
            _kill(started)
            raise
        _kill(started)
        errors.seek(0)
        said = errors.read().strip().rpartition("\n")[2] or f"no answer within {patience} s"
    raise ProcessFailure(
        f"distributed.initialize: the coordinator must be able to listen at {membership.bind_address}, got {said}.",
        hint="another port, if this one is in use; coordinator_bind_address names the interface.",
    )


def _kill(coordinator: subprocess.Popen[str]) -> None:
    coordinator.kill()
    coordinator.communicate()


class Connection:
    """This process's connection with the others: barriers, exchanged messages, and the detection of dead processes.

    ``failure`` makes the error of another process's failure, once there is one.
    """

    def __init__(
        self, membership: Membership, client: Client, coordinator: subprocess.Popen[str] | None, line: socket.socket
    ):
        self.membership = membership
        self.client = client
        self.coordinator = coordinator
        self.line = line
        os.register_at_fork(after_in_child=line.close)  # held by a child it would stay open at the end of this process
        self.count, self.index = membership.count, membership.index
        self.failure: Callable[[], HandlaxError] | None = None
        self.actions = JointActions(self.index)
        self.comparison = ActionComparison(client, self.actions)
        self._met: dict[tuple[frozenset[int], int], None] = {}
        self._turns: dict[frozenset[int], threading.RLock] = {}
        self._said: Counter[frozenset[int]] = Counter()
        self._at_end = False
        self._sync_points: Any = None
        self.on_failure: Callable[[], None] = self._break_connections
        self._ended, self._asked = False, threading.Event()
        self._asker = threading.Thread(target=self._watch, name="handlax roll call", daemon=True)
        self._asker.start()
        self._listener = threading.Thread(target=self._listen, name="handlax who leaves", daemon=True)
        self._listener.start()
        atexit.register(_leave_at_exit)

    def local_host(self) -> str | None:
        """The address at which the CPU's collectives listen; None: the address of the host name."""
        host = self.membership.coordinator_address.rpartition(":")[0].strip("[]")
        with suppress(ValueError):
            return host if ipaddress.ip_address(host).is_loopback else None
        return "127.0.0.1" if host == "localhost" else None

    def gpu_options(self) -> dict[str, Any]:
        """The options that describe the processes to a GPU client."""
        told = {"node_id": self.index, "num_nodes": self.count, "partition_index": self.membership.partition,
                "visible_devices": self.membership.local_devices}
        return {name: [*value] if isinstance(value, tuple) else value for name, value in told.items()
                if value is not None}

    # Waiting for others

    def meet(self, name: str, timeout: int) -> None:
        """A barrier: wait until all processes have called it with this name.

        Raises: ProcessFailure: one has failed or ended, or does not come in time.
        """
        everyone = frozenset(range(self.count))
        self.take_part(everyone, name)
        self._wait(name, timeout, everyone)

    def _wait(self, name: str, timeout: int, numbers: Iterable[int]) -> None:
        """A barrier that ends when a process dies, as the runtime's does not: tries of one second each, until all
        succeed at once.
        """
        deadline = time.monotonic() + timeout
        while True:
            self.check()
            try:
                return self.client.wait_at_barrier(name, 1000, sorted(numbers))
            except RuntimeFailure as error:
                with suppress(RuntimeFailure):
                    self._look_who_has_ended()
                if time.monotonic() > deadline:
                    raise self.error(f"one did not come to {name} within {timeout} s") from error

    def all_say(self, text: str, who: frozenset[int], what: str, number: int | None = None) -> dict[int, str]:
        """All-gather of texts over the processes with these indices, each of which must call it: the text of each.

        It is a joint action, as in ``take_part``.
        """
        self.take_part(who, what, number)
        self._said[who] += 1  # two keys in turn: a process that writes one again knows that all have read it
        key = f"handlax/said/{sorted(who)}/{self._said[who] % 2}"
        self.client.key_value_set(f"{key}/{self.index}", text, allow_overwrite=True)
        self._wait(key, _LONGEST_WAIT, who)
        texts = self.client.key_value_dir_get(key)
        return {int(name.rpartition("/")[2]): said for name, said in texts}

    def exchange(self, text: str, name: str) -> dict[int, str]:
        """All-gather of texts over all processes, which a thread of each calls with the same ``name``, used once.

        It is no joint action: it may come before or after those of other threads.

        Raises: ProcessFailure: one has failed or ended, or does not come in time.
        """
        key, everyone = f"handlax/exchanged/{name}", range(self.count)
        self.client.key_value_set(f"{key}/{self.index}", text)
        self._wait(key, _LONGEST_WAIT, everyone)
        texts = {index: str(self.client.key_value_try_get(f"{key}/{index}")) for index in everyone}
        self._wait(f"{key}/read", _LONGEST_WAIT, everyone)
        if self.index == 0:
            self.client.key_value_delete(key)
        return texts

    def take_part(self, who: frozenset[int], what: str, number: int | None = None) -> None:
        """Note a joint action of the processes with these indices before it begins; another ``number``, another action.

        One that does something else, or has ended without it, is reported.
        """
        self.actions.note(who, Joint(what, zlib.crc32(what.encode()) if number is None else number, user_site(1)))

    def turn(self, who: frozenset[int]) -> threading.RLock:
        """Held by a thread while it begins a joint action of these processes, so that the notes are in this order."""
        return self._turns.get(who) or self._turns.setdefault(who, threading.RLock())

    def has_met(self, who: frozenset[int], number: int) -> bool:
        """Whether ``note_meeting`` was called so; all processes forget it at the same time."""
        return (who, number) in self._met

    def note_meeting(self, who: frozenset[int], number: int) -> None:
        """Note that these processes have launched a program together, each at the same time."""
        self._met[who, number] = None
        if len(self._met) > _MET:
            del self._met[next(iter(self._met))]

    def reached_sync_point(self, step: int) -> bool:
        """Whether this is the step at which all processes save what they have: one was told by SIGTERM to end."""
        if self._sync_points is None:
            self._sync_points = _jax.create_preemption_sync_manager()
            self._sync_points.initialize(self.client)
        return bool(self._sync_points.reached_sync_point(step))

    def compare(self) -> None:
        """Raises ProcessesDiffer: this process and one that has told its counts have done different things together."""
        self._fail_by(self.comparison.found())
        self.check()

    def check(self) -> None:
        """Raise the error of another process's failure, if one has failed."""
        if self.failure is not None:
            raise self.failure()

    def error(self, reason: str) -> ProcessFailure:
        return ProcessFailure(
            f"process {self.index}: all {self.count} processes must take part, {reason}.",
            hint="its own output says why it failed; restart all of them.",
        )

    # Who is alive

    def _watch(self) -> None:
        self._call_roll()
        self._await_launches()

    def _call_roll(self) -> None:
        """The loop of heartbeats: ask which processes are alive; the answer comes when all have asked, or after the
        timeout.
        """
        everyone, timeout = [*range(self.count)], self.membership.heartbeat_timeout
        while self.failure is None and not self._is_over(min(timeout / 10, 2)):
            try:
                ended = self._look_who_has_ended()
                self._fail_by(self.comparison.asked())
                self.comparison.tell()
                alive = self.client.get_live_nodes(everyone)
                self._fail_by(self.comparison.found())
            except RuntimeFailure as error:
                return self._fail(f"the coordinator does not answer ({str(error).partition(chr(10))[0]})")
            dead = [index for index in everyone if index not in alive and index not in ended]
            if dead:
                ended = self._look_who_has_ended()
                dead = [index for index in dead if index not in ended]
            if dead:
                return self._fail(f"process {_numbers(dead)} has left, or has not answered for {timeout} s")

    def _is_over(self, seconds: float) -> bool:
        """Wait so many seconds, or until ``ask`` is called; then, whether this process has left the others."""
        self._asked.wait(seconds)
        self._asked.clear()
        return self._ended

    def ask(self) -> None:
        """Have the roll called now."""
        self._asked.set()

    def _listen(self) -> None:
        """Hear from the coordinator whose connections have ended: at once where a process, not its machine, fails."""
        with suppress(OSError, RuntimeFailure):
            while not self._ended and (index := _line_of(self.line)):
                if int(index) not in self._look_who_has_ended():
                    self._fail(f"process {index} has left")

    def _look_who_has_ended(self) -> set[int]:
        """The indices of processes that have disconnected; a failure if they were still to take part in a joint action.
        """
        notes = {int(name.rpartition("/")[2]): json.loads(text) for name, text in self.client.key_value_dir_get(_ENDED)}
        missed = [index for index, note in notes.items() if self._misses(index, **note)]
        if missed:
            self._fail(f"process {_numbers(missed)} has ended")
        return set(notes)

    def _misses(self, index: int, waits: bool, counts: list[tuple[list[int], int, int]]) -> bool:
        """Whether this process waits in a joint action for process ``index``, which has ended or does not wait at its
        end.
        """
        return not waits if self._at_end else self.actions.shared_with(index).count > count_with(self.index, counts)[0]

    def _fail(self, reason: str) -> None:
        self._fail_by(partial(self.error, reason))

    def _fail_by(self, failure: Callable[[], HandlaxError] | None) -> None:
        if failure is not None and not self._ended and self.failure is None:
            self.failure = failure
            self.on_failure()

    # The CPU's collectives wait for a process that is stopped, not ended, for half an hour, within the launch of a
    # program. Their connections are broken when it is dead by the roll call, so that they fail. Those of GPUs cannot
    # be ended but with the process, which is what XLA's runtime does too.

    def note_listener(self, address: Address | None) -> None:
        """Tell the other processes where this process's collectives listen."""
        if address is not None:
            self.client.key_value_set(f"handlax/listener/{self.index}", json.dumps(address))

    def _break_connections(self) -> None:
        with suppress(RuntimeFailure):
            listeners = self.client.key_value_dir_get("handlax/listener/")
            break_connections(frozenset([tuple(json.loads(address)) for _, address in listeners]))

    def _await_launches(self) -> None:
        """Wait for launches to end after a failure, for the heartbeat timeout; then end this process.

        Gloo waits half an hour for what it was sending when a connection broke.
        """
        for turn in [*self._turns.values()]:
            if turn.acquire(timeout=self.membership.heartbeat_timeout):
                turn.release()
            elif not self._ended:
                self.end_process()

    def end_process(self) -> None:
        """Report the failure, and exit this process."""
        with suppress(Exception):  # what is written until now
            sys.stdout.flush()
        if self.failure is not None:
            error = self.failure()
            sys.stderr.write(f"handlax.errors.{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)

    # The end

    def close(self, wait: bool = True) -> None:
        """Leave the other processes, after a barrier of all; at once if one of them has failed, or without ``wait``.

        Raises: ProcessFailure: one did not come within ``end_timeout``.
        """
        together = wait and self.failure is None
        try:
            self._at_end = True
            with suppress(RuntimeFailure):
                note = json.dumps({"waits": together, "counts": self.actions.counts()})
                self.client.key_value_set(f"{_ENDED}{self.index}", note)
            if together:
                together = False
                self._wait("the end", self.membership.end_timeout, range(self.count))
                together = True
                self._fail_by(self.comparison.at_end(_ENDED))
                self.check()
        finally:
            self._ended = True
            self.ask()
            with suppress(OSError):
                self.line.shutdown(socket.SHUT_RDWR)
            self._listener.join(_PATIENCE)
            self.line.close()
            if self._sync_points is not None:
                self._sync_points.shutdown()
            with suppress(RuntimeFailure):
                self.client.shutdown()
            self._end_asking()
            if self.coordinator is not None:
                self.coordinator.stdin.write("done\n" if together else "left\n")  # type: ignore[union-attr]
                self.coordinator.stdin.close()  # type: ignore[union-attr]

    def _end_asking(self) -> None:
        """End the roll call: it waits in the runtime for the others, of which one may be dead or ask no more, and
        would be ended there with the interpreter, which aborts the process up to Python 3.13.
        """
        host, _, port = self.membership.coordinator_address.rpartition(":")
        addresses, until = addresses_of(host.strip("[]"), int(port)), time.monotonic() + _PATIENCE
        while self._asker.is_alive() and time.monotonic() < until:
            break_connections(addresses)  # again, as it may have connected again
            self._asker.join(0.1)


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _leave_at_exit() -> None:
    """Disconnect when Python exits; after an error without waiting for the others, as they may wait for this process.
    """
    if _CURRENT:
        joined, fails = _CURRENT.pop(), getattr(sys, "last_value", None) is not None
        try:
            joined.close(not fails)
        except ProcessFailure:
            return
        except ProcessesDiffer:
            joined.end_process()


_BY_OTHERS = re.compile(r"\bGloo\b|\bgloo\b|NCCL|GetKeyValue|coordination service", re.IGNORECASE)


def failure_of_others(error: Exception) -> HandlaxError | None:
    """The error for a runtime error that another process has caused, which has failed or differs; None for any other.
    """
    joined = connection()
    if joined is None or not _BY_OTHERS.search(str(error)):
        return None
    joined.ask()
    until = time.monotonic() + _SOON
    while joined.failure is None and time.monotonic() < until:
        time.sleep(0.01)  # a broken connection is seen before it is told whose it was
    if joined.failure is None:
        joined.failure = partial(
            joined.error, f"one has ended or cannot be reached ({str(error).partition(chr(10))[0]})")
    failure = joined.failure()
    failure.__cause__ = error
    return failure
