"""python -m benchmarks [--platform gpu] [--only NAME ...] [--quick] [--write]: handlax and JAX in one process."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback

import jax

import handlax

from . import report, rows
from .timing import Plan


def take(platform: str) -> None:
    """Let both libraries compute on a platform, in this process and in those that rows start."""
    names = {"cpu": "cpu", "gpu": "cuda,cpu"}[platform]
    os.environ.update(JAX_PLATFORMS=names, HANDLAX_PLATFORMS=names)
    jax.config.update("jax_platforms", names)
    handlax.config.update("jax_platforms", names)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    only = "rows of the theme NAME, or with NAME in their own"
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=only)
    parser.add_argument("--quick", action="store_true", help="three rounds instead of nine; not for figures to publish")
    parser.add_argument("--platform", choices=("cpu", "gpu"), default="cpu", help="where, and thereby which rows")
    written = "write benchmarks/RESULTS.md and benchmarks/results.png; of a GPU the table in docs/devices.md"
    parser.add_argument("--write", action="store_true", help=written)
    parser.add_argument("--list", action="store_true", help="print the names of the rows and stop")
    options = parser.parse_args()
    take(options.platform)
    wanted = lambda row: not options.only or any(o in row.name or o == row.theme for o in options.only)
    chosen = list(filter(wanted, rows.OF_PLATFORM[options.platform]))
    if not chosen:
        parser.error(f"no row is called like {options.only}; --list shows them all")
    if options.list:
        print("\n".join(f"{r.theme}: {r.name}" for r in chosen))
        return 0
    if options.write and (options.quick or options.only):
        parser.error("--write needs every row and the full number of rounds: neither --quick nor --only")
    # objects created by imports belong to no row: exclude them from every later collection
    gc.collect()
    gc.freeze()
    plan = Plan(rounds=3 if options.quick else 9, quick=options.quick)
    started = time.perf_counter()
    results = []
    for row in chosen:
        try:
            result = report.Result(row, row.measure(plan), None)
        except Exception as error:
            traceback.print_exc()
            result = report.Result(row, None, f"{type(error).__name__}: {error}".splitlines()[0])
        print(report.line(result), flush=True)
        results.append(result)
    seconds = time.perf_counter() - started
    print(report.summary(results, seconds))
    if options.write:
        report.WRITERS[options.platform](results, seconds)
    return 1 if any(r.error for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
