"""Programs executed as several processes that are joined with each other."""

import os
import subprocess
import sys
from collections import defaultdict
from typing import NamedTuple

JOINED = """
import handlax as hx
hx.distributed.initialize(initialization_timeout=60, heartbeat_timeout_seconds=5)
"""


class Launched(NamedTuple):
    """How a launched program ended: its status, and the lines that each process wrote, of both kinds."""

    status: int
    lines: dict[int, list[str]]


def launch(code, processes, devices=1, *, prefix=JOINED, timeout=90, **environment):
    """Execute ``code`` as so many processes with so many CPU devices each, and wait for their end."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HANDLAX_", "JAX_"))}
    command = [sys.executable, "-P", "-m", "handlax.launch", "--processes", str(processes), "--devices", str(devices)]
    done = subprocess.run(
        [*command, "-c", prefix + code], env=inherited | {"HANDLAX_PLATFORMS": "cpu"} | environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
        check=False,
    )
    lines = defaultdict(list)
    for line in done.stdout.splitlines():
        mark, _, text = line.partition("] ")
        if mark[:1] == "[" and mark[1:].isdecimal() and not text.startswith("[Gloo] Rank"):
            lines[int(mark[1:])].append(text)
    return Launched(done.returncode, lines)


def in_processes(code, processes, devices=1, **options):
    """The lines that each process writes. All must succeed."""
    done = launch(code, processes, devices, **options)
    assert done.status == 0, done.lines
    return [done.lines[index] for index in range(processes)]
