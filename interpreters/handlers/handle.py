"""Installing a user's handler around a function or a ``with`` block.

    handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadArgument, BadCall, CannotCross
from ...effects.base.immutables import ImmutableObject
from ...effects.base.source_locations import user_site
from ...effects.base.stack import BASE, STACK, Run, grounded, installed, push, runs
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import name_of, unwound, wraps
from ...effects.core.arrays import as_array
from ...effects.trees import pytrees
from ..core.record import Record
from ..references.reference import References
from .handler import Handler
from .installation import NO_STATE, HandlerRun, final_answer
from .resumable import run_reified

P = ParamSpec("P")


class _Landing(Run):
    """Stands between nested handlers, each of which calls the next one out: the outer ones may have a new stack."""

    __slots__ = ()
    owns_boxes = False

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        return on_deep_stack(self.outer.answer, op, operands)


def landing(top: Run) -> Run:
    """``top``, with a landing after every 50 runs."""
    return _Landing(top, "") if sum(1 for _ in runs(top)) % 50 == 49 else top


def _unchangeable(state: Any) -> Any:
    """The state with its NumPy arrays as immutable arrays: a clause cannot change the initial state in place."""
    if type(state) is np.ndarray:
        return as_array(state)
    if isinstance(state, (tuple, list, dict)):
        return pytrees.map(lambda leaf: as_array(leaf) if type(leaf) is np.ndarray else leaf, state)
    return state


# What calling a generator function or an asynchronous one returns, before any of its code is executed.
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


def need_executed(handler: Handler, f: Callable[..., Any], y: Any) -> None:
    """Raises: BadArgument: the result ``y`` of ``f`` is a generator or coroutine, not executed yet."""
    if not isinstance(y, _SUSPENDED):
        return
    kind, name = type(y).__name__.replace("_", " "), name_of(f)
    if isinstance(y, types.GeneratorType):  # a block in it would be in force for its consumer between two values
        hint = f"handle what consumes it: hx.handle(h, state)(lambda: list({name}(...)))()."
    else:
        hint = "await it inside of a block: with hx.handle(h, state) as run: ..."
    if isinstance(y, types.CoroutineType):
        y.close()  # it will not be awaited
    raise BadArgument(
        f"handle: {name} returns a {kind}, of which nothing is executed yet: {handler} would answer nothing.", hint=hint
    )


class Installation(ImmutableObject):
    """A handler with its initial state: call it on a function, ``handle(h)(f)``, or enter it as a ``with`` block.

    A value: each call and each block starts from the same state.
    """

    __slots__ = ("handler", "state")
    _guard = ("installations", "handle(h, state) makes another one.")
    handler: Handler
    state: Any

    def __init__(self, handler: Handler, state: Any):
        object.__setattr__(self, "handler", handler)
        object.__setattr__(self, "state", _unchangeable(state))

    def __call__(self, f: Callable[P, Any]) -> Callable[P, Any]:
        if not callable(f):
            raise BadArgument(f"handle: a function is needed, got {type(f).__name__}.", hint="hx.handle(h)(f)(x).")

        @wraps(f)
        @unnamed_boundary
        def handled(*args: P.args, **kwargs: P.kwargs) -> Any:
            site = user_site(2)
            if self.handler.resumes or self.handler.aborts:
                return run_reified(self.handler, self.state, f, args, kwargs, site)
            run = HandlerRun(landing(STACK.get()), self.handler, self.state, site)
            with installed(run), grounded(run):
                y = on_deep_stack(f, *args, **kwargs)
            need_executed(self.handler, f, y)
            return final_answer(self.handler, run.merged_state(), y)

        return handled

    @unwound
    def __enter__(self) -> HandlerRun:
        top = STACK.get()
        if self.handler.resumes or self.handler.aborts or self.handler.returns is not None:
            raise CannotCross(
                "handle: a with block cannot be resumed or ended early, and has no result for returns=.",
                hint="put the block into a function: hx.handle(h)(f).",
            )
        if any(isinstance(run, Record) for run in runs(top)):
            raise CannotCross(
                "handle: a with block inside a traced function would not be in force when the program is executed.",
                hint="put the block into a function: hx.handle(h)(f).",
            )
        run = BlockRun(top, self.handler, self.state, user_site(2))
        run.installation = self
        push(run)
        return run

    def __exit__(self, *error: object) -> None:
        opened: list[Run] = []  # the runs up to that of this block
        for run in runs():
            opened.append(run)
            if isinstance(run, BlockRun) and run.installation is self:
                break
        else:
            if error[0] is None:
                raise BadCall(
                    f"handle: a with block of {self.handler} is closed that is not open here.",
                    hint="it is closed once, in the thread that opened it; blocks in it are closed before.",
                )
            return
        opened = [run for run in opened if type(run) is not References]  # they end with the block
        if not all([isinstance(run, BlockRun) for run in opened]):
            raise BadCall(
                f"handle: a with block of {self.handler} is closed inside {opened[0].label}, which it contains.",
                hint="open and close it in the same function.",
            )
        for run in opened:
            run.ended = True
        push(opened[-1].outer)
        if len(opened) > 1 and error[0] is None:
            raise BadCall(
                f"handle: the with block of {self.handler} is closed before that of {opened[0].label} in it; now both "
                "are.",
                hint="close the innermost block first, as contextlib.ExitStack does.",
            )


class BlockRun(HandlerRun):
    """The run of a ``with`` block of ``installation``; ``current`` is the state after each operation in it."""

    __slots__ = ("installation",)
    installation: Installation

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        results = super().cross(op, operands)
        self.merged_state()
        return results


def handle(handler: Handler, state: Any = NO_STATE) -> Installation:
    """Install a handler around a function.

        handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)

    The order of handlers is their meaning: in ``handle(h)(grad(f))`` the clauses answer what the rules of ``grad``
    perform, ``grad(handle(h)(f))`` differentiates what the clauses perform. A handler with a ``ctl`` or ``final``
    clause records the function first: Python's ``if`` then has no values to branch on. Outside of tracing it also works
    as a block: after ``with handle(h, s) as run: ...`` the state is ``run.current``, and ``handle(h, s)`` is as before.
    """
    if not isinstance(handler, Handler):
        raise BadArgument(
            f"handle: a handler is needed, got {type(handler).__name__}.", hint="make one with hx.handler({...})."
        )
    return Installation(handler, state)


class Handlers(tuple[str, ...]):
    """The labels of the handlers in force, innermost first; printed one per line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join([f"{i}  {label}" for i, label in enumerate(self)]) or "no handlers: operations are evaluated"


def handlers() -> Handlers:
    """The handlers in force here, innermost first, by the labels that error messages use."""
    return Handlers([run.label for run in runs() if run.label])


def innermost_transformation() -> Run:
    """The innermost run in force that owns boxes, as no handler of a user's does; the base outside of them all."""
    return next((run for run in runs() if run.owns_boxes), BASE)


def trace_state_clean() -> bool:
    """Whether no transformation is in force: every value is concrete. Handlers of a user's and scopes are no
    transformations.

    >>> from handlax import eval_shape
    >>> trace_state_clean()
    True
    >>> _ = eval_shape(lambda: print(trace_state_clean()) or 0.0)
    False
    """
    return innermost_transformation() is BASE
