"""``python tools/fault_table.py``: how long the other process of a job needs to end when something happens to one.

It prints the table of docs/how-to/faults.md; a quarter of an hour. A case that breaks the law ends it.
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from architecture import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from helpers.faulty_jobs import CASES, PHASES, Case, seconds_until_the_others_end


def table(found: Mapping[Case, float | None]) -> str:
    """A row for each fault and moment, with the most seconds that it took, whichever process it befell."""
    lines = [f"| | {' | '.join(PHASES)} |", "| --- |" + " --- |" * len(PHASES)]
    for fault, moment in dict.fromkeys([(case.fault, case.moment) for case in found if case.fault != "disk"]):
        cells = []
        for phase in PHASES:
            seconds = [x for case, x in found.items() if case[:3] == (fault, moment, phase) and x is not None]
            cells.append(f"{max(seconds):.1f} s" if seconds else "")
        lines.append(f"| {fault} {moment} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found[case] = seconds_until_the_others_end(case, Path(folder))
        print(case, found[case], file=sys.stderr, flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
