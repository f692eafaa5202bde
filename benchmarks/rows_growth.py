"""What ``n`` like parts of a program cost: processor time per part at 1,000 against 100, for handlax alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import handlax as hx

from .programs_growth import FAMILIES
from .timing import Pair, Plan, Row

FEW, MANY = 100, 1000


def _lower(f: Callable[[Any], Any], x: Any) -> Any:
    return hx.jit(f).lower(x).as_text()


STAGES: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "trace": lambda f, x: hx.make_program(f)(x),
    "trace of grad of jit": lambda f, x: hx.make_program(hx.grad(hx.jit(f)))(x),
    "trace + lower": _lower,
}
PRINTED = ("nested jits", "nested checkpoints")


def _printed_gradient(f: Callable[[Any], Any], x: Any) -> str:
    return str(hx.make_program(hx.grad(f))(x))


def growth_row(family: str, stage: str, measured: Callable[[Callable[[Any], Any], Any], Any]) -> Row:
    make = FAMILIES[family]

    def seconds(n: int) -> float:
        hx.clear_caches()
        f, x = make(n)
        start = time.process_time()
        measured(f, x)
        return (time.process_time() - start) / n

    def measure(plan: Plan) -> Pair:
        rounds = min(plan.rounds, 3)  # long ones
        seconds(FEW)
        samples = [(seconds(MANY), min(seconds(FEW) for _ in range(3))) for _ in range(rounds)]
        many, few = [statistics.median(column) * 1e6 for column in zip(*samples)]
        return Pair(many, few, (f"at {FEW}: {few:.3g} us each",))

    return Row(f"{stage}, each of 1,000 {family} against 100", 1.5, measure, 1.0, beside=False)


def compiled_row(family: str, few: int, many: int) -> Row:
    """The time of XLA's compilation too, which inlines calls; a carried effect is a loop, merged ones are one loop."""
    make = FAMILIES[family]

    def seconds(n: int) -> float:
        f, x = make(n)
        lowered = hx.jit(f).lower(x)
        start = time.process_time()
        lowered.compile()
        return (time.process_time() - start) / n

    def measure(plan: Plan) -> Pair:
        samples = [(seconds(many), seconds(few)) for _ in range(min(plan.rounds, 3)) if hx.clear_caches() is None]
        each, before = [statistics.median(column) * 1e6 for column in zip(*samples)]
        return Pair(each, before, (f"at {few}: {before:,.0f} us each",))

    return Row(f"compile, each of {many:,} {family} against {few}", 1.5, measure, 1.0, beside=False)


ROWS = [
    *[growth_row(family, stage, measured) for family in FAMILIES for stage, measured in STAGES.items()],
    *[growth_row(family, "trace and print of grad", _printed_gradient) for family in PRINTED],
    compiled_row("carried effects under vmap", 10, 40),
    compiled_row("traced choices that use the answer", 5, 20),
    compiled_row("merged effects under vmap", 100, 1000),
]
