"""Progress bars that move while a compiled loop is executed.

    progress(total)(f)(x) == f(x)        f calls tick() in its loops

A tick is an effect. Its handler counts ticks in the program, and calls the host, in order, once every so many ticks.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ....effects.base.caches import per_process
from ....effects.base.errors import BadArgument
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.control.branches import cond
from ....effects.control.callbacks import Callback, hashable
from ....effects.core.arrays import perform, scalar
from ....effects.core.operation import effect
from ....effects.types.dtypes import int32
from ...handlers.handle import handle
from ...handlers.handler import handler


# reports that ``by`` steps are done
@effect(vmap="once")
class ProgressTick:
    by: int = 1

    def result_type(op, *operands):
        return None


# calls function(count, done) on the host, in order
@effect(vmap="once", diff="stop")
class ProgressReport(Callback):
    function: Callable[..., Any]
    done: bool = False
    ordered: bool = True


    def invoke(op, count):
        op.function(int(count), op.done)


def tick(by: int = 1) -> None:
    """Count ``by`` steps of the enclosing ``progress``. All lanes of a ``vmap`` inside it count once.

    Raises: UnhandledEffect: there is no ``progress`` around.
    """
    perform(ProgressTick(by))


def progress(
    total: int | None = None,
    *,
    every: int | None = None,
    label: str = "",
    show: Callable[[int, int | None], Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Show the progress of a function by the ticks that it performs; compiled loops are not interrupted.

        progress(total)(f)(x) == f(x)

    The bar is that of tqdm if it is installed, in a notebook its widget, else a line on the standard error.

    Args:
        total: the number of ticks, if it is known.
        every: the number of ticks between two updates; by default a hundredth of the total, 1 without a total.
        show: called instead of a bar, ``show(count, total)``: at 0, after each ``every`` ticks, and at the end.

    >>> from handlax import jit, lax
    >>> def total(n):
    ...     def step(i, c):
    ...         tick()
    ...         return c + i
    ...     return lax.fori_loop(0, 4, step, n)
    >>> jit(progress(4, every=2, show=lambda count, of: print(f"{count} of {of}"))(total))(10)
    0 of 4
    2 of 4
    4 of 4
    Array(16, dtype=int32, weak_type=True)
    """
    for name, value in (("total", total), ("every", every)):
        if value is not None and (not isinstance(value, int) or value < 1):
            hint = "progress(total)(f) wraps the function f." if callable(value) else None
            raise BadArgument(f"progress: {name} must be a positive integer, got {value!r}.", hint=hint)
    step = max(1, (total or 0) // 100) if every is None else every

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        function = hashable(_Bar(total, label) if show is None else _UserDisplay(show, total))

        def count(n: Any, op: ProgressTick) -> tuple[Any, None]:
            after = n + op.by
            cond(after // step > n // step, lambda: _report(function, after), lambda: None)
            return after, None

        @wraps(f)
        @unnamed_boundary
        def counted(*args: Any, **kwargs: Any) -> Any:
            start = scalar(0, int32)
            _report(function, start)
            n, y = handle(handler({ProgressTick: count}), start)(f)(*args, **kwargs)
            _report(function, n, True)
            return y

        return counted

    return around


def _report(function: Callable[..., Any], count: Any, done: bool = False) -> None:
    perform(ProgressReport(function, done), count)


class _UserDisplay:
    """Calls a user's ``show`` function; the call at the end is left out if the count has not changed."""

    def __init__(self, show: Callable[[int, int | None], Any], total: int | None):
        self.show = show
        self.total = total
        self.last = -1

    def __call__(self, count: int, done: bool) -> None:
        if not done or count != self.last:
            self.show(count, self.total)
        self.last = count


class _Bar:
    """One line on the standard error, by tqdm if it is installed; a count of 0 starts a new one. Thread-safe."""

    def __init__(self, total: int | None, label: str):
        self.total = total
        self.label = label
        self.bar: Any = None
        self.lock = threading.RLock()

    def __call__(self, count: int, done: bool) -> None:
        with self.lock:
            if self.bar is None or (count == 0 and not done):
                self.close()
                bar = importlib.import_module("tqdm.auto").tqdm if _has_tqdm() else _Line
                self.bar = bar(total=self.total, desc=self.label or None)
            self.bar.update(count - self.bar.n)
            if done:
                self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


@per_process
def _has_tqdm() -> bool:
    """Whether tqdm is installed."""
    return importlib.util.find_spec("tqdm") is not None


class _Line:
    """A substitute for tqdm's bar: writes the count, the time and the rate over what it wrote before.

    By a carriage return alone, which terminals and notebooks have in common.
    """

    def __init__(self, total: int | None, desc: str | None):
        self.n = 0
        self.total = total
        self.label = f"{desc}: " if desc else ""
        self.start = time.perf_counter()
        self.written = 0.0
        self.width = 0

    def update(self, by: int) -> None:
        self.n += by
        now = time.perf_counter()
        if now - self.written > 0.1:
            self.written = now
            self.write(now - self.start)

    def write(self, seconds: float) -> None:
        share = "" if self.total is None else f"/{self.total} ({100 * self.n // self.total} %)"
        rate = f", {self.n / seconds:.0f}/s" if seconds > 0 and self.n else ""
        text = f"{self.label}{self.n}{share}, {seconds:.1f} s{rate}"
        sys.stderr.write(f"\r{text:{self.width}}")  # a shorter text leaves nothing of a longer one
        self.width = len(text)
        sys.stderr.flush()

    def close(self) -> None:
        self.write(time.perf_counter() - self.start)
        sys.stderr.write("\n")
