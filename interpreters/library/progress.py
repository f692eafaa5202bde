"""Progress: bars that move while a compiled loop runs.

    progress(total)(f)(x) == f(x)        f calls tick() in its loops

A tick is an effect. The handler counts ticks in the program, and calls the host once in so many, in order.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ...effects.arrays import perform, scalar
from ...effects.branches import cond
from ...effects.callbacks import Callback, evaluate_callback, held, lower_callback
from ...effects.dtypes import int32
from ...effects.errors import BadArgument
from ...effects.operations import effect
from ...effects.wrapping import wraps
from ..handle import handle
from ..handler import handler


# so many steps are done
@effect(vmap="once")
class ProgressTick:
    by: int = 1

    def result_type(op):
        return None


# function(count, done), in order
@effect(vmap="once", diff="stop")
class ProgressReport(Callback):
    function: Callable[..., Any]
    done: bool = False
    ordered: bool = True

    evaluate = evaluate_callback
    lower = lower_callback

    def run(op, count):
        op.function(int(count), op.done)


def tick(by: int = 1) -> None:
    """Say that ``by`` steps are done; ``progress`` around it shows them. Lanes of ``vmap`` go in step: they tick once.

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
    """Show how far a function is, by the ticks that it performs; compiled loops go on meanwhile.

        progress(total)(f)(x) == f(x)

    The bar is tqdm's where that is installed, else a line on the standard error.

    Args:
        total: how many ticks there will be, where that is known.
        every: how many ticks move the bar; by default a hundredth of the total, each one without a total.
        show: called in place of a bar, ``show(count, total)``: at 0, after every so many ticks, and at the end.

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
    step = max(1, (total or 0) // 100) if every is None else every
    for name, value in (("total", total), ("every", step)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise BadArgument(f"progress: {name} must be a positive integer, got {value!r}.")

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        function = held(_Bar(total, label) if show is None else _Shown(show, total))

        def count(n: Any, op: ProgressTick) -> tuple[Any, None]:
            after = n + op.by
            cond(after // step > n // step, lambda: _report(function, after), lambda: None)
            return after, None

        @wraps(f)
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


class _Shown:
    """A user's own way to show progress."""

    def __init__(self, show: Callable[[int, int | None], Any], total: int | None):
        self.show = show
        self.total = total
        self.last = -1

    def __call__(self, count: int, done: bool) -> None:
        if not done or count != self.last:
            self.show(count, self.total)
        self.last = count


class _Bar:
    """One line on the standard error, tqdm's where that is installed; begun anew by a count of 0."""

    def __init__(self, total: int | None, label: str):
        self.total = total
        self.label = label
        self.bar: Any = None
        self.lock = threading.Lock()

    def __call__(self, count: int, done: bool) -> None:
        with self.lock:
            if self.bar is None or (count == 0 and not done):
                self.close()
                self.bar = _tqdm(self.total, self.label) if _has_tqdm() else _Line(self.total, self.label)
            self.bar.update(count - self.bar.n)
            if done:
                self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


@functools.cache
def _has_tqdm() -> bool:
    return importlib.util.find_spec("tqdm") is not None


def _tqdm(total: int | None, label: str) -> Any:
    return importlib.import_module("tqdm.auto").tqdm(total=total, desc=label or None)


class _Line:
    """What stands in for tqdm: the count, the time and the rate."""

    def __init__(self, total: int | None, label: str):
        self.n = 0
        self.total = total
        self.label = f"{label}: " if label else ""
        self.start = time.perf_counter()
        self.written = 0.0

    def update(self, by: int) -> None:
        self.n += by
        now = time.perf_counter()
        if now - self.written > 0.1:
            self.written = now
            self.write(now - self.start)

    def write(self, seconds: float) -> None:
        whole = "" if self.total is None else f"/{self.total} ({100 * self.n // self.total} %)"
        rate = f", {self.n / seconds:.0f}/s" if seconds > 0 and self.n else ""
        sys.stderr.write(f"\r{self.label}{self.n}{whole}, {seconds:.1f} s{rate}")
        sys.stderr.flush()

    def close(self) -> None:
        self.write(time.perf_counter() - self.start)
        sys.stderr.write("\n")
