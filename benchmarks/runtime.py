"""python -m benchmarks.runtime SIDE ROUNDS: median seconds of each compiled program, in a process of its own."""

from __future__ import annotations

import json
import statistics
import sys
import time

from .rows_compiled import PROGRAMS, jitted, title
from .sides import OURS, THEIRS


def main() -> None:
    side, rounds = {"ours": OURS, "theirs": THEIRS}[sys.argv[1]], int(sys.argv[2])
    found = {}
    for program in PROGRAMS:
        run, args = jitted(side, *program)
        times = []
        for _ in range(rounds + 5):
            start = time.perf_counter()
            side.ready(run(*args))
            times.append(time.perf_counter() - start)
        found[title(*program)] = statistics.median(times[5:])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
