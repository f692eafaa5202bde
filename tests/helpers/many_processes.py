"""Programs executed as several processes that are joined with each other."""

import socket
import subprocess
import sys
from collections import defaultdict
from typing import NamedTuple

from helpers.new_process import inherited

# Gloo writes to the standard output, between our words.
JOINED = """
import functools, sys
print = functools.partial(print, file=sys.stderr, flush=True)
import handlax as hx
hx.distributed.initialize(initialization_timeout=60, heartbeat_timeout_seconds=5)
"""


class Launched(NamedTuple):
    """How a launched program ended: its status, and the lines that each process wrote to its standard error."""

    status: int
    lines: dict[int, list[str]]


def launch(code, processes, devices=1, *, prefix=JOINED, timeout=90, **environment):
    """Execute ``code`` as so many processes with so many CPU devices each, and wait for their end."""
    command = [sys.executable, "-P", "-m", "handlax.launch", "--processes", str(processes), "--devices", str(devices)]
    launcher = subprocess.Popen(
        [*command, "-c", prefix + code], env=inherited() | {"HANDLAX_PLATFORMS": "cpu"} | environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        _, errors = launcher.communicate(timeout=timeout)
    finally:
        launcher.terminate()  # where it goes on: it passes the signal to the processes, and kills them if need be
        launcher.communicate(timeout=60)
    lines = defaultdict(list)
    for line in errors.splitlines():
        mark, _, text = line.partition("] ")
        lines[int(mark[1:]) if mark[1:].isdecimal() else -1].append(text or line)  # -1: of the launcher
    return Launched(launcher.returncode, lines)


def in_processes(code, processes, devices=1, **options):
    """The lines that each process writes. All must succeed."""
    done = launch(code, processes, devices, **options)
    assert done.status == 0, done.lines
    return [done.lines[index] for index in range(processes)]


def start(code, processes, *arguments, heartbeat=5, shutdown=300):
    """The processes, each with one device and without a launcher, which would end all with the first that fails."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    told = dict(HANDLAX_LAUNCH_ADDRESS=address, HANDLAX_COORDINATOR_BIND_ADDRESS=address, HANDLAX_PLATFORMS="cpu",
                HANDLAX_LAUNCH_PROCESSES=str(processes))
    prefix = JOINED.replace("heartbeat_timeout_seconds=5", f"heartbeat_timeout_seconds={heartbeat}, "
                            f"shutdown_timeout_seconds={shutdown}")
    command = [sys.executable, "-P", "-c", prefix + code, *map(str, arguments)]
    return [
        subprocess.Popen(command, env=inherited() | told | {"HANDLAX_LAUNCH_PROCESS": str(index)}, text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for index in range(processes)
    ]


def await_all(started, but=None, timeout=60):
    """The status of each process, and the lines that it wrote; ``but`` is killed after all others have ended."""
    outputs = {}
    try:
        for index in sorted(range(len(started)), key=lambda index: index == but):
            if index == but:
                started[index].kill()
            outputs[index] = started[index].communicate(timeout=timeout)[1].splitlines()
    finally:
        for process in started:
            process.kill()
    return [process.returncode for process in started], [outputs[index] for index in range(len(started))]
