"""How often functions are traced and compiled, and why they are again.

    counted(f).traces == 1         the first call of a jitted function
    counted(f).traces == 0         every later one
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...effects.base.config import configure, current
from ...effects.base.errors import need_function
from ...effects.base.monitoring import COMPILE_SECONDS, DURATIONS, TRACE_SECONDS
from ...effects.base.watching import COMPILED_ANEW, logger


class WorkCount(NamedTuple):
    """The functions that were traced and compiled, by name, in order, and what made calls compile anew."""

    traced: list[str]
    compiled: list[str]
    reasons: list[str]

    @property
    def traces(self) -> int:
        """The number of traces."""
        return len(self.traced)

    @property
    def compiles(self) -> int:
        """The number of programs that were compiled; equal programs are compiled once."""
        return len(self.compiled)

    def heard(self, event: str, seconds: float, **metadata: Any) -> None:
        """Note a trace or a compilation: a listener for ``monitoring``."""
        names = {TRACE_SECONDS: self.traced, COMPILE_SECONDS: self.compiled}.get(event)
        if names is not None:
            names.append(str(metadata.get("fun_name")))

    def explain(self) -> str:
        """What was traced and compiled, a line for each function, and the reasons of calls that were compiled anew."""
        lines = [f"  {word}: {', '.join(_times(names))}"
                 for word, names in (("traced", self.traced), ("compiled", self.compiled)) if names]
        return "\n".join([*lines, *[f"  {reason}" for reason in self.reasons]])


def _times(names: list[str]) -> list[str]:
    """The names, each with how often it occurs."""
    return [name if times == 1 else f"{name} {times} times" for name, times in Counter(names).items()]


@contextmanager
def counting() -> Iterator[WorkCount]:
    """A ``WorkCount`` of the block, of all threads; its reasons are those of calls in this one."""
    count = WorkCount([], [], [])
    wanted = current().explain_cache_misses

    def keep(record: logging.LogRecord) -> bool:
        if record.msg != COMPILED_ANEW or not isinstance(record.args, tuple):
            return True
        count.reasons.append(f"{vars(record)['function'].placed}, kind {str(record.args[1]).strip()}")
        return wanted

    DURATIONS.add("counting", count.heard)
    logger().addFilter(keep)
    try:
        with configure(explain_cache_misses=True):
            yield count
    finally:
        logger().removeFilter(keep)
        DURATIONS.remove("counting", count.heard)


def counted(f: Callable[[], Any]) -> WorkCount:
    """The functions that are traced and compiled while ``f`` is called, without arguments.

    Raises: NotAFunction: ``f`` cannot be called.

    >>> from handlax import jit
    >>> f = jit(lambda x: x - 3)
    >>> counted(lambda: f(1.0)).traced
    ['jit(<lambda>)']
    >>> counted(lambda: f(2.0)).traces
    0
    """
    need_function("counted", f)
    with counting() as count:
        f()
    return count


def over_limits(count: WorkCount, max_traces: int | None, max_compiles: int | None) -> str:
    """The message if more was traced or compiled than is allowed: how much, what, and why again; else empty."""
    found = [
        f"at most {most} {word} must be made, got {made}"
        for word, made, most in (("traces", count.traces, max_traces), ("compilations", count.compiles, max_compiles))
        if most is not None and made > most
    ]
    if not found:
        return ""
    first = Counter([reason.partition(": ")[0] for reason in count.reasons])
    anew = [kind.partition(",")[0] for kind, times in first.items() if times > 1]
    hint = f"\n  hint: define {', '.join(anew)} once: a function that is made anew is compiled anew." if anew else ""
    return f"{'; '.join(found)}.\n{count.explain()}{hint}"
