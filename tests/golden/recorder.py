"""Record the results of a table of calls in JAX, or compare them with the recorded ones.

A call that names a 64-bit dtype is made with 64 bits enabled, every other one without, so that what is created
from nothing has 32 bits.
"""

import json
import sys
from pathlib import Path

import jax

from .call_case import Case, decoded, disagreement, encoded
from .call_modes import MODES

HERE = Path(__file__).parent


def write(cases: dict[str, Case], path: Path) -> int:
    """Record every case, one line each; the number of calls that JAX refuses."""
    refused, lines = 0, [f'"library": "jax {jax.__version__}"']
    for label, case in cases.items():
        jax.config.update("jax_enable_x64", case.wide)
        try:
            answer = [encoded(leaf) for leaf in MODES["eager"](case, jax) or ()]
        except Exception as refusal:
            refused += 1
            print(f"{label}: {type(refusal).__name__}: {str(refusal)[:200]}")
            continue
        lines.append(f"{json.dumps(label)}: {json.dumps(answer, separators=(',', ':'))}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines) - 1} calls, {refused} refused, {path.stat().st_size} bytes, jax {jax.__version__}")
    return refused


def check(cases: dict[str, Case], path: Path) -> int:
    """Compare every case with the file in every mode; the number that differ."""
    recorded, wrong = json.loads(path.read_text()), 0
    for label, case in cases.items():
        jax.config.update("jax_enable_x64", case.wide)
        for mode in MODES:
            try:
                said = difference(MODES[mode](case, jax), recorded[label], case.loose)
            except Exception as refusal:
                said = f"{type(refusal).__name__}: {str(refusal)[:200]}"
            if said:
                wrong += 1
                print(f"{mode} {label}: {said}")
    print(f"{wrong} differ under jax {jax.__version__}")
    return wrong


def difference(answers: list | None, records: list, loose: float) -> str:
    """What differs between the answers of a call and its record; empty where the mode does not apply."""
    if answers is None:
        return ""
    pairs = [(encoded(answer), record) for answer, record in zip(answers, records, strict=True)]
    return " ".join(disagreement(decoded(found), decoded(record), loose) for found, record in pairs).strip()


def main(cases: dict[str, Case], name: str) -> None:
    """Write the file ``name``, or compare with it with ``--check``."""
    sys.exit(min(1, (check if "--check" in sys.argv else write)(cases, HERE / name)))
