"""profile: where the time of a block went: tracing, lowering, compiling and executing, for each function."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...effects.base.config import configure
from ...effects.base.later_layers import displayed
from ...effects.base.monitoring import COMPILE_SECONDS, DURATIONS, LOWER_SECONDS, TRACE_SECONDS
from ...effects.base.watching import COMPILED_ANEW, FunctionLabel, logger
from ..compile.compile import COMPILED
from ..xla.profiler import ProfileOptions, ProfileSession, executed, module_of
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

    Attributes: ``seconds``, the time of the block; ``data``, all that XLA's profiler recorded, None until the block has
    ended.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.data: Any = None
        self.times: dict[FunctionLabel, FunctionTimes] = {}

    def of(self, function: FunctionLabel) -> FunctionTimes:
        """The times of a function."""
        return self.times.setdefault(function, FunctionTimes())

    @property
    def functions(self) -> dict[str, FunctionTimes]:
        """The times of the functions by name, the slowest first.

        Of several functions of one name each is followed by its line, ``"jit(f) at model.py:12"``, and by a number
        where lines are equal, too.
        """
        functions, times = zip(*items) if (items := list(self.times.items())) else ((), ())
        named = zip(_told_apart(functions), times)
        return dict(sorted(named, key=lambda item: -sum(item[1].seconds.values())))

    def total(self, step: str) -> float:
        """The seconds of one step of all functions."""
        return sum([times.seconds.get(step, 0.0) for times in self.times.values()])

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
        if not self.times:
            return []
        columns = [*STEPS.values(), EXECUTING]
        cells = [(name, *[_cell(each, times) for each in columns]) for name, times in self.functions.items()]
        return [("function", *columns), *cells]

    def reasons(self) -> list[list[str]]:
        """For each function that was compiled anew: a line that says so, and the reasons."""
        functions = self.functions.items()
        return [[f"{name} was compiled anew:", *times.reasons] for name, times in functions if times.reasons]


def _told_apart(functions: Sequence[FunctionLabel]) -> list[str]:
    """A name for each function, which no other one has."""
    same = Counter([each.name for each in functions])
    names = [each.placed if same[each.name] > 1 else each.name for each in functions]
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name} ({number + 1})" if number else name for name, number in zip(names, before)]


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
    before the block ends. Functions with equal programs share an executable, and what it executes counts for the last
    one. In ``log_dir``, if it is given, are the files of XLA's profiler, which TensorBoard and Perfetto open.

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


class _Steps:
    """The listener that adds up the seconds of the steps, each without those of the steps within it."""

    def __init__(self, found: Profile):
        self.found = found
        self.local = threading.local()

    def __call__(
        self, event: str, duration: float, fun_name: str = "", fun_site: str = "", fun_code: int = 0, **_: Any
    ) -> None:
        if event not in STEPS:
            return
        start = time.perf_counter() - duration
        ended: list[tuple[float, float]] = vars(self.local).setdefault("ended", [])  # start and seconds, in order
        own = duration
        while ended and ended[-1][0] >= start:
            own -= ended.pop()[1]
        ended.append((start, duration))
        self.found.of(FunctionLabel(fun_name, fun_site, fun_code)).add(STEPS[event], max(own, 0.0))


class _Reasons(logging.Handler):
    """The handler of the log that keeps why functions were compiled anew."""

    def __init__(self, found: Profile):
        super().__init__()
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == COMPILED_ANEW and isinstance(record.args, tuple):
            line = str(record.args[1])
            if not line.lstrip().startswith("1:"):  # the first kind of calls differs from none
                self.found.of(vars(record)["function"]).reasons.append(line)


def _add_executions(found: Profile) -> None:
    """Add the instructions that devices executed to the functions of whose programs they are.

    Profiles name programs. Where functions share a name, a program's number tells which one it is of; if that is not
    known, as of an executable that was dropped, the name has a row of its own.
    """
    executions = [each for each in executed(found.data) if each.module and not HOLDS_OTHERS.match(each.instruction)]
    compiled, executing = list(COMPILED.entries.values()), {_in_words(each.module) for each in executions}
    named = defaultdict[str, set[FunctionLabel]](set)
    for function in (*found.times, *[loaded.function for loaded in compiled]):
        named[_in_words(function.name)].add(function)
    shared = {name for name in executing if len(named[name]) > 1}
    numbered = {
        module_of(loaded.executable.loaded): loaded.function
        for loaded in compiled if _in_words(loaded.function.name) in shared
    }
    for each in executions:
        same = named[_in_words(each.module)] or {FunctionLabel(f"jit({each.module.removeprefix('jit_')})")}
        first = min(same)
        unknown = first if len(same) == 1 else FunctionLabel(first.name)
        found.of(numbered.get((each.module, each.number), unknown)).add(EXECUTING, each.seconds)


def _in_words(name: str) -> str:
    """What the name of a function, ``jit(f)``, and that of its module have in common."""
    return re.sub(r"[\W_]", "", name.removeprefix("jit"), flags=re.ASCII)
