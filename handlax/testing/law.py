"""Laws as values, the report of a check, and the error of a law that fails.

    law = Law("vmap", "vmap equals the loop over lanes", check)        check(*example) raises where it fails
    report = check_laws("sin", [law], lambda law, k: example)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

Example = tuple[Any, ...]


# reduce(example, fails): a smaller example that still fails
Reducer = Callable[[Example, Callable[[Example], bool]], Example]


def unreduced(example: Example, fails: Callable[[Example], bool]) -> Example:
    return example


class Law(NamedTuple):
    """A property, as a value: a name, one English sentence, and ``check(*example)``, which raises where it fails.

    ``needs``: what a subject must have for the law to apply to it, such as a ``jvp``. ``without``: the statements that
    its programs must not have.
    """

    name: str
    sentence: str
    check: Callable[..., None]
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def reason(self, lacks: Mapping[str, str]) -> str | None:
        """Why it does not apply to a subject, of which ``lacks`` says what it does not have, and why; None: it does."""
        return next((lacks[name] for name in (self.name, *self.needs) if name in lacks), None)


class Held(NamedTuple):
    """A law that held, in how many examples, and the seconds that they took."""

    law: Law
    examples: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """What a check found: the laws that held, and what was left out, with the reasons."""

    subject: str
    held: tuple[Held, ...]
    left_out: Mapping[str, str]

    def with_left_out(self, more: Mapping[str, str]) -> Report:
        """The report that also says what was left out of the examples."""
        return replace(self, left_out={**more, **self.left_out})

    def __str__(self) -> str:
        width = max([len(name) for name in [*[each.law.name for each in self.held], *self.left_out]], default=0)
        lines = [f"{self.subject}: laws that hold: {len(self.held)}"]
        for law, examples, seconds in self.held:
            lines.append(f"  {law.name:{width}}  {examples:4} examples  {seconds:5.2f} s  {law.sentence}")
        lines += ["left out"] * bool(self.left_out)
        lines += [f"  {name:{width}}  {reason}" for name, reason in self.left_out.items()]
        return "\n".join(lines)


class LawFails(AssertionError):
    """A law that fails: ``law.check(*example)`` raises again."""

    def __init__(self, subject: str, law: Law, example: Example, found: BaseException, seed: int):
        self.law, self.example = law, example
        sources = [part.source for part in example if hasattr(part, "source")]
        shown = "".join([f"{line}\n" for source in sources for line in source.splitlines() if line.strip()])
        kind = "" if isinstance(found, AssertionError) else f"{type(found).__name__}: "
        text = "\n".join([f"  {line}" for line in f"{kind}{found}".strip().splitlines()])
        super().__init__(f"{subject}: it is not so that {law.sentence}.\n{text}\n{shown}Found with seed={seed}.")


def check_laws(
    subject: str,
    laws: Iterable[Law],
    example: Callable[[Law, int], Example],
    *,
    lacks: Mapping[str, str] | None = None,
    examples: int = 20,
    seconds: float = 10.0,
    seed: int = 0,
    reduce: Reducer = unreduced,
) -> Report:
    """Check laws in turn on examples, until there were so many of each, or the time is over; of each at least one.

    Args:
        subject: the name of what the laws are about.
        example: the example of a number for a law; the numbers are ``seed``, ``seed + 1``, ...
        lacks: what the subject does not have, and why: a law that needs it is left out.
        reduce: a smaller example for which ``fails`` still holds.

    Raises: LawFails: a law fails, with the reduced example.
    """
    lacks = lacks or {}
    reasons = {law.name: reason for law in laws if (reason := law.reason(lacks)) is not None}
    clocks = {law: Held(law, 0, 0.0) for law in laws if law.name not in reasons}
    end = time.monotonic() + seconds
    for k in range(examples):
        for law, clock in list(clocks.items()):
            start = time.monotonic()
            if k and start > end:
                break
            check_law(subject, law, example(law, seed + k), seed + k, reduce)
            clocks[law] = Held(law, clock.examples + 1, clock.seconds + time.monotonic() - start)
    return Report(subject, tuple(clocks.values()), reasons)


def check_law(subject: str, law: Law, example: Example, seed: int, reduce: Reducer = unreduced) -> None:
    """Check a law for one example. Raises: LawFails: it fails; with an example that fails alike, and is reduced."""
    found = failure(law, example)
    if found is not None:
        small = reduce(example, lambda other: type(failure(law, other)) is type(found))
        raise LawFails(subject, law, small, failure(law, small) or found, seed) from found


def failure(law: Law, example: Example) -> Exception | None:
    """What the check of a law raises for an example; None if it holds."""
    try:
        law.check(*example)
    except Exception as error:
        return error
    return None
