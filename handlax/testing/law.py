"""Laws as values, the report of a check, and the error of a law that fails.

    law = Law("vmap", "vmap equals the loop over lanes", check)        check(*example) raises where it fails
    report = check_laws("sin", [law], lambda law, k: example)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..effects.base.errors import BadArgument
from .generator.reducing import OutOfTime

Example = tuple[Any, ...]
ATTEMPTS = 6  # examples that are tried for one that the subject does not refuse

# reduce(example, fails): a smaller example that still fails
Reducer = Callable[[Example, Callable[[Example], bool]], Example]
Show = Callable[["Law", Example], str]


def unreduced(example: Example, fails: Callable[[Example], bool]) -> Example:
    return example


def no_refusal(error: Exception) -> str | None:
    return None


class Inapplicable(Exception):
    """Raised by the check of a law that has nothing to compare in an example; its text says why.

    A comparison of nothing would hold, and say nothing. Checks of operations and handlers count such examples, and
    report a law that had no other.

    >>> import numpy as np
    >>> import handlax as hx
    >>> from handlax import lax
    >>> from handlax.testing import OPERATION_LAWS
    >>> derivative, = [law for law in OPERATION_LAWS if law.name == "finite_differences"]
    >>> sin, = hx.make_program(lax.sin)(1.0).ops
    >>> derivative.check(sin, [[np.array([np.inf])]])
    Traceback (most recent call last):
    handlax.testing.law.Inapplicable: no result has a difference quotient: it jumps, bends, is not finite, or is lost in
    rounding

    Remedy: give operands that the law is about.

    >>> derivative.check(sin, [[np.array([1.0])]])
    """


def sources(law: Law, example: Example) -> str:
    """The Python text of the programs of an example."""
    return "\n".join([part.source for part in example if hasattr(part, "source")])


class Law(NamedTuple):
    """A property, as a value: a name, one English sentence, and ``check(*example)``, which raises where it fails.

    ``needs``: what a subject must have for the law to apply to it, such as a ``jvp``. ``without``: the statements that
    the programs on which it is checked must not have. ``wants``: what its examples have beside others. ``rules``: the
    names of the rules of a subject that it is about.
    """

    name: str
    sentence: str
    check: Callable[..., None]
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

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
    """What a check found.

    ``held``: the laws that held. ``left_out``: the laws that do not apply, by name, and why. ``refused``: what the
    subject refuses, statements and expressions, or dtypes and ranks, and why; no example has them. ``unchecked``: the
    rules of the subject that no law is about, and where they are written. ``shapes``: those of the operands on which an
    operation was checked, by their dtypes.
    """

    subject: str
    held: tuple[Held, ...]
    left_out: Mapping[str, str]
    refused: Mapping[str, str] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        names = [*[each.law.name for each in self.held], *self.left_out, *self.refused, *self.unchecked, *self.shapes]
        width = max(map(len, names), default=0)
        lines = [f"{self.subject}: laws that hold: {len(self.held)}"]
        for law, examples, seconds in self.held:
            lines.append(f"  {law.name:{width}}  {examples:4} examples  {seconds:5.2f} s  {law.sentence}")
        for title, reasons in (("laws left out", self.left_out), ("refused, and in no example", self.refused),
                               ("rules that no law is about", self.unchecked),
                               ("dtypes of operands, and their shapes", self.shapes)):
            lines += [f"{title}: {len(reasons)}"] * bool(reasons)
            lines += [f"  {name:{width}}  {reason}" for name, reason in reasons.items()]
        return "\n".join(lines)


class LawFails(AssertionError):
    """A law that fails: ``law.check(*example)`` raises again, unless the message says that it held.

    An operation, handler or transformation does not mean what one of its rules says. The message has the law, the
    smallest example that was found, and what was computed and expected; ``law`` and ``example`` have both as values.

    >>> import numpy as np
    >>> import handlax as hx
    >>> from handlax.testing import OPERATION_LAWS, check_operation
    >>> laws = [law for law in OPERATION_LAWS if law.name == "finite_differences"]
    >>> @hx.operation
    ... class Twice:
    ...     def result_type(op, x):
    ...         return x
    ...     def evaluate(op, x):
    ...         return 2 * x
    ...     def jvp(op, primals, tangents):
    ...         return hx.perform(op, *primals), 3 * tangents[0]
    >>> report = check_operation(Twice(), operands=[[np.ones(1)]], laws=laws)
    Traceback (most recent call last):
    handlax.testing.law.LawFails: Twice(): it is not so that jvp gives the result, and the difference quotient of it.
      Twice(): derivative by operand 0: 1 of 1 elements differ
    ...

    Remedy: correct the rule.

    >>> @hx.operation
    ... class Twice:
    ...     def result_type(op, x):
    ...         return x
    ...     def evaluate(op, x):
    ...         return 2 * x
    ...     def jvp(op, primals, tangents):
    ...         return hx.perform(op, *primals), 2 * tangents[0]
    >>> report = check_operation(Twice(), operands=[[np.ones(1)]], laws=laws)
    """

    def __init__(
        self, subject: str, law: Law, example: Example, error: BaseException, seed: int, show: Show = sources,
        note: str = "",
    ):
        self.law, self.example = law, example
        shown = "".join([f"{line}\n" for line in show(law, example).splitlines() if line.strip()])
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        said = str(error).partition("\nassert ")[0]  # pytest adds what it compared
        text = "\n".join([f"  {line}" for line in f"{kind}{said}".strip().splitlines()])
        super().__init__(f"{subject}: it is not so that {law.sentence}.\n{text}\n{shown}{note}Found with seed={seed}.")


OVER = "The time was over while this was made smaller; seconds= gives more.\n"
ONCE = "It held when it was tried again: something else than the example decides.\n"


def check_laws(
    subject: str,
    laws: Iterable[Law],
    example: Callable[[Law, int], Example],
    *,
    lacks: Mapping[str, str] | None = None,
    examples: int = 20,
    least: int = 1,
    seconds: float = 10.0,
    seed: int = 0,
    reduce: Reducer = unreduced,
    show: Show = sources,
    refusal: Callable[[Exception], str | None] = no_refusal,
) -> Report:
    """Check laws in turn on examples, until there were so many of each, or the time is over and there were ``least``.

    A law that applies to no example, or for which the subject refuses every one, is left out, with the reason.

    Args:
        subject: the name of what the laws are about.
        example: the example of a number for a law; the numbers are ``seed``, ``seed + 1``, ...
        lacks: what the subject does not have, and why: a law that needs it is left out.
        seconds: how long it takes, of which a quarter is kept to make an example that fails smaller. The clock is read
            before each example and each smaller one; what has begun then is ended.
        reduce: a smaller example for which ``fails`` still holds, such as ``reduced`` gives.
        show: the text of an example of a law, for the message.
        refusal: why an exception that a check raises says that the subject refuses the example; None: the law fails.

    Raises: LawFails: a law fails, with the reduced example. BadArgument: there are no laws.
    """
    laws, lacks = tuple(laws), lacks or {}
    if not laws:
        raise BadArgument(f"{subject}: there must be a law to check, got none.", hint="laws=[law, ...].")
    reasons = {law.name: reason for law in laws if (reason := law.reason(lacks)) is not None}
    clocks = {law: Held(law, 0, 0.0) for law in laws if law.name not in reasons}
    end, kept = time.monotonic() + seconds, seconds / 4
    for number in range(seed, seed + max(1, examples)):
        for law, clock in list(clocks.items()):
            start, reason = time.monotonic(), None
            for tried in range(number, number + 1000 * ATTEMPTS, 1000):
                if number >= seed + least and time.monotonic() > end - kept:
                    break
                reason = check_law(
                    subject, law, example(law, tried), tried, reduce, show, refusal, end=end, kept=kept)
                if reason is None:
                    clocks[law] = Held(law, clock.examples + 1, clock.seconds + time.monotonic() - start)
                    break
            if reason is not None and not clock.examples:
                reasons[law.name] = reason.splitlines()[0]
                del clocks[law]
    return Report(subject, tuple(clocks.values()), reasons)


def check_law(
    subject: str, law: Law, example: Example, seed: int, reduce: Reducer = unreduced, show: Show = sources,
    refusal: Callable[[Exception], str | None] = no_refusal, *, end: float = 0.0, kept: float = float("inf"),
) -> str | None:
    """Check a law for one example: None if it holds, or why it does not apply to it, or the example is refused.

    Args:
        end: when an example that fails is made smaller no further, by the clock; there are ``kept`` seconds at least.

    Raises: LawFails: it fails; with a reduced example that fails alike, also when it is tried again.
    """
    error = failure(law, example)
    reason = str(error) if isinstance(error, Inapplicable) else None if error is None else refusal(error)
    if error is None or reason is not None:
        return reason
    until, note = max(end, time.monotonic() + kept), ""

    def fails(other: Example) -> bool:
        nonlocal note
        if time.monotonic() >= until:
            note = OVER
            raise OutOfTime
        return manner(failure(law, other)) == manner(error)

    small = reduce(example, fails)
    for each in (small, example):
        again = failure(law, each)
        if again is not None:
            raise LawFails(subject, law, each, again, seed, show, note) from error
    raise LawFails(subject, law, example, error, seed, show, ONCE) from error


def failure(law: Law, example: Example) -> Exception | None:
    """What the check of a law raises for an example; None if it holds."""
    try:
        law.check(*example)
    except Exception as error:
        return error
    return None


def manner(error: Exception | None) -> tuple[type, list[str]]:
    """How a check fails: two failures are the same if the class of the error and the words of its first line are.

    Words are of two letters at least, so that numbers, variables and shapes may differ; what a bare ``assert`` says is
    none.
    """
    line = str(error).partition("\n")[0]
    said = "" if line.startswith("assert ") else re.sub(r"0x\w+|\bnan\b|\binf\b", "", line)
    return type(error), re.findall(r"[A-Za-z_]{2,}", said)
