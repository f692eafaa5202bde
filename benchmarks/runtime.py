"""python -m benchmarks.runtime MODULE SIDE ROUNDS: median seconds of a module's cases, in a process of its own."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time

from .sides import OURS, THEIRS


def main() -> None:
    cases = importlib.import_module(f"{__package__}.{sys.argv[1]}").CASES
    side, rounds = {"ours": OURS, "theirs": THEIRS}[sys.argv[2]], int(sys.argv[3])
    medians = {}
    for case in cases:
        jitted, args = case.jitted(side)
        times = []
        for _ in range(rounds + 5):
            start = time.perf_counter()
            side.ready(jitted(*args))
            times.append(time.perf_counter() - start)
        medians[case.title] = statistics.median(times[5:])
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
