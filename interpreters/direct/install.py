"""``direct``: a handler around a function that is executed, so that Python's control flow reads answers.

    direct(h)(f)(x) = y              direct(h, s)(f)(x) = (s', y)
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from ...effects.base.config import CONFIG
from ...effects.base.errors import BadArgument
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK, runs
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ..handlers.handle import Installation, copied, handle
from ..handlers.handler import Handler, ctl, once
from ..handlers.installation import NO_STATE, HandlerRun
from .activation import Activation, DirectRun, Handled
from .executed_log import Iteration, Surroundings, other_performed
from .stacks import have_greenlets, nested

P = ParamSpec("P")
C = TypeVar("C")


class DirectInstallation(Installation):
    """A handler with its initial state, to be called on a function that it executes."""

    __slots__ = ("replay",)
    replay: bool

    def __init__(self, handler: Handler, state: Any, replay: bool):
        super().__init__(handler, state)
        self._fill(replay=replay)

    def _parts(self) -> tuple[Any, ...]:
        return (*super()._parts(), self.replay)

    def __repr__(self) -> str:
        options = ", replay=True" if self.replay else ""
        return f"{super().__repr__().replace('handle', 'direct', 1)[:-1]}{options})"

    def __call__(self, f: Callable[P, Any]) -> Callable[P, Any]:
        handler = self.handler
        if not callable(f):
            raise BadArgument(f"direct: a function is needed, got {type(f).__name__}.", hint="hx.direct(h)(f)(x).")
        if not (handler.resumes or handler.aborts):  # then the function is executed anyway
            return super().__call__(f)
        many = any([isinstance(clause, ctl) and not isinstance(clause, once) for clause in handler.clauses.values()])
        replays = handler.resumes and (self.replay or not have_greenlets())

        @wraps(f)
        @unnamed_boundary
        def handled(*args: P.args, **kwargs: P.kwargs) -> Any:
            under, site = Surroundings(STACK.get(), CONFIG.get()), user_site(2)
            watching = tuple([run for run in runs(under.outer) if isinstance(run, HandlerRun)])
            given = Handled(
                self.installed(site), self.state, f, args, kwargs, site, under, copy_context(), watching,
                many or replays, replays,
            )
            return nested(_answer_of, given)

        return handled


def _answer_of(handled: Handled) -> Any:
    """The answer of a handled function, by its first execution and those that its clauses ask for."""
    activation = Activation(handled, [])
    return activation.answer(activation.start())


def direct(handler: Handler, state: Any = NO_STATE, *, replay: bool = False) -> Installation:
    """Install a handler around a function that is executed, not recorded.

        direct(h)(f)(x) = y              direct(h, s)(f)(x) = (s', y)
        direct(h, s)(f)(x) = handle(h, s)(f)(x)        for f without Python control flow on answers

    Python's ``if``, ``while`` and recursion may read the answers of ``ctl`` clauses, and answers may be Python objects,
    of effects whose ``result_type`` gives ``object``. The first ``resume`` goes on where the function was left; a later
    one executes the function again with the same answers so far. Both go on under the handlers and settings around
    ``resume``: ``grad(resume)`` and ``vmap(resume)`` transform the rest. The function must then depend on its arguments
    and on answers alone; references that it makes are its own. ``return resume.tail(y)`` is ``return resume(y)`` in
    constant memory. In a loop of known length a ``ctl`` clause that declares its ``support`` is crossed as by
    ``handle``: what follows the loop is executed in lanes, one for each choice that its carry remembers. In other
    loops, lanes and branches by traced values, whose bodies are programs, an operation with a ``ctl`` or ``final``
    clause is refused.

    Args:
        replay: execute the function again for the first resumption too, as without the package ``greenlet``, which the
            extra ``handlax[direct]`` installs. n resumptions take n**2 time.

    Raises: CannotCross: see above. BadCall: a second execution performs other operations than the first.
    Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009).

    >>> import handlax as hx
    >>> @hx.effect
    ... class Flip:
    ...     def result_type(op):
    ...         return hx.ArrayType((), "bool")
    >>> def tosses():
    ...     n = 1
    ...     while n < 3 and hx.perform(Flip()):
    ...         n += 1
    ...     return n
    >>> both = hx.handler({Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda n: [n])
    >>> hx.direct(both)(tosses)()
    [3, 2, 1]
    """
    return DirectInstallation(handle(handler, state).handler, state, replay)


def loop(lower: int, upper: int, body_fun: Callable[[int, C], C], init_val: C) -> C:
    """``for i in range(lower, upper): val = body_fun(i, val)``, from ``val = init_val``; the last ``val``.

    Directly inside of ``direct(h)`` a later resumption executes the function again from the iteration that it resumes
    in, so that n resumptions do not take n**2 time. Elsewhere it is the plain loop: inside of another handler the
    state that this had at the iteration would be lost.
    """
    run = STACK.get()
    activation = run.activation if isinstance(run, DirectRun) else None
    if activation is None or not activation.handled.logs:
        for i in range(lower, upper):
            init_val = body_fun(i, init_val)
        return init_val
    start, first, val = activation.at, lower, init_val
    if start < len(activation.log):
        entry = activation.log[start]
        if type(entry) is not Iteration:
            raise other_performed("loop: the function was in a loop", entry)
        first, val = entry.i, copied(entry.carry)
        activation.go_under(entry.under)
    else:
        activation.log.append(Iteration(lower, copied(init_val), activation.under))
    activation.at += 1
    for i in range(first, upper):
        val = body_fun(i, val)
        if activation.at == len(activation.log):  # what the iteration logged is not needed any more
            activation.log = [*activation.log[:start], Iteration(i + 1, copied(val), activation.under)]
            activation.at = start + 1
    return val
