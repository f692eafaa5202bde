"""Callbacks on a device: what a compiled program calls on the host, in which order, and what becomes of its errors.

Ordered callbacks are discharged before a program is emitted, by a handler whose state is a number: each takes the one
of the callback before it and gives its own, so the order is in the data, and every loop, branch and call carries it by
the law by which it carries any state. A program with such effects takes the number of the program before it as its last
argument and gives its own as its last result, thread by thread.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from ..effects.arrays import scalar
from ..effects.callbacks import TURN, Callback, Sequenced
from ..effects.errors import BadCall, CallbackError, HandlaxError
from ..effects.programs import Program, interpret
from ..effects.sources import Site
from ..effects.stack import STACK, Run, installed, perform
from ..interpreters.handler import Handler, handler
from ..interpreters.handling import Handling
from ..interpreters.record import record
from .lazy import runtime

HOST_CALL = "handlax_host_call"
"""What the text of a program calls the host by; the runtime knows each platform's own name for it."""


def is_ordered(program: Program) -> bool:
    """Whether a callback of the program has to wait for another."""
    return any([isinstance(effect, Callback) and effect.ordered for effect in program.effects])


def calls_host(program: Program) -> bool:
    """Whether the program has effects that the device answers."""
    return any([isinstance(effect, Callback) for effect in program.effects])


def with_turn(program: Program) -> Program:
    """The program of a row of effects, which gives one more number when they have been performed.

    Where some are ordered it takes one too, behind its inputs, and chains them by it.
    """
    if not is_ordered(program):
        return record(lambda *xs: [*interpret(program, xs), scalar(0, TURN.dtype)], program.in_types, program.name)
    kinds: Any = {type(effect) for effect in program.effects if isinstance(effect, Callback)}
    turns = handler(dict.fromkeys(kinds, _in_turn))

    def chained(*xs: Any) -> list[Any]:
        run = _Chaining(STACK.get(), turns, xs[-1])
        with installed(run):
            results = interpret(program, xs[:-1])
        return [*results, run.current]

    return record(chained, [*program.in_types, TURN], program.name)


class _Chaining(Handling):
    """A handler that nobody sees: no line of the user's came through it."""

    __slots__ = ()

    def __init__(self, outer: Run, turns: Handler, turn: Any):
        super().__init__(outer, turns, turn)
        self.label = ""

    def fresh(self, outer: Run) -> _Chaining:
        return _Chaining(outer, self.handler, self.current)


def _in_turn(turn: Any, op: Any, *xs: Any) -> tuple[Any, Any]:
    if not op.ordered:
        return turn, perform(op, *xs)
    turn, *results = perform(Sequenced(op), turn, *xs)
    return turn, tuple(results)


# Errors


class _Failure:
    """What went wrong in a callback, until somebody is told."""

    __slots__ = ("error", "told")

    def __init__(self, error: BaseException):
        self.error = error
        self.told = False


_FAILURES: OrderedDict[int, _Failure] = OrderedDict()
_MOST_FAILURES = 64
_LOCK = threading.Lock()
_NUMBERED = re.compile(r"handlax callback failure (\d+)")


class HostCall:
    """What a compiled program calls: an operation on arrays of the host, performed at a line of the user's."""

    __slots__ = ("op", "site")

    def __init__(self, op: Callback, site: Any):
        self.op = op
        self.site = site

    def __call__(self, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        outside, _THREAD.calls = _THREAD.calls, True
        try:
            return self.op.call(*values)
        except BaseException as error:
            # the text is all that comes through XLA
            raise RuntimeError(f"handlax callback failure {_noted(self.located(error))}") from error
        finally:
            _THREAD.calls = outside

    def located(self, error: BaseException) -> BaseException:
        """The error with the line where the callback is performed, in place of the one that started the program."""
        if isinstance(error, CallbackError) and self.site[0] is not None:
            error.where = f"at {Site(*self.site).full}"
            error.args = (str(error),)
        return error


def _noted(error: BaseException) -> int:
    with _LOCK:
        number = next(reversed(_FAILURES), 0) + 1
        _FAILURES[number] = _Failure(error)
        if len(_FAILURES) > _MOST_FAILURES:
            _FAILURES.popitem(last=False)
        return number


def translated(error: Exception) -> BaseException:
    """What a failure of the runtime means: the error of the callback that failed, where one did."""
    found = _NUMBERED.search(str(error))
    failure = _FAILURES.get(int(found[1])) if found else None
    if failure is None:
        return error
    failure.told = True
    return _again(failure.error)


def raise_translated(error: Exception) -> NoReturn:
    found = translated(error)
    raise found from found.__cause__


def _again(error: BaseException) -> BaseException:
    """The same error, to be raised once more: with its own cause and no traceback yet."""
    if not isinstance(error, HandlaxError):
        return error.with_traceback(None)
    function, arguments = error.__reduce__()
    made = function(*arguments)
    made.__cause__ = error.__cause__
    return made


# Launching


class _Thread(threading.local):
    """The numbers that the last ordered programs of this thread gave, by device; whether it is in a callback."""

    def __init__(self) -> None:
        self.last: dict[Any, Any] = {}
        self.calls = False


_THREAD = _Thread()
_PENDING: deque[Any] = deque()
_WAITING: list[bool] = []


class Launch:
    """``run`` of an executable whose program calls the host: ``launch(buffers).consume_with_handlers(handlers)``.

    ``ordered`` programs take and give a number behind their own arguments and results; those with other effects give
    one: it is there when the effects have been performed.
    """

    __slots__ = ("run", "device", "effects", "ordered")

    def __init__(self, executable: Any, effects: bool, ordered: bool):
        self.run = executable.run
        self.device = executable.devices[0]
        self.effects = effects
        self.ordered = ordered

    def __call__(self, buffers: Sequence[Any]) -> _Launched:
        return _Launched(self, buffers)

    def launch(self, buffers: Sequence[Any], handlers: Sequence[Any]) -> list[Any]:
        try:
            if self.ordered:
                buffers = [*buffers, self.turn()]
            made = self.run(buffers).consume_with_handlers(handlers)
        except runtime.RuntimeFailure as error:
            raise_translated(error)
        if not self.effects:
            return made
        *made, turn = made
        if self.ordered:
            _THREAD.last[self.device] = turn
        _await_later(turn)
        return made

    def turn(self) -> Any:
        """The number of the program before; a new one where that has failed, and everybody who waited for it."""
        last = _THREAD.last.get(self.device)
        if last is not None and last.is_ready():
            try:
                runtime.block_until_ready(last)
                return last
            except runtime.RuntimeFailure:
                last = None
        return runtime.put(np.uint32(0), self.device) if last is None else last


class _Launched:
    """What ``run`` gives: the results, once it is said how to wrap them."""

    __slots__ = ("launch", "buffers")

    def __init__(self, launch: Launch, buffers: Sequence[Any]):
        self.launch = launch
        self.buffers = buffers

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        return self.launch.launch(self.buffers, handlers)


def _await_later(turn: Any) -> None:
    """Keep what tells that the effects of a program have been performed, for as long as they have not."""
    with _LOCK:
        if not _WAITING:
            _WAITING.append(True)
            atexit.register(effects_barrier)
        while _PENDING and _PENDING[0].is_ready():
            _PENDING.popleft()
        if not turn.is_ready():
            _PENDING.append(turn)


def effects_barrier() -> None:
    """Wait until the callbacks of all programs started so far have been called.

    Raises: CallbackError: one of them failed, and nobody has been told. BadCall: a callback waits for its own program.
    """
    if _THREAD.calls:
        raise BadCall("effects_barrier: a callback cannot wait for callbacks, as it is one of them.")
    while True:
        with _LOCK:
            if not _PENDING:
                break
            turn = _PENDING.popleft()
        with suppress(runtime.RuntimeFailure):  # told below
            runtime.block_until_ready(turn)
    for failure in list(_FAILURES.values()):
        if not failure.told:
            failure.told = True
            raise _again(failure.error) from failure.error.__cause__
