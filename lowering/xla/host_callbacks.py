"""Host callbacks of compiled programs: their order, their execution and their errors.

Ordered callbacks are discharged before a program is emitted, by a handler whose state is a token: each callback takes
the token of the one before it and returns its own. The order is thus a data dependence, which loops, branches and calls
carry as they carry any state. A program with ordered callbacks takes the token of the program before it, in the same
thread, as its last argument, and returns its own as its last result.

Over several devices a program has one token, which all of them hold: its callbacks are called by the first device, on
whole values. In a ``ShardMap`` each device calls, and each has a token of its own: the order is kept on each, devices
have none among them, and what comes before or after the ``ShardMap`` comes before or after all of them.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NoReturn

import numpy as np

from ...effects.base.caches import process_lock
from ...effects.base.errors import BadCall, CallbackError, ExecutionError, HandlaxError, OutOfMemory
from ...effects.base.source_locations import Site
from ...effects.base.stack import STACK, Run, installed, perform
from ...effects.control.callbacks import TOKEN, Callback, Sequenced
from ...effects.core.arrays import scalar
from ...effects.operations.foundations.shapes import broadcast
from ...effects.operations.reductions.reductions import reduce_max
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.types.array_type import ArrayType
from ...interpreters.core.record import record
from ...interpreters.core.state_flow import StateFlow
from ...interpreters.handlers.handler import Handler, handler
from ...interpreters.handlers.installation import HandlerRun
from ..clients.runtime_access import AT_END, CURRENT_HOST_CALL, UNINTERRUPTED, empty_in_children
from .lazy import runtime
from .stablehlo_types import storage

HOST_CALL = "handlax_host_call"
"""The target of host calls in a program's text; the runtime replaces it with the platform's own target."""


def is_ordered(program: Program) -> bool:
    """Whether the program has an ordered callback."""
    return any([isinstance(effect, Callback) and effect.ordered for effect in program.effects])


def calls_host(program: Program) -> bool:
    """Whether effects in the program's row leave the device: callbacks, ordered or not, and foreign functions."""
    return any([getattr(effect, "calls_host", False) for effect in program.effects])


def with_token(program: Program) -> Program:
    """The program with one more result, a token that is ready when the host has been called.

    A program with ordered callbacks also takes a token, as its last input, and passes it from callback to callback.
    """
    if not is_ordered(program):
        return record(lambda *xs: [*interpret(program, xs), scalar(0, TOKEN.dtype)], program.in_types, program.name)
    kinds: Any = {type(effect) for effect in program.effects if isinstance(effect, Callback)}
    order = handler(dict.fromkeys(kinds, _chained))

    def ordered(*xs: Any) -> list[Any]:
        run = _CallbackOrder(STACK.get(), order, xs[-1])
        with installed(run):
            results = interpret(program, xs[:-1])
        return [*results, run.current]

    return record(ordered, [*program.in_types, TOKEN], program.name)


class _CallbackOrder(HandlerRun):
    """The installation of the handler of ordered callbacks; without a label, so that errors do not mention it."""

    __slots__ = ()

    def __init__(self, outer: Run, order: Handler, token: Any):
        super().__init__(outer, order, token)
        self.label = ""

    def fresh(self, outer: Run) -> _CallbackOrder:
        return _CallbackOrder(outer, self.handler, self.current)

    def flow(self, op: HigherOrder) -> StateFlow:
        return _TokenOfEachDevice(self, op) if op.runs == "mesh" else super().flow(op)


class _TokenOfEachDevice(StateFlow):
    """The token enters a ``ShardMap`` as one of each device, and leaves as the one that all of theirs are joined to."""

    def __init__(self, run: _CallbackOrder, op: HigherOrder):
        self.axes = frozenset(op.lanes_of_all)
        self.operands = (broadcast(run.current, (op.length,)),)

    def inner_types(self) -> list[ArrayType]:
        (rows,) = self.operands
        return [rows.type.update(shape=()).along(rows.type.varying | self.axes)]

    def begin(self, run: _CallbackOrder, values: Sequence[Any]) -> None:
        (run.current,) = values

    def end(self, run: _CallbackOrder) -> tuple[Sequence[Any], Any]:
        return [run.current], None

    def after(self, run: _CallbackOrder, values: Sequence[Any], structure: Any) -> None:
        (rows,) = values
        run.current = reduce_max(rows, (0,))


def _chained(token: Any, op: Any, *xs: Any) -> tuple[Any, Any]:
    """Perform a callback, an ordered one after what ``token`` stands for; the next token, and the results."""
    if not op.ordered:
        return token, perform(op, *xs)
    token, *results = perform(Sequenced(op), token, *xs)
    return token, tuple(results)


# Errors


class _Failure:
    """An error raised in a callback, and whether it has been reported to the user."""

    __slots__ = ("error", "reported")

    def __init__(self, error: BaseException):
        self.error = error
        self.reported = False


_FAILURES: OrderedDict[int, _Failure] = OrderedDict()
_MOST_FAILURES = 64
_NUMBERS = count(1)
_LOCK = process_lock()  # of the pending tokens
_NUMBERED = re.compile(r"handlax callback failure (\d+)")


class HostCall:
    """The host function that a compiled program calls: the function of a callback, with the user's source site.

    On one of several devices it does not fail: the others would wait for it, for good, where they meet next. It gives
    zeros, of ``types``, and every launch of the program in progress raises its error, from its list in ``launches``.
    ``types=None``: there is one device.
    """

    __slots__ = ("op", "site", "types", "launches")

    def __init__(self, op: Callback, site: Any, types: Sequence[ArrayType] | None = None):
        self.op = op
        self.site = site
        self.types = types
        self.launches: dict[int, list[BaseException]] = {}

    def __call__(self, *values: Any) -> tuple[np.ndarray[Any, Any], ...]:
        outside = CURRENT_HOST_CALL.get()
        try:
            CURRENT_HOST_CALL.set(self)
            return self.op.call(*values)
        except BaseException as error:
            if self.types is not None:
                for failures in list(self.launches.values()):
                    failures.append(self.located(error))
                return tuple([np.zeros(*storage(t)) for t in self.types])
            # XLA passes on the text of an error alone
            raise RuntimeError(f"handlax callback failure {_record_failure(self.located(error))}") from error
        finally:
            CURRENT_HOST_CALL.set(outside)

    def located(self, error: BaseException) -> BaseException:
        """The error with the site of the callback in place of that of the program's call."""
        if isinstance(error, CallbackError) and self.site[0] is not None:
            error.moved(f"at {Site(*self.site).full}")
        return error


def _record_failure(error: BaseException) -> int:
    """Store an error until it is reported, and return its number."""
    number = next(_NUMBERS)
    _FAILURES[number] = _Failure(error)
    if len(_FAILURES) > _MOST_FAILURES:
        _FAILURES.popitem(last=False)
    return number


def translated(error: Exception) -> BaseException:
    """The error to raise for a failure of the runtime: of a callback, another process, the memory, or the program.

    An error that is none of the runtime's is itself.
    """
    text = str(error)
    found = _NUMBERED.search(text)
    failure = _FAILURES.get(int(found[1])) if found else None
    if failure is None and "Out of memory" in text:
        return OutOfMemory(f"the memory of the device must suffice, got {text}")
    if failure is None:
        return runtime.failure_of_others(error) or _of_the_program(error)
    failure.reported = True
    return _fresh_copy(failure.error)


def _of_the_program(error: Exception) -> Exception:
    if not isinstance(error, runtime.RuntimeFailure):
        return error
    failed = ExecutionError(f"a compiled program must be executed without an error, got {error}")
    failed.__cause__ = error
    return failed


def raise_translated(error: Exception) -> NoReturn:
    """Raise ``translated(error)``."""
    found = translated(error)
    raise found from found.__cause__


def _fresh_copy(error: BaseException) -> BaseException:
    """An equal error to raise again: with the same cause and without traceback."""
    if not isinstance(error, HandlaxError):
        return error.with_traceback(None)
    function, arguments = error.__reduce__()
    copy = function(*arguments)
    copy.__cause__ = error.__cause__
    return copy


# Launching


class _Thread(threading.local):
    """Per thread: the token of the last ordered program."""

    def __init__(self) -> None:
        self.token: Any = None


_THREAD = _Thread()
_PENDING: deque[Any] = deque()
empty_in_children(_PENDING)


class HostCallLaunch:
    """The call of an executable whose program has host calls; it adds and removes the tokens of ``with_token``.

    ``effects``: whether the program returns a token; ``place``: the sharding of the one that it takes too; None: none.
    ``calls``: the host calls of a program over several devices, for which it waits, to raise their errors.
    """

    __slots__ = ("execute", "effects", "place", "calls")

    def __init__(
        self, execute: Callable[[Sequence[Any]], list[Any]], effects: bool, place: Any, calls: Sequence[HostCall]
    ):
        self.execute = execute
        self.effects = effects
        self.place = place
        self.calls = calls

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        try:
            if self.place is not None:
                buffers = [*buffers, self.token()]
            results = self.executed(buffers) if self.calls else self.execute(buffers)
        except runtime.RuntimeFailure as error:
            raise_translated(error)
        if not self.effects:
            return results
        *results, token = results
        if self.place is not None:
            _THREAD.token = token
        _add_pending(token)
        return results

    def executed(self, buffers: Sequence[Any]) -> list[Any]:
        """The results, when all host calls have returned. Raises: the error of the first that failed."""
        failures: list[BaseException] = []
        for call in self.calls:
            call.launches[id(failures)] = failures
        try:
            results = self.execute(buffers)
            for buffer in results:
                runtime.block_until_ready(buffer)
        finally:
            for call in self.calls:
                del call.launches[id(failures)]
        if failures:
            raise _fresh_copy(failures[0]) from failures[0].__cause__
        return results

    def token(self) -> Any:
        """The token of the ordered program before this one; a new one if that program has failed or there is none.

        One from other devices is waited for.
        """
        last = _THREAD.token
        if last is not None:
            with suppress(runtime.RuntimeFailure):
                if runtime.is_ready(last):
                    runtime.block_until_ready(last)
                return runtime.copy_to(last, self.place)
        return runtime.put_at(np.zeros((), np.uint32), self.place)


def _add_pending(token: Any) -> None:
    """Add a program's token to those that ``effects_barrier`` waits for, and drop those that are ready."""
    with _LOCK:
        while _PENDING:
            first = _PENDING.popleft()
            if not runtime.is_ready(first):
                _PENDING.appendleft(first)
                break
        if not runtime.is_ready(token):
            _PENDING.append(token)


def effects_barrier() -> None:
    """Wait until the callbacks of all programs called so far have been executed.

    Raises: CallbackError: one of them failed and its error has not been raised yet. BadCall: called in a callback.
    """
    if CURRENT_HOST_CALL.get() is not None:
        raise BadCall("effects_barrier: a callback cannot wait for callbacks, as it is one of them.")
    while True:
        with _LOCK:
            token = _PENDING.popleft() if _PENDING else None
        if token is None:
            break
        with suppress(runtime.RuntimeFailure):  # reported below
            runtime.block_until_ready(token)
    for failure in list(_FAILURES.values()):
        if not failure.reported:
            failure.reported = True
            raise _fresh_copy(failure.error) from failure.error.__cause__


UNINTERRUPTED.add(HostCallLaunch.__call__.__code__)
AT_END.append(effects_barrier)
