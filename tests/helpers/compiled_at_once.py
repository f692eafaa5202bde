"""What the examples of a test compute, compiled as one program: each would take longer to compile than to execute."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import handlax as hx

_LATER: list[tuple[Callable[[Any], None], Any, tuple[Any, ...]]] = []


def later(check: Callable[[Any], None], f: Any, *xs: Any) -> None:
    """``check(f(*xs))`` of the compiled function, at the end of the test, which is ``also_compiled``."""
    _LATER.append((check, f, xs))


def also_compiled(test: Callable[..., None]) -> Callable[..., None]:
    """The test, after whose examples all functions given to ``later`` are compiled, as one program, and checked."""

    @functools.wraps(test)
    def tested(*args: Any, **kwargs: Any) -> None:
        _LATER.clear()
        test(*args, **kwargs)
        checks, functions, operands = zip(*_LATER)
        results = hx.jit(lambda operands: [f(*xs) for f, xs in zip(functions, operands)])(operands)
        for check, f, xs, found in zip(checks, functions, operands, results):
            try:
                check(found)
            except AssertionError as error:
                name, line, shapes = f.__name__, f.__code__.co_firstlineno, [getattr(x, "shape", x) for x in xs]
                error.add_note(f"{name} in line {line} of {shapes}, compiled")
                raise

    return tested
