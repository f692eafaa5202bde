"""Which laws fail for a wrong subject, and what a subject sees of how it is executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from handlax.effects.base.stack import runs
from handlax.testing import Law, LawFails
from handlax.testing.drawn_programs import refusal_of
from handlax.testing.law import check_law


def under(kind: type) -> bool:
    """Whether a run of this kind is in force."""
    return any([isinstance(run, kind) for run in runs()])


def failing(laws: Iterable[Law], *examples: Any, lacks: Mapping[str, str]) -> list[str]:
    """The names of the laws that fail for one of these examples, each ``(..., program, seed)``.

    A law is not checked where a program has a statement that it is without.
    """
    found = []
    for law in laws:
        for example in examples if law.reason(lacks) is None else ():
            *_, program, seed = example
            if any([f"hx.{name}(" in program.source for name in law.without]):
                continue
            try:
                check_law("the wrong one", law, example, seed, refusal=refusal_of)
            except LawFails:
                found.append(law.name)
                break
    return found
