"""An execution of a function under a handler in direct style, and the function ``resume`` of its clauses.

    perform(op)          inside the function: the function is left, and the clause of op is called with ``resume``
    resume(y)            the function goes on with the answer y: where it was left, the first time
                         executed again from its start, with the same answers so far, each later time

An execution logs what it was answered, so that another one can be given the same answers: by ``ctl`` and plain clauses
of the handler, and for every effect that goes to handlers further out, which is therefore performed once. Operations
without an effect are computed again.

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009); Koppel, Scherr & Solar-Lezama, "Capturing the Future
by Replaying the Past" (2018), for resumption by replay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadCall, CannotCross
from ...effects.base.stack import STACK, SiteCell, at_site, grounded, inside, installed
from ...effects.core.operation import Operation
from ...effects.programs.program import interpret
from ..handlers.handle import landing, need_executed
from ..handlers.handler import ClauseKind, Handler, final, once
from ..handlers.installation import NO_STATE, HandlerRun, final_answer
from ..handlers.resumable import answer_given, call_clause, executed_body, resumed_again
from .stacks import Nesting, greenlet, new_stack


class Handled(NamedTuple):
    """A function, its arguments, and the handler and state that are installed around it."""

    handler: Handler
    state: Any
    f: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    site: Any
    logs: bool  # so that it can be executed again
    replays: bool  # it is executed again for each resumption, also the first
    memo: bool  # results of jitted calls are logged too


class Performed(NamedTuple):
    """What an execution performed, for a clause that takes the rest."""

    op: Any
    operands: tuple[Any, ...]
    state: Any
    site: Any


class Ended(NamedTuple):
    """The answer of an execution that reached its end, or a ``final`` clause."""

    answer: Any


class Iteration(NamedTuple):
    """In place of what a loop logged so far: it has reached iteration ``i`` with these values."""

    i: int
    carry: Any


class Resumption(NamedTuple):
    """The state, and the results of an operation, with which an execution goes on behind its log."""

    kind: type
    state: Any
    results: Any


class Unwound(BaseException):
    """Leaves a function for ``activation``. No Exception, so that ``except Exception`` in the function lets it pass."""

    def __init__(self, activation: Activation, message: Performed | Ended):
        self.activation = activation
        self.message = message


class Activation:
    """One execution of a function around which a handler is installed in direct style.

    ``log``: the kind and the results of each operation that was answered; ``at``: the number of those that were given
    again. ``driver``: the stack that waits for the next message. ``performer``: the stack that performed last.
    """

    __slots__ = ("handled", "outer", "cell", "log", "at", "resumption", "driver", "performer", "unwound", "nesting")

    def __init__(self, handled: Handled, log: list[Any], nesting: Nesting, resumption: Resumption | None = None):
        self.handled = handled
        self.outer = STACK.get()
        self.cell = self.outer.cell or SiteCell()
        self.log = log
        self.at = 0
        self.resumption = resumption
        self.driver: Any = None
        self.performer: Any = None
        self.unwound = False
        self.nesting = nesting

    # inside the function

    def execute(self) -> Performed | Ended:
        """Execute the function, up to the end or to what unwinds it."""
        handler, state, f, args, kwargs, site, *_ = self.handled
        run = DirectRun(landing(self.outer), handler, state, site, _in_body)
        run.activation = self
        try:
            with installed(run), grounded(run):
                y = f(*args, **kwargs)
        except Unwound as end:
            if end.activation is not self:
                raise
            return end.message
        if self.unwound:
            raise _caught(handler)
        need_executed(handler, f, y)
        return Ended(final_answer(handler, run.merged_state(), y))

    def unwind(self, message: Performed | Ended) -> Unwound:
        self.unwound = True
        return Unwound(self, message)

    def replayed(self, op: Operation) -> Any:
        """The results that ``op`` had when the function was executed before."""
        entry = self.log[self.at]
        if type(entry) is Iteration or entry[0] is not type(op):
            before = "a loop" if type(entry) is Iteration else entry[0].name
            raise other_performed(op.name, before)
        self.at += 1
        return entry[1]

    def remember(self, op: Operation, results: Any) -> None:
        if self.handled.logs:
            self.log.append((type(op), results))
            self.at += 1

    def forget(self, at: int) -> None:
        """Forget what was answered since there were ``at`` answers."""
        del self.log[at:]
        self.at = at

    def left(self, run: DirectRun, op: Operation, xs: tuple[Any, ...]) -> tuple[Any, Any]:
        """The state and the results with which the function goes on after ``op``, for which it is left."""
        resumption = self.resumption
        if resumption is not None:
            if resumption.kind is not type(op):
                raise other_performed(op.name, resumption.kind.name)  # type: ignore[attr-defined]
            self.resumption = None
            return resumption.state, resumption.results
        message = Performed(op, xs, run.merged_state(), run.cell.site)
        if self.handled.replays:
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

    # around the function

    def start(self) -> Performed | Ended:
        """Execute the function until it performs an operation with a ``ctl`` clause, or ends."""
        if self.handled.replays or not self.handled.handler.resumes:
            return self.execute()
        stack = new_stack(self.execute)
        stack.activation = self
        return self.wait_for(stack)

    def wait_for(self, stack: Any, *answer: Any) -> Performed | Ended:
        """Go on with ``stack``; the next message of the execution."""
        outside = self.cell.site
        self.driver = greenlet.getcurrent()
        try:
            return stack.switch(*answer)
        finally:
            self.driver = None
            self.cell.site = outside

    def go_on(self, performer: Any, state: Any, results: Any) -> Performed | Ended:
        """Continue where the function was left, until it performs again or ends."""
        own = performer
        while getattr(own, "activation", None) is not self:  # the performer is this one's stack, or lies inside of it
            own = own.parent
        try:
            if own.parent is not greenlet.getcurrent():  # setting it walks all parents, to refuse cycles
                own.parent = greenlet.getcurrent()
        except ValueError as error:
            raise CannotCross(
                "resume: the function that is resumed is executed in another thread.",
                hint="resume in the thread of the handler, or install it by hx.direct(h, state, replay=True).",
            ) from error
        del own
        return self.wait_for(performer, (state, results))

    def answer(self, message: Performed | Ended) -> Any:
        """The answer of the handled function: clauses are called, from that of what ``message`` says it performed on,
        until one returns without ``resume.tail``, or the function ends.
        """
        activation = self
        while isinstance(message, Performed):
            op, xs, state, site = message
            resume = Continuation(activation, op, xs)
            del message
            clause: Any = activation.handled.handler.table[type(op)]
            with grounded(activation), at_site(site, activation.cell):
                y = call_clause(clause, op, xs, state, resume)
                del resume  # a function that is not resumed is closed here, which restores sites of its own
            if type(y) is not Tail:
                return y
            activation, message = y.resume.advance(*y.given)
        return message.answer


class Continuation:
    """The rest of a handled function after one operation, a function of its answer."""

    __slots__ = ("activation", "performer", "op", "operands", "log", "count", "used", "__weakref__")

    def __init__(self, activation: Activation, op: Any, operands: tuple[Any, ...]):
        self.activation = activation
        self.performer, activation.performer = activation.performer, None
        self.op = op
        self.operands = operands
        self.log, self.count = activation.log, len(activation.log)  # it grows, or a loop replaces it; this part stays
        self.used = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        given = self.given(args, named)
        if self.activation.handled.replays:
            return on_deep_stack(self.finish, *given)
        return self.activation.nesting.call(self.finish, *given)

    def tail(self, *args: Any, **named: Any) -> Tail:
        """As ``return resume(y)``, for a clause that returns what this gives: no stack grows."""
        return Tail(self, self.given(args, named))

    def given(self, args: Any, named: Any) -> tuple[Any, Any]:
        """The state, and the results of the operation, that the arguments of ``resume`` are."""
        return answer_given(self.op, self.operands, self.activation.handled.state is not NO_STATE, args, named)

    def finish(self, state: Any, results: Any) -> Any:
        """The answer of the rest of the handled function."""
        activation, message = self.advance(state, results)
        return activation.answer(message)

    def advance(self, state: Any, results: Any) -> tuple[Activation, Performed | Ended]:
        """Continue until the function performs or ends: the execution that did, and its message."""
        activation, handled = self.activation, self.activation.handled
        used, self.used = self.used, True
        if used and isinstance(handled.handler.table[type(self.op)], once):
            raise resumed_again(self.op)
        if self.performer is not None and STACK.get() is activation.outer:
            performer, self.performer = self.performer, None
            return activation, activation.go_on(performer, state, results)
        if not handled.logs:
            raise BadCall(
                f"{self.op.name}: a clause hx.once resumes under the handlers that were in force at the start.",
                hint="hx.ctl resumes under others too: the function is then executed again, with the same answers.",
            )
        again = Activation(
            handled, self.log[: self.count], activation.nesting, Resumption(type(self.op), state, results)
        )
        return again, again.start()


class Tail(NamedTuple):
    """What ``resume.tail`` returns: the driver goes on with ``resume``."""

    resume: Continuation
    given: tuple[Any, Any]


class DirectRun(HandlerRun):
    """The run of a handler around a function that is executed by ``activation``."""

    __slots__ = ("activation",)
    activation: Activation

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        activation = self.activation
        clause: Any = self.clauses.get(type(op))
        takes_rest = isinstance(clause, ClauseKind)
        if not takes_rest and not (activation.handled.logs and self.logged(op, clause)):
            return super().answer(op, operands)
        if activation.unwound:
            raise _caught(self.handler)
        if activation.at < len(activation.log):
            return activation.replayed(op)
        before = activation.at
        results = self.leave(op, operands, clause) if takes_rest else super().answer(op, operands)
        if not takes_rest:
            activation.forget(before)  # operations in place of ``op``, such as a loop with another test, are part of it
        activation.remember(op, results)
        return results

    def logged(self, op: Any, clause: Any) -> bool:
        """Whether the results of ``op`` are given again, not computed again, when the function is executed again."""
        if op.bodied and self.handler.takes_rest_in(op):
            return False  # what is performed in its body is
        if clause is not None or op.effects or (op.bodied and self.activation.handled.memo):
            return True
        return self.handler.otherwise is not None and self.handler.over(op)

    def leave(self, op: Operation, operands: tuple[Any, ...], clause: Any) -> Any:
        """The results of an operation whose clause takes the rest of the function, or ends it."""
        cell = self.cell
        outside = cell.site
        try:
            if outside is None:
                cell.site = self.labelled_site()
            if isinstance(clause, final):
                with inside(self.activation.outer):
                    answer = call_clause(clause, op, operands, self.merged_state())
                    raise self.activation.unwind(Ended(answer))
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
        return super().cross(op, operands)


_TAKES_REST = "a clause in direct style takes the rest of the function, or ends it,"


def _in_body(run: HandlerRun, op: Operation, clause: Any, operands: tuple[Any, ...]) -> Any:
    """Raises: CannotCross: a clause that takes the rest of a function cannot be called in a recorded body."""
    raise CannotCross(
        f"{op.name}: its clause in direct style takes the rest of the function, and is performed in a body that is "
        "recorded.",
        hint="perform it outside of loops, vmap and branches by traced values; or record all by hx.handle(h)(f).",
    )


def _caught(handler: Handler) -> BadCall:
    return BadCall(
        f"{handler}: the function caught what leaves it when a clause ends it or takes its rest.",
        hint="except Exception lets it pass; a bare except, or except BaseException, must raise it again.",
    )


def other_performed(name: str, before: str) -> BadCall:
    return BadCall(
        f"{name}: the function performed {before} here when it was executed before.",
        hint="a function that is resumed again is executed again, and must perform the same: it depends on its "
        "arguments and on answers alone, not on what it changed.",
    )
