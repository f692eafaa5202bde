"""profile: where the time of a block went: tracing, lowering, compiling and executing, for each function."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...effects.base.config import configure
from ...effects.base.later_layers import displayed
from ...effects.base.monitoring import COMPILE_SECONDS, DURATIONS, LOWER_SECONDS, TRACE_SECONDS
from ...effects.base.watching import COMPILED_ANEW, logger
from ..jit.dispatch import module_name
from ..xla.profiler import ProfileOptions, ProfileSession, executed
from .hlo_program import HOLDS_OTHERS

STEPS = {TRACE_SECONDS: "tracing", LOWER_SECONDS: "lowering", COMPILE_SECONDS: "compiling"}
EXECUTING = "executing"


class FunctionTimes:
    """The times of one function: for each step its seconds, and how often it was done; why it was compiled anew.

    ``executing`` is the time of the instructions of its program on all devices, each counted once.
    """

    def __init__(self) -> None:
        self.seconds = defaultdict[str, float](float)
        self.times = defaultdict[str, int](int)
        self.reasons: list[str] = []

    def add(self, step: str, seconds: float) -> None:
        self.seconds[step] += seconds
        self.times[step] += 1


@displayed
class Profile:
    """Where the time of a block went; its text is a table.

    Attributes: ``seconds``, the time of the block; ``functions``, the ``FunctionTimes`` by name, the slowest first;
    ``data``, all that XLA's profiler recorded, None until the block has ended.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.functions: dict[str, FunctionTimes] = {}
        self.data: Any = None
        self._names: dict[str, str] = {}  # by the names of modules, in which angle brackets are replaced

    def of(self, name: str) -> FunctionTimes:
        """The times of the function of this name, ``jit(f)``."""
        module = module_name(name.removeprefix("jit("))
        return self.functions.setdefault(self._names.setdefault(module, name), FunctionTimes())

    def total(self, step: str) -> float:
        """The seconds of one step of all functions."""
        return sum([times.seconds.get(step, 0.0) for times in self.functions.values()])

    def __str__(self) -> str:
        rows = self.rows()
        width = max([len(name) for name, *_ in rows], default=0)
        table = ["  ".join([f"{name:{width}}", *[f"{cell:>15}" for cell in cells]]).rstrip() for name, *cells in rows]
        return "\n\n".join(["\n".join(lines) for lines in (self.totals(), table, *self.reasons()) if lines])

    __repr__ = __str__

    def totals(self) -> tuple[str, str]:
        """The time of the block and of its steps, and of devices, in words."""
        steps = [f"{step} {_shown(self.total(step))}" for step in STEPS.values()]
        prepared = sum(self.total(step) for step in STEPS.values())
        of_block = f"{_shown(self.seconds)}: {', '.join(steps)}, and {_shown(self.seconds - prepared)} else"
        return of_block, f"on devices: {_shown(self.total(EXECUTING))}"

    def rows(self) -> list[tuple[str, ...]]:
        """The table as text: headings, and for each function the times of its steps; empty without functions."""
        if not self.functions:
            return []
        columns = [*STEPS.values(), EXECUTING]
        cells = [(name, *[_cell(each, times) for each in columns]) for name, times in self.functions.items()]
        return [("function", *columns), *cells]

    def reasons(self) -> list[list[str]]:
        """For each function that was compiled anew: a line that says so, and the reasons."""
        functions = self.functions.items()
        return [[f"{name} was compiled anew:", *times.reasons] for name, times in functions if times.reasons]


def _cell(step: str, times: FunctionTimes) -> str:
    """The seconds of a step, and how often it was done; instructions are not counted."""
    if step not in times.times:
        return ""
    return _shown(times.seconds[step]) + (f" ({times.times[step]})" if step != EXECUTING else "")


def _shown(seconds: float) -> str:
    """Seconds with a unit in which three digits say it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "0 s"


@contextmanager
def profile(log_dir: os.PathLike[str] | str | None = None) -> Iterator[Profile]:
    """Find out where the time of a ``with`` block goes: its value prints as a table, with a row for each function.

    A step within another one, as a function that is traced while its caller is, counts for itself alone. Tracing,
    lowering and compiling are those of all threads; why a function was compiled anew is told of this thread or task.
    ``executing`` adds up the instructions on all devices, and does not wait for results: call ``block_until_ready``
    before the block ends. In ``log_dir``, if it is given, are the files of XLA's profiler, which TensorBoard and
    Perfetto open.

    Raises: ProfilerMisuse: a profile is being recorded, as in a block of ``profile`` and under ``handlax.explain``.

    >>> from handlax import jit
    >>> f = jit(lambda x: x + 1)
    >>> with profile() as times:
    ...     y = f(1.0).block_until_ready()
    >>> times.functions["jit(<lambda>)"].times["tracing"]
    1
    """
    found, options = Profile(), ProfileOptions()
    options.python_tracer_level = 0
    listener, reasons = _Steps(found), _Reasons(found)
    start = time.perf_counter()
    session = ProfileSession(log_dir, profiler_options=options)
    try:
        with session, configure(explain_cache_misses=True):
            DURATIONS.add("profile", listener)
            logger().addHandler(reasons)
            try:
                yield found
            finally:
                logger().removeHandler(reasons)
                DURATIONS.remove("profile", listener)
                found.seconds = time.perf_counter() - start
    finally:  # also where the block ends by an exception
        if session.profile_data is not None:  # it was recorded
            found.data = session.profile_data
            _add_executions(found)
            found.functions = dict(sorted(found.functions.items(), key=lambda item: -sum(item[1].seconds.values())))


class _Steps:
    """The listener that adds up the seconds of the steps, each without those of the steps within it."""

    def __init__(self, found: Profile):
        self.found = found
        self.local = threading.local()

    def __call__(self, event: str, duration: float, fun_name: str = "", **_: Any) -> None:
        if event not in STEPS:
            return
        start = time.perf_counter() - duration
        ended: list[tuple[float, float]] = vars(self.local).setdefault("ended", [])  # start and seconds, in order
        own = duration
        while ended and ended[-1][0] >= start:
            own -= ended.pop()[1]
        ended.append((start, duration))
        self.found.of(fun_name).add(STEPS[event], max(own, 0.0))


class _Reasons(logging.Handler):
    """The handler of the log that keeps why functions were compiled anew."""

    def __init__(self, found: Profile):
        super().__init__()
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == COMPILED_ANEW and isinstance(record.args, tuple):
            name, line = map(str, record.args)
            if not line.lstrip().startswith("1:"):  # the first kind of calls differs from none
                self.found.of(f"jit({name})").reasons.append(line)


def _add_executions(found: Profile) -> None:
    """Add the instructions that devices executed to the functions of whose modules they are."""
    for module, name, seconds in executed(found.data):
        if module and not HOLDS_OTHERS.match(name):
            found.of(f"jit({module.removeprefix('jit_')})").add(EXECUTING, seconds)
