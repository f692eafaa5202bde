"""Writes the page of mutants from their outcomes and the reasons of those that survive; with --check, compares.

The outcomes are those of ``make mutants``; a reason stands under the key of its mutant.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from architecture import ROOT, write_or_check

from handlax.testing.mutants.outcomes import KILLED, SURVIVED, TIMED_OUT, UNREACHED, Outcome, Outcomes

RESULTS = ROOT / "tests" / "mutants" / "results.jsonl"
REASONS = ROOT / "tests" / "mutants" / "reasons.toml"
BRANCHES = ROOT / "tests" / "mutants" / "branches.md"
PAGE = ROOT / "docs" / "explanation" / "mutants.md"
VERDICTS = (KILLED, TIMED_OUT, SURVIVED, UNREACHED)

INTRODUCTION = """# Mutants

What do the tests of this package not see?
`make mutants` puts one mistake into the code, a sign, an axis, a part of a key, and runs the tests that execute it.
A mutant that a test kills, or that never ends, is a mistake that `make test` would have found.
One that survives is either a gap in the tests, or no mistake, and then its reason stands below.
[The outcomes](../../tests/mutants/results.jsonl) are kept by the command, which goes on where it was ended.
Mutants of `handlax/interop` are killed by the tests beside JAX, `tests/beside_jax`, of `make peer`.
With `--tests` it knows some test files alone: `n of m tests` are those that were run, of those known to reach the line.
[The reasons](../../tests/mutants/reasons.toml) are written by hand.
[Break your own code](../how-to/mutants.md) says how to do the same with your operations and handlers.
"""


def score(outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> str:
    """How many of the mutants that are mistakes some test has seen, in percent."""
    mistakes = [outcome for outcome in outcomes if not (outcome.is_open and outcome.key in reasons)]
    return f"{100 * sum([not outcome.is_open for outcome in mistakes]) / len(mistakes):.0f} %" if mistakes else ""


def table(title: str, outcomes: Sequence[Outcome], part: Callable[[Outcome], str], reasons: Mapping[str, str]) -> str:
    """A row for each part of the outcomes, and one for all."""
    parts = {name: [each for each in outcomes if part(each) == name] for name in sorted({*map(part, outcomes)})}
    rows = [f"| {title} | mutants | {' | '.join(VERDICTS)} | seen |", "| --- |" + " ---: |" * (len(VERDICTS) + 2)]
    for name, each in {**parts, "all": outcomes}.items():
        counts = [len([one for one in each if one.verdict == verdict]) for verdict in VERDICTS]
        rows.append(f"| {name} | {len(each)} | {' | '.join(map(str, counts))} | {score(each, reasons)} |")
    return "\n".join(rows)


def entry(outcome: Outcome, reasons: Mapping[str, str]) -> str:
    """A mutant that no test has seen, with the reason why that is right, or the number of tests that let it pass."""
    reason = reasons.get(outcome.key, f"{outcome.verdict}, {outcome.run} of {outcome.reaching} tests")
    change = f"``{outcome.before}`` as ``{outcome.after}``"
    return f"- [{outcome.path}](../../{outcome.path}), {outcome.kind}: {change}: {reason}"


def page(outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> str:
    """The text of the page."""
    ended = sorted(outcomes, key=lambda outcome: (outcome.path, outcome.line, outcome.key))
    known = [entry(each, reasons) for each in ended if each.is_open and each.key in reasons]
    gaps = [entry(each, reasons) for each in ended if each.is_open and each.key not in reasons]
    return "\n".join([
        INTRODUCTION,
        table("layer", ended, lambda outcome: outcome.path.partition("/")[0], reasons), "",
        table("kind", ended, lambda outcome: outcome.kind, reasons), "",
        "## No mistakes", "", *(known or ["None so far."]), "", "## Gaps", "", *(gaps or ["None so far."]), "",
        BRANCHES.read_text()])


def main(words: Sequence[str]) -> int:
    made = {PAGE: page([*Outcomes(RESULTS).by_key.values()], tomllib.loads(REASONS.read_text()))}
    return write_or_check(made, Path(__file__).name, "mutants", "outcomes", words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
