"""The launcher: a program as several processes of one machine, and their end."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any

from ..lowering.clients.clusters import LAUNCH_ADDRESS, LAUNCH_COUNT, LAUNCH_INDEX

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE = 5  # seconds that the others have to end when one has failed


def launch(program: Sequence[str], processes: int, devices: int | None = None) -> int:
    """Start a Python program so many times, and wait for all; the exit status of the first that fails, else 0.

    What they write is passed on line by line, ``[2] text`` for process 2. When one fails the others are ended, first by
    SIGTERM. Signals are passed on to all; the status of a process that a signal ended is 128 and its number.

    Args:
        program: the arguments of Python: a script, ``-m`` and a module or ``-c`` and a text, and their own arguments.
        devices: the number of CPU devices of each process.
    """
    address = f"127.0.0.1:{free_port()}"
    started = [start_process(program, processes, index, address, devices) for index in range(processes)]
    readers = [reader for index, process in enumerate(started) for reader in _pass_on_output(index, process)]
    before = {number: signal.signal(number, lambda n, _: _send(started, n)) for number in _SIGNALS}
    try:
        return _wait(started)
    finally:
        _send(started, signal.SIGKILL, ended=True)  # and what they have started
        for reader in readers:
            reader.join(_GRACE)
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str]) -> int:
    """``launch`` by the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m handlax.launch", description="Start a program as several processes of this machine.",
        usage="%(prog)s --processes N [--devices M] (script.py | -m module | -c text) [arguments]",
    )
    parser.add_argument("--processes", "-n", type=int, required=True, help="how many")
    parser.add_argument("--devices", type=int, help="the CPU devices of each process")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module instead of a script")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="a program text instead of a script")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script and its arguments")
    given = parser.parse_args(arguments)
    program = ["-m", *given.module] if given.module else ["-c", *given.code] if given.code else given.program
    if not program:
        parser.error("a script must be given, or -m and a module, or -c and a program text")
    if min(given.processes, 1 if given.devices is None else given.devices) < 1:
        parser.error("the numbers of processes and devices must be positive")
    return launch(program, given.processes, given.devices)


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_process(
    program: Sequence[str], count: int, index: int, address: str, devices: int | None
) -> subprocess.Popen[str]:
    """Start process ``index`` of ``count``, in a process group of its own."""
    told = {LAUNCH_ADDRESS: address, LAUNCH_COUNT: str(count), LAUNCH_INDEX: str(index),
            "HANDLAX_COORDINATOR_BIND_ADDRESS": address}
    if devices is not None:
        told["HANDLAX_NUM_CPU_DEVICES"] = str(devices)
    safe = ["-P"] if sys.flags.safe_path else []
    return subprocess.Popen(
        [sys.executable, *safe, *program], env={"PYTHONUNBUFFERED": "1", **os.environ, **told}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )


def _pass_on_output(index: int, process: subprocess.Popen[str]) -> list[threading.Thread]:
    readers = [
        threading.Thread(target=_pass_on, args=(index, source, sink), daemon=True)
        for source, sink in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    ]
    for reader in readers:
        reader.start()
    return readers


def _pass_on(index: int, source: IO[str], sink: Any) -> None:
    with source:
        for line in source:
            sink.write(f"[{index}] {line.rstrip(chr(10))}\n")
            sink.flush()


def _wait(started: Sequence[subprocess.Popen[str]]) -> int:
    """Wait for all processes; when one fails the other processes are ended."""
    ends: SimpleQueue[int] = SimpleQueue()
    for process in started:
        threading.Thread(target=lambda process: ends.put(process.wait()), args=(process,), daemon=True).start()
    for _ in started:
        status = ends.get()
        if status:
            _send(started, signal.SIGTERM)
            for process in started:
                try:
                    process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    _send([process], signal.SIGKILL)
            return status if status > 0 else 128 - status
    return 0


def _send(started: Sequence[subprocess.Popen[str]], number: int, ended: bool = False) -> None:
    """Send a signal to the groups of the processes that run; also to those of ended ones."""
    for process in started:
        if ended or process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
