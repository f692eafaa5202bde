"""Handle: install user handlers.

    handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.errors import BadArgument, CannotCross
from ..effects.sources import user_site
from ..effects.stack import STACK, installed, runs
from ..effects.wrapping import wraps
from .handler import Handler
from .handling import NO_STATE, Handling, finished
from .record import Record
from .reified import run_reified


class Installation:
    """A handler with its state, ready to go around a function: ``handle(h)(f)``; or around a ``with`` block."""

    __slots__ = ("handler", "state", "_opened")

    def __init__(self, handler: Handler, state: Any):
        self.handler = handler
        self.state = state
        self._opened: list[tuple[installed, Handling]] = []

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(f):
            raise BadArgument(f"handle: a function is needed, got {type(f).__name__}.", hint="hx.handle(h)(f)(x).")

        @wraps(f)
        def handled(*args: Any, **kwargs: Any) -> Any:
            site = user_site(2)
            if self.handler.resumes or self.handler.escapes:
                return run_reified(self.handler, self.state, f, args, kwargs, site)
            run = Handling(STACK.get(), self.handler, self.state, site)
            with installed(run):
                y = f(*args, **kwargs)
            return finished(self.handler, run.current, y)

        return handled

    def __enter__(self) -> Handling:
        top = STACK.get()
        if self.handler.resumes or self.handler.escapes or self.handler.returns is not None:
            raise CannotCross(
                "handle: a with block cannot be resumed, ended early or given another result.",
                hint="put the block into a function: hx.handle(h)(f).",
            )
        if any(isinstance(run, Record) for run in runs(top)):
            raise CannotCross(
                "handle: a with block inside a trace would be gone when the traced program runs.",
                hint="put the block into a function: hx.handle(h)(f).",
            )
        run = Handling(top, self.handler, self.state, user_site(2))
        block = installed(run)
        block.__enter__()
        self._opened.append((block, run))
        return run

    def __exit__(self, *error: object) -> None:
        block, run = self._opened.pop()
        block.__exit__(*error)
        self.state = run.current


def handle(handler: Handler, state: Any = NO_STATE) -> Installation:
    """Install a handler around a function.

        handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)

    The order of handlers is their meaning: ``handle(h)(grad(f))`` sees what ``grad`` performs outside,
    ``grad(handle(h)(f))`` differentiates what the clauses perform. A handler with a ``ctl`` or ``final`` clause records
    the function first: Python's ``if`` cannot ask for values then. Eagerly it also works around a block:
    ``with handle(h, s) as run: ...; run.current`` is the state.
    """
    if not isinstance(handler, Handler):
        raise BadArgument(
            f"handle: a handler is needed, got {type(handler).__name__}.", hint="make one with hx.handler({...})."
        )
    return Installation(handler, state)


class Handlers(tuple[str, ...]):
    """The handlers in force, innermost first; prints as one line for each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join([f"{i}  {label}" for i, label in enumerate(self)]) or "no handlers: operations are evaluated"


def handlers() -> Handlers:
    """The handlers in force here, innermost first, as they are called in messages."""
    return Handlers([run.label for run in runs() if run.label])
