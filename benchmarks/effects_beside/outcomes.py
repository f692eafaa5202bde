"""``python benchmarks/effects_beside/outcomes.py SYSTEM``: what the programs of a system give, as JSON.

The file ``SYSTEM_programs.py`` has a function for each program, the system's VERSION, WITHOUT: what is said of the
programs that it has no construct for, and NOTES: how it comes to what it gives. Needs that system alone.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any

EXPECTED: dict[str, Any] = {
    "counter": [5, 32.0],
    "early_exit": -32.0,
    "enumeration": [0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 36.0],
    "draws": 3,
    "density": -3.757,
    "density_inside": -3.757,
    "logged_in_grad": [4.0, 12.0],
    "array_primitive": [1.637, 1.987],
    "two_handlers": [2.0, 3.0],
    "generator": [1, 2, 3],
    "scheduler": ["a0", "b0", "a1", "b1"],
}


def outcome(program: Any) -> Any:
    """What a program returns; of an error its class and first sentence."""
    try:
        return program()
    except Exception as error:
        said = f"{error}\n".splitlines()[0].partition(". ")[0].rstrip(".")
        return f"raises `{type(error).__name__}`: {said}"


def outcomes(system: str) -> dict[str, Any]:
    module = importlib.import_module(f"{system}_programs")
    without, said = module.WITHOUT, {"version": module.VERSION, "notes": module.NOTES, "expected": EXPECTED}
    found = {name: without[name] if name in without else outcome(getattr(module, name)) for name in EXPECTED}
    return {**said, "without": [*without], "programs": found}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(outcomes(sys.argv[1])))
