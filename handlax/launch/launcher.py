"""The launcher: a program as several processes of one machine, and their end."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import IO, Any

from ..lowering.clients.clusters import LAUNCH_ADDRESS, LAUNCH_COUNT, LAUNCH_INDEX, LAUNCH_RESTART, free_port
from ..lowering.clients.coordinator import LAUNCH_SECRET

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE = 5  # seconds that the others have to end when one has failed
_GUARD = """
import os, signal, sys
groups = []
for line in sys.stdin:
    if line == "done\\n":
        sys.exit()
    groups.append(int(line))
for group in groups:        # the launcher has ended without a word
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


def launch(program: Sequence[str], processes: int, devices: int | None = None, restarts: int = 0) -> int:
    """Start a Python program so many times, and wait for all; the exit status of the first that fails, else 0.

    What they write is passed on line by line, ``[2] text`` for process 2. When one fails it is said how, and the others
    are ended, first by SIGTERM; all of them, without a word, when nobody reads what they write, as with ``| head``.
    Signals are passed on to all; the status of a process that a signal ended is 128 and its number. However the
    launcher ends, all have ended then.

    Args:
        program: the arguments of Python: a script, ``-m`` and a module or ``-c`` and a text, and their own arguments.
        devices: the number of CPU devices of each process.
        restarts: how often all are started again when one has failed; ``HANDLAX_LAUNCH_RESTART`` counts them.
    """
    for restart in range(restarts + 1):
        status, signalled = _launch_once(program, processes, devices, restart)
        if status == 0 or signalled or restart == restarts:
            break
        _say(f"all are started again, {restart + 1} of {restarts} times")
    return status


def _launch_once(program: Sequence[str], processes: int, devices: int | None, restart: int) -> tuple[int, bool]:
    """``launch`` without restarts: the status, and whether it was told to end by a signal."""
    address, secret = f"127.0.0.1:{free_port()}", secrets.token_hex(16)
    signals: list[int] = []
    started: list[subprocess.Popen[str]] = []
    readers: list[threading.Thread] = []
    ends: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def pass_on(number: int, frame: object) -> None:
        signals.append(number)
        _send(started, number)

    def unread() -> None:
        signals.append(signal.SIGPIPE)
        ends.put((-1, -signal.SIGPIPE))

    with _guard() as guarded:
        before = {number: signal.signal(number, pass_on) for number in _SIGNALS}
        try:
            for index in range(processes):
                started.append(start_process(program, processes, index, address, devices, secret, restart))
                guarded(started[-1].pid)
            readers += [reader for index, each in enumerate(started) for reader in _pass_on_output(index, each, unread)]
            return _wait(started, ends), bool(signals)
        finally:
            _send(started, signal.SIGKILL, ended=True)  # and what they have started
            for reader in readers:
                reader.join(_GRACE)
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _guard() -> Iterator[Callable[[int], None]]:
    """A block at whose end, if it is not reached, a process kills the process groups whose numbers were given."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GUARD], stdin=subprocess.PIPE, text=True, start_new_session=True)

    def tell(word: object) -> None:
        with suppress(BrokenPipeError):  # it was killed
            guard.stdin.write(f"{word}\n")  # type: ignore[union-attr]
            guard.stdin.flush()  # type: ignore[union-attr]

    try:
        yield tell
    finally:
        tell("done")
        guard.communicate()


def _say(text: str) -> None:
    with suppress(BrokenPipeError):
        sys.stderr.write(f"handlax.launch: {text}.\n")
        sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """``launch`` by the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m handlax.launch", description="Start a program as several processes of this machine.",
        usage="%(prog)s --processes N [--devices M] [--restarts R] (script.py | -m module | -c text) [arguments]",
    )
    parser.add_argument("--processes", "-n", type=int, required=True, help="how many")
    parser.add_argument("--devices", type=int, help="the CPU devices of each process")
    parser.add_argument("--restarts", type=int, default=0, help="how often all are started again when one has failed")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module instead of a script")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="a program text instead of a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script and its arguments")
    given = parser.parse_args(arguments)
    program = ["-m", *given.module] if given.module else ["-c", *given.code] if given.code else given.program
    if not program:
        parser.error("a script must be given, or -m and a module, or -c and a program text")
    if min(given.processes, 1 if given.devices is None else given.devices) < 1:
        parser.error("the numbers of processes and devices must be positive")
    if given.restarts < 0:
        parser.error("the number of restarts must not be negative")
    return launch(program, given.processes, given.devices, given.restarts)


def start_process(
    program: Sequence[str], count: int, index: int, address: str, devices: int | None, secret: str = "",
    restart: int = 0,
) -> subprocess.Popen[str]:
    """Start process ``index`` of ``count``, in a process group of its own."""
    told = {LAUNCH_ADDRESS: address, LAUNCH_COUNT: str(count), LAUNCH_INDEX: str(index), LAUNCH_SECRET: secret,
            LAUNCH_RESTART: str(restart),
            "HANDLAX_COORDINATOR_BIND_ADDRESS": address}
    if devices is not None:
        told["HANDLAX_NUM_CPU_DEVICES"] = str(devices)
    safe = ["-P"] if sys.flags.safe_path else []
    return subprocess.Popen(
        [sys.executable, *safe, *program], env={"PYTHONUNBUFFERED": "1", **os.environ, **told}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )


def _pass_on_output(
    index: int, process: subprocess.Popen[str], unread: Callable[[], None]
) -> list[threading.Thread]:
    readers = [
        threading.Thread(target=_pass_on, args=(index, source, sink, unread), daemon=True)
        for source, sink in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    ]
    for reader in readers:
        reader.start()
    return readers


def _pass_on(index: int, source: IO[str], sink: Any, unread: Callable[[], None]) -> None:
    with source:
        for line in source:
            try:
                sink.write(f"[{index}] {line.rstrip(chr(10))}\n")
                sink.flush()
            except BrokenPipeError:
                with open(os.devnull, "w") as nowhere:  # there goes what is still to be written, also by Python's end
                    os.dup2(nowhere.fileno(), sink.fileno())
                unread()


def _wait(started: Sequence[subprocess.Popen[str]], ends: SimpleQueue[tuple[int, int]]) -> int:
    """Wait for all processes; when one fails it is said how, and the other processes are ended.

    ``ends`` are indices and statuses, those of the launcher itself with the index -1.
    """
    for index, process in enumerate(started):
        threading.Thread(
            target=lambda index, process: ends.put((index, process.wait())), args=(index, process), daemon=True).start()
    for _ in started:
        index, status = ends.get()
        if status:
            if index >= 0:
                _say(f"process {index} ended {_cause(status)}, the others are ended")
            _send(started, signal.SIGTERM)
            for process in started:
                try:
                    process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    _send([process], signal.SIGKILL)
            return status if status > 0 else 128 - status
    return 0


def _cause(status: int) -> str:
    if status > 0:
        return f"with status {status}"
    name = signal.Signals(-status).name
    return f"by {name} (was the memory used up?)" if -status == signal.SIGKILL else f"by {name}"


def _send(started: Sequence[subprocess.Popen[str]], number: int, ended: bool = False) -> None:
    """Send a signal to the groups of the processes that run; also to those of ended ones."""
    for process in started:
        if ended or process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
