"""All recorded calls, by a label that is their own."""

from collections import Counter

from . import lax_cases, nn_cases, numpy_cases
from .call_case import Case


def labelled(cases: list[Case]) -> dict[str, Case]:
    """Cases by label; the second of two alike is ``label #2``."""
    seen: Counter[str] = Counter()
    named = {}
    for case in cases:
        seen[case.label] += 1
        named[case.label + (f" #{seen[case.label]}" if seen[case.label] > 1 else "")] = case
    return named


CASES = labelled([*lax_cases.CASES, *numpy_cases.CASES, *nn_cases.CASES])
