"""The process at which the processes of a program meet; a program of its own, which imports nothing of the package.

    python coordinator.py ADDRESS PROCESSES OPTIONS

The options are the further ones of jaxlib's service, as JSON. It prints ``ready``, or why it cannot start, and serves
until its standard input ends and nobody is connected any more: where the input was ``done`` for some seconds at most,
else for some heartbeat timeouts, in which the processes that are left learn who has died. When it ends, XLA's runtime
ends all that are connected still.
"""

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

ESTABLISHED = "01"  # a connection's state in Linux's tables


def is_connected(port: int) -> bool:
    """Whether some process is connected to the port; True where the system has no table of connections."""
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return not tables or any([row[3] == ESTABLISHED and row[1].endswith(f":{port:04X}") for row in rows])


def main(address: str, processes: int, options: dict[str, Any]) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # who has died is told by those who miss it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the process that has started this one
    # recoverable: the death of one process does not end the others
    runtime = importlib.import_module("jaxlib._jax")
    service = runtime.get_distributed_runtime_service(address, processes, recoverable=True, **options)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    port, end = int(address.rpartition(":")[2]), sys.stdin.read()
    deadline = time.monotonic() + (5 if end.strip() == "done" else 3 * options["heartbeat_timeout"])
    while time.monotonic() < deadline and is_connected(port):
        time.sleep(0.05)
    service.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
