"""An execution of a function under a handler in direct style, and the function ``resume`` of its clauses.

    perform(op)          inside the function: the function is left, and the clause of op is called with ``resume``
    resume(y)            the function goes on with the answer y: where it was left, the first time
                         executed again from its start, with the same answers so far, each later time

An execution logs what it was answered, so that another one can be given the same answers: by ``ctl`` and plain clauses
of the handler, and for every operation that handlers further out answer, that has an effect, or a body, such as a
jitted call: these are performed once. Other operations are computed again. The function is under the handlers and
settings that were in force where it was called, up to the operation after which it is resumed; from there on under
those around ``resume``.

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009); Koppel, Scherr & Solar-Lezama, "Capturing the Future
by Replaying the Past" (2018), for resumption by replay.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple

from ...effects.base.config import CONFIG
from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadCall, CannotCross
from ...effects.base.stack import STACK, Run, SiteCell, at_site, grounded, inside, installed, runs
from ...effects.core.operation import Operation
from ...effects.programs.program import interpret
from ..handlers.elimination import has_iterations
from ..handlers.handle import copied, landing, need_executed
from ..handlers.handler import ClauseKind, Handler, ctl, once
from ..handlers.installation import NO_STATE, HandlerRun, final_answer
from ..handlers.resumable import (
    answer_given,
    call_clause,
    executed_body,
    loop_answer,
    never_executed,
    resumed_again,
)
from ..references.reference import next_number
from .executed_log import Answered, Iteration, Surroundings, is_same, other_performed, own_references
from .stacks import close_stacks, greenlet, nested, new_stack, start


class Handled(NamedTuple):
    """A function, its arguments, and the handler and state that are installed around it.

    ``under``, ``context``: the handlers, settings and context in force where it was called. ``watching``: the handlers
    of users among them, which may answer what the function performs.
    """

    handler: Handler
    state: Any
    f: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    site: Any
    under: Surroundings
    context: Context
    watching: tuple[HandlerRun, ...]
    logs: bool  # so that it can be executed again
    replays: bool  # it is executed again for each resumption, also the first


class Performed(NamedTuple):
    """An operation for which an execution was left, since its clause takes the rest of the function or ends it."""

    op: Any
    operands: tuple[Any, ...]
    state: Any
    site: Any


class Ended(NamedTuple):
    """The result of an execution that reached its end."""

    answer: Any


class Resumption(NamedTuple):
    """The state, and the results of an operation, with which an execution goes on behind its log, and under what."""

    op: Any
    state: Any
    results: Any
    under: Surroundings


class Unwound(BaseException):
    """Leaves a function for ``activation``. No Exception, so that ``except Exception`` in the function lets it pass."""

    def __init__(self, activation: Activation, message: Performed):
        self.activation = activation
        self.message = message


class Activation:
    """One execution of a function around which a handler is installed in direct style.

    ``log``: what was answered; ``at``: how much of it was given again. ``run``: that of the handler; ``under``: the
    handlers and settings around what is executed now. ``unwound``: what the function was left for, if it was unwound.
    ``driver``: the stack that waits for the next message. ``performer``: the stack that performed last. ``first``: the
    references that the function made have this number or a greater one.
    """

    __slots__ = (
        "handled", "run", "under", "cell", "log", "at", "resumption", "driver", "performer", "unwound", "first",
    )

    def __init__(self, handled: Handled, log: list[Answered | Iteration], resumption: Resumption | None = None):
        self.handled = handled
        self.run: Any = None
        self.under = handled.under
        self.cell = STACK.get().cell or SiteCell()
        self.log = log
        self.at = 0
        self.resumption = resumption
        self.driver: Any = None
        self.performer: Any = None
        self.unwound: Performed | None = None
        self.first = 0

    # inside the function

    def execute(self) -> Performed | Ended:
        """Execute the function, up to the end or to what unwinds it."""
        handler, state, f, args, kwargs, site, *_ = self.handled
        self.run = run = DirectRun(landing(self.under.outer), handler, copied(state), site, _in_body)
        run.activation = self
        self.first = next_number()
        try:
            with installed(run), grounded(run):
                y = f(*args, **kwargs)
        except Unwound as end:
            if end.activation is not self:
                raise
            return end.message
        if self.unwound is not None:
            raise _caught(handler)
        if self.resumption is not None:
            raise other_performed("the function ended", self.resumption.op)
        need_executed(handler, f, y)
        with inside(self.under.outer):
            return Ended(final_answer(handler, run.merged_state(), y))

    def unwind(self, message: Performed) -> Unwound:
        self.unwound = message
        return Unwound(self, message)

    def replayed(self, op: Operation) -> Any:
        """The results that ``op`` had when the function was executed before."""
        entry = self.log[self.at]
        if isinstance(entry, Iteration) or not is_same(op, entry[0]):
            raise other_performed(f"{op.name}: the function performed it", entry)
        self.at += 1
        _, results, written, under = entry
        if under is not None:
            self.go_under(under)
        for ref, value in zip(own_references(op, self.first), written):
            ref.cell = value
        return results

    def remember(self, op: Operation, results: Any, resumed: bool) -> None:
        if self.handled.logs:
            written = [ref.cell for ref in own_references(op, self.first)]
            self.log.append((op, results, written, self.under if resumed else None))
            self.at += 1

    def forget(self, at: int) -> None:
        """Forget what was answered since there were ``at`` answers."""
        del self.log[at:]
        self.at = at

    def left(self, run: DirectRun, op: Operation, xs: tuple[Any, ...]) -> tuple[Any, Any]:
        """The state and the results with which the function goes on after ``op``, for which it is left."""
        resumption = self.resumption
        if resumption is not None:
            if not is_same(op, resumption.op):
                raise other_performed(f"{op.name}: the function performed it", resumption.op)
            self.resumption = None
            self.go_under(resumption.under)
            return resumption.state, resumption.results
        message = Performed(op, xs, run.merged_state(), run.cell.site)
        if self.handled.replays or not takes_rest(run.handler, op):
            raise self.unwind(message)
        if self.driver is None:
            raise BadCall(
                f"{op.name}: it is performed by a function that was left and will not be resumed.",
                hint="it stands in a finally or with block of the function; perform it in the clause, or in returns=.",
            )
        self.performer = greenlet.getcurrent()  # no part of the message: a stack that its own frames keep is not freed
        try:
            return self.driver.switch(message)
        except (greenlet.error, ValueError) as error:
            self.performer = None
            raise CannotCross(
                f"{op.name}: its clause takes the rest of the program, which is executed in another thread.",
                hint="it nests too deeply, or started a thread: raise sys.setrecursionlimit, or handle it inside.",
            ) from error

    def go_under(self, under: Surroundings) -> None:
        """Go on under other handlers and settings, inside the function."""
        if CONFIG.get() is self.under.settings:  # the function has not set others
            CONFIG.set(under.settings)
        self.move(under, STACK.get())

    def move(self, under: Surroundings, top: Run) -> None:
        """What the function performs goes to other handlers from now on; ``top``: its innermost run."""
        outer = under.outer
        if outer is not self.under.outer:
            run = self.run
            before, cell = run.cell, outer.cell or run.cell
            for each in (*runs(top), run):
                if each.cell is before:
                    each.cell, each._labeller = cell, None
                if each is run:
                    break
            run.outer, run.scope = landing(outer), outer.scope
            self.cell = outer.cell or self.cell
        self.under = under

    # around the function

    def start(self) -> Performed | Ended:
        """Execute the function until it performs an operation with a ``ctl`` clause, or ends."""
        with at_site(None, self.cell):
            if self.handled.replays:
                return self.handled.context.copy().run(self.execute)
            if not self.handled.handler.resumes:
                return self.execute()
            stack = new_stack(self.execute, parent=greenlet.getcurrent(), context=self.handled.context.copy())
            stack.activation = self
            return self.wait_for(start, stack)

    def wait_for(self, switch: Callable[..., Any], *given: Any) -> Performed | Ended:
        """The next message of the execution, to which ``switch(*given)`` leads."""
        cell = self.cell
        outside = cell.site
        self.driver = greenlet.getcurrent()
        try:
            return switch(*given)
        finally:
            self.driver = None
            cell.site = outside

    def own_stack(self, performer: Any) -> Any:
        """The stack of this execution: it performed itself, or what it executes in another stack did."""
        while getattr(performer, "activation", None) is not self:
            performer = performer.parent
        return performer

    def take_over(self, performer: Any) -> None:
        """Let the stack in force be the one to which the execution returns, under whose handlers and settings it goes
        on. Raises: CannotCross: it is one of another thread.
        """
        own, here = self.own_stack(performer), greenlet.getcurrent()
        try:
            if own.parent is not here:  # setting it walks all parents, to refuse cycles
                own.parent = here
        except ValueError as error:
            raise CannotCross(
                "resume: the function that is resumed is executed in another thread.",
                hint="resume in the thread that called it, or execute it by replay=True, of hx.direct or hx.steps.",
            ) from error
        under = Surroundings(STACK.get(), CONFIG.get())
        if under.settings is not self.under.settings:
            context = performer.gr_context
            if context.get(CONFIG, self.under.settings) is self.under.settings:  # the function has not set others
                context.run(CONFIG.set, under.settings)
        self.move(under, performer.gr_context[STACK])

    def answer(self, message: Performed | Ended) -> Any:
        """The answer of the handled function: clauses are called, from that of what ``message`` says it performed on,
        until one returns without ``resume.tail``, or the function ends.
        """
        activation = self
        while isinstance(message, Performed):
            op, xs, state, site = message
            handler = activation.handled.handler
            resume = Continuation(activation, op, xs) if takes_rest(handler, op) else None
            del message
            with grounded(activation), at_site(site, activation.cell):
                y = _clause_answer(handler, op, xs, state, resume)
                del resume  # a function that is not resumed is closed here, which restores sites of its own
            if type(y) is not Tail:
                return y
            activation, message = y.resume.advance(*y.given)
        return message.answer


class Continuation:
    """The rest of a handled function after one operation, a function of its answer.

    ``waits``: it was given to the driver by ``tail``, and has not been resumed.
    """

    __slots__ = ("activation", "performer", "op", "operands", "log", "count", "used", "waits", "__weakref__")

    def __init__(self, activation: Activation, op: Any, operands: tuple[Any, ...]):
        self.activation = activation
        self.performer, activation.performer = activation.performer, None
        self.op = op
        self.operands = operands
        self.log, self.count = activation.log, len(activation.log)  # it grows, or a loop replaces it; this part stays
        self.used = self.waits = False

    def __del__(self) -> None:
        performer = self.performer
        if performer is not None and getattr(performer, "activation", None) is not self.activation and performer:
            self.performer = None
            close_stacks(performer, self.activation.own_stack(performer))

    def __call__(self, *args: Any, **named: Any) -> Any:
        given = self.given(args, named)
        return (on_deep_stack if self.activation.handled.replays else nested)(self.finish, *given)

    def tail(self, *args: Any, **named: Any) -> Tail:
        """As ``return resume(y)``, for a clause that returns what this gives: no stack grows."""
        tail = Tail(self, self.given(args, named))
        self.waits = True
        return tail

    def given(self, args: Any, named: Any) -> tuple[Any, Any]:
        """The state, and the results of the operation, that the arguments of ``resume`` are."""
        return answer_given(self.op, self.operands, self.activation.handled.state is not NO_STATE, args, named)

    def finish(self, state: Any, results: Any) -> Any:
        """The answer of the rest of the handled function."""
        activation, message = self.advance(state, results)
        return activation.answer(message)

    def advance(self, state: Any, results: Any) -> tuple[Activation, Performed | Ended]:
        """Continue until the function performs or ends: the execution that did, and its message."""
        activation, handled, performer = self.activation, self.activation.handled, self.performer
        if self.used and isinstance(handled.handler.table.get(type(self.op)), once):
            raise resumed_again(self.op)
        if performer is not None:
            activation.take_over(performer)
        self.used, self.performer, self.waits = True, None, False
        if performer is not None:
            return activation, activation.wait_for(performer.switch, (state, results))
        under = Surroundings(STACK.get(), CONFIG.get())
        again = Activation(handled, self.log[: self.count], Resumption(self.op, state, results, under))
        return again, again.start()


class Tail:
    """What ``resume.tail`` returns: the driver goes on with ``resume``."""

    __slots__ = ("resume", "given")

    def __init__(self, resume: Continuation, given: tuple[Any, Any]):
        self.resume = resume
        self.given = given


class DirectRun(HandlerRun):
    """The run of a handler around a function that is executed by ``activation``."""

    __slots__ = ("activation",)
    activation: Activation

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        activation = self.activation
        clause: Any = self.clauses.get(type(op))
        kind = isinstance(clause, ClauseKind) or (op.bodied and self.takes_loop(op))
        if not kind and not (activation.handled.logs and self.logged(op, clause)):
            return super().answer(op, operands)
        if activation.unwound is not None and (kind or takes_rest(self.handler, activation.unwound.op)):
            raise _caught(self.handler)
        if activation.at < len(activation.log):
            return activation.replayed(op)
        if kind:
            results = self.leave(op, operands)
        elif activation.resumption is not None:
            raise other_performed(f"{op.name}: the function performed it", activation.resumption.op)
        else:
            before = activation.at
            results = super().answer(op, operands)
            activation.forget(before)  # operations in place of ``op``, such as a loop with another test, are part of it
        activation.remember(op, results, kind)
        return results

    def takes_loop(self, op: Any) -> bool:
        """Whether ``op`` is a loop of known length in whose body a clause takes the rest of the function."""
        return has_iterations(op) and op.length > 0 and self.handler.resumes and self.handler.takes_rest_in(op)

    def logged(self, op: Any, clause: Any) -> bool:
        """Whether the results of ``op`` are given again, not computed again, when the function is executed again."""
        if op.bodied and self.handler.takes_rest_in(op):
            return False  # what is performed in its body is
        handled = self.activation.handled
        if clause is not None or op.effects or op.bodied or self.sees(op):
            return True
        return any([run.sees(op) for run in handled.watching])

    def leave(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        """The results of an operation whose clause takes the rest of the function, or ends it."""
        cell = self.cell
        outside = cell.site
        try:
            if outside is None:
                cell.site = self.labelled_site()
            self.current, results = self.activation.left(self, op, operands)
            return results
        finally:
            cell.site = outside

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.bodied and self.handler.takes_rest_in(op):
            body = executed_body(op, operands, _TAKES_REST, self.cell.site)
            if body is not None:
                with inside(self):
                    return interpret(*body)
            if has_iterations(op) and not op.length:
                return tuple(never_executed(op, operands))
        return super().cross(op, operands)


_TAKES_REST = "a clause in direct style takes the rest of the function, or ends it,"


def _in_body(run: HandlerRun, op: Operation, clause: Any, operands: tuple[Any, ...]) -> Any:
    """Raises: CannotCross: a clause that takes the rest of a function cannot be called in a recorded body."""
    raise CannotCross(
        f"{op.name}: its clause in direct style takes the rest of the function, and is performed in a body that is "
        "recorded.",
        hint="perform it outside of vmap, while loops and branches by traced values, hx.loop is a loop in Python; or "
        "record all by hx.handle(h)(f), which crosses branches.",
    )


def _caught(handler: Handler) -> BadCall:
    return BadCall(
        f"{handler}: the function performs while it is left, or caught what leaves it, when a clause ends it or takes "
        "its rest.",
        hint="except Exception lets it pass; a bare except, or except BaseException, must raise it again; a finally "
        "block performs nothing where the function is executed again for each resumption.",
    )


def takes_rest(handler: Handler, op: Any) -> bool:
    """Whether what answers ``op`` takes the rest of the function: a clause of its own, or those of a loop's body."""
    return op.bodied or isinstance(handler.table[type(op)], ctl)


def _clause_answer(handler: Handler, op: Any, xs: tuple[Any, ...], state: Any, resume: Continuation | None) -> Any:
    """The answer of what the function was left for.

    Raises: BadCall: a clause calls ``resume.tail`` and does not return what it gives.
    """
    if op.bodied and resume is not None:
        return loop_answer(handler, op, xs, state, resume)
    clause: Any = handler.table[type(op)]
    if resume is None:
        return call_clause(clause, op, xs, state)
    try:
        y = call_clause(clause, op, xs, state, resume)
    except TypeError as error:
        if resume.waits:
            raise _no_tail(op) from error
        raise
    if resume.waits and type(y) is not Tail:
        raise _no_tail(op)
    return y


def _no_tail(op: Operation) -> BadCall:
    return BadCall(
        f"{op.name}: its clause used resume.tail and returned something else.",
        hint="return resume.tail(y), as it is; resume(y) gives an answer to compute with.",
    )
