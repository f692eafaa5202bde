"""Programs with effects in handlax, effectful, numpyro and oryx, as a table of what each of them gives.

    python -m benchmarks.effects_beside                              print the table
    python -m benchmarks.effects_beside --write                      and write it into docs/effects-beside.md
    python -m benchmarks.effects_beside --python oryx=/path/python   a system in an environment of its own
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from .outcomes import EXPECTED

SYSTEMS = ("handlax", "effectful", "numpyro", "oryx")
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "effects-beside.md"
TABLE = re.compile(r"(?<=<!-- the table -->\n).*?(?=<!-- the end of the table -->)", re.DOTALL)


def outcomes(system: str, python: str) -> dict[str, Any]:
    """What the programs of a system give, in a process of its own."""
    script = str(Path(__file__).with_name("outcomes.py"))
    done = subprocess.run([python, script, system], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["failed"])[-1]
        programs = dict.fromkeys(EXPECTED, f"not imported: {said}")
        return {"version": "", "without": [*EXPECTED], "notes": {}, "programs": programs}
    return json.loads(done.stdout.splitlines()[-1])


def cell(found: dict[str, Any], program: str) -> str:
    """Whether a program gives what it should; else what it gives, or raises, or that there is no construct for it."""
    value = found["programs"][program]
    if program in found["without"]:
        return f"– {value}"
    note = "".join([f", {note}" for note in (found["notes"].get(program),) if note])
    if value == EXPECTED[program]:
        return f"**yes**{note}"
    shown = str(value) if isinstance(value, str) else f"gives `{value}`"
    return shown.replace("|", "\\|").replace("<", "&lt;") + note


def table(found: dict[str, dict[str, Any]]) -> str:
    heads = [f"{system} {found[system]['version']}" for system in found]
    rows = [[f"`{program}`", f"`{value}`", *[cell(found[system], program) for system in found]]
            for program, value in EXPECTED.items()]
    lines = [["program", "should give", *heads], ["---"] * (len(found) + 2), *rows]
    return "\n".join([f"| {' | '.join(line)} |" for line in lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.effects_beside", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/effects-beside.md")
    parser.add_argument("--python", action="append", default=[], metavar="SYSTEM=PATH", help="the Python of a system")
    options = parser.parse_args()
    pythons = dict([word.split("=", 1) for word in options.python])
    made = table({system: outcomes(system, pythons.get(system, sys.executable)) for system in SYSTEMS})
    print(made, end="")
    if options.write:
        PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text()))


if __name__ == "__main__":
    main()
