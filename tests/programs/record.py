"""Run every program with another library of the same interface and keep, or compare, the results.

python -m tests.programs.record          writes results.npz
python -m tests.programs.record --check  compares with it, and with operations run one by one
"""

import argparse
import importlib
import sys
import time

import numpy as np

from .loading import PROGRAMS, RECORDING, disagreement, results


def recorded(library: str) -> dict[str, np.ndarray]:
    """The results of all programs under ``library``, by ``program/result``."""
    found = {}
    for name in PROGRAMS:
        start = time.perf_counter()
        values, _ = results(name, library)
        print(f"{name:24s} {time.perf_counter() - start:6.2f} s")
        found |= {f"{name}/{key}": value for key, value in values.items()}
    return found


def compare(library: str, wanted: dict[str, np.ndarray], label: str) -> int:
    """How many results differ from ``wanted``; each is printed."""
    wrong = 0
    for name in PROGRAMS:
        values, rtol = results(name, library)
        for key, value in values.items():
            said = disagreement(value, wanted[f"{name}/{key}"], rtol)
            if said:
                wrong += 1
                print(f"{label}: {name}/{key}: {said}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="jax")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    module = importlib.import_module(options.library)
    if options.check:
        with np.load(RECORDING) as stored:
            wanted = dict(stored)
        wrong = compare(options.library, wanted, f"{options.library} {module.__version__}")
        with module.disable_jit():
            wrong += compare(options.library, wanted, "without jit")
        sys.exit(f"{wrong} results differ" if wrong else 0)
    found = recorded(options.library)
    found["version"] = np.asarray(f"{options.library} {module.__version__}")
    np.savez_compressed(RECORDING, **found)
    print(f"{len(PROGRAMS)} programs, {len(found) - 1} results, {RECORDING.stat().st_size} bytes, {found['version']}")


if __name__ == "__main__":
    main()
