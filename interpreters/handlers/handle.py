"""Installing a user's handlers around a function or a ``with`` block.

    handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)
    (a @ b)(f) = a(b(f))             compose(a, b, c) = a @ b @ c
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ...effects.base import config
from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadArgument, BadCall, CannotCross, shortened
from ...effects.base.immutables import OwnCopy
from ...effects.base.later_layers import displayed
from ...effects.base.source_locations import user_site
from ...effects.base.stack import BASE, STACK, Run, grounded, installed, push, runs
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.value_identity import array_key, leaf_key
from ...effects.base.wrapping import name_of, unwound, wraps
from ...effects.core.arrays import ConcreteArray, as_array
from ...effects.core.jax_contexts import make_user_context
from ...effects.trees import pytrees
from ..core.record import Record
from ..references.reference import References
from .handler import Handler
from .installation import NO_STATE, HandlerRun, final_answer
from .resumable import run_reified

P = ParamSpec("P")
T = TypeVar("T")


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


def copied(tree: T) -> T:
    """The tree with lists, dictionaries and NumPy arrays of its own: a change in place changes no other."""
    if not isinstance(tree, (tuple, list, dict, np.ndarray)):
        return tree
    return pytrees.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree)


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


def _state_key(state: Any) -> tuple[Any, ...]:
    """The key of an initial state: its structure, numbers and arrays by type and bits, other leaves by identity."""
    leaves, structure = pytrees.flatten(state)
    return structure, *[array_key(x) if isinstance(x, ConcreteArray) else leaf_key(x) for x in leaves]


INSTRUMENT = make_user_context()
"""In a scope, ``(handler, site) -> handler``: what is installed in place of a handler, such as one that is watched."""


class Composable(OwnCopy):
    """What is called on a function, and composes by ``@``: ``(a @ b)(f) == a(b(f))``, also with transformations."""

    __slots__ = ()
    __call__: Callable[..., Callable[..., Any]]  # a function with handlers around it

    def __matmul__(self, inner: Any) -> Composable:
        return compose(self, inner) if callable(inner) else NotImplemented

    def __rmatmul__(self, outer: Any) -> Composable:
        return compose(outer, self) if callable(outer) else NotImplemented


@displayed
class Installation(Composable):
    """A handler with its initial state: call it on a function, ``handle(h)(f)``, or enter it as a ``with`` block.

    A value: each call and each block starts from the same state. Two are equal if handlers and states are; states are
    compared by type and bits.
    """

    __slots__ = ("handler", "state", "unroll")
    _guard = ("installations", "handle(h, state) makes another one.")
    handler: Handler
    state: Any
    unroll: bool

    def __init__(self, handler: Handler, state: Any, unroll: bool = False):
        object.__setattr__(self, "handler", handler)
        object.__setattr__(self, "state", _unchangeable(state))
        object.__setattr__(self, "unroll", unroll)

    def _parts(self) -> tuple[Any, ...]:
        return (self.handler, _state_key(self.state), self.unroll)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Installation) and type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        state = "" if self.state is NO_STATE else f", {self.state!r}"
        return f"handle({self.handler}{state})"

    def installed(self, site: Any) -> Handler:
        """The handler that a run of this installation at ``site`` has."""
        contexts = config.CONFIG.get().settings.user_contexts
        return contexts[INSTRUMENT](self.handler, site) if contexts and INSTRUMENT in contexts else self.handler

    def __call__(self, f: Callable[P, Any]) -> Callable[P, Any]:
        if not callable(f):
            raise BadArgument(f"handle: a function is needed, got {type(f).__name__}.", hint="hx.handle(h)(f)(x).")

        @wraps(f)
        @unnamed_boundary
        def handled(*args: P.args, **kwargs: P.kwargs) -> Any:
            site = user_site(2)
            handler, state = self.installed(site), copied(self.state)
            if handler.resumes or handler.aborts:
                return on_deep_stack(run_reified, handler, state, f, args, kwargs, site, self.unroll)
            run = HandlerRun(landing(STACK.get()), handler, state, site)
            with installed(run), grounded(run):
                y = on_deep_stack(f, *args, **kwargs)
            need_executed(handler, f, y)
            return final_answer(handler, run.merged_state(), y)

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
        run = BlockRun(top, self.handler, copied(self.state), user_site(2))
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


def handle(handler: Handler, state: Any = NO_STATE, *, unroll: bool = False) -> Installation:
    """Install a handler around a function.

        handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)

    The order of handlers is their meaning: in ``handle(h)(grad(f))`` the clauses answer what the rules of ``grad``
    perform, ``grad(handle(h)(f))`` differentiates what the clauses perform. A handler with a ``ctl`` or ``final``
    clause records the function first: Python's ``if`` then has no values to branch on. Outside of tracing it also works
    as a block: after ``with handle(h, s) as run: ...`` the state is ``run.current``, and ``handle(h, s)`` is as before.

    A ``ctl`` clause crosses a loop of known length by tables of the answers after each iteration, if it declares its
    ``support``, or if its operation has no result. What the loop carries may depend on the choices of the last
    iterations; if these are l of n values, an iteration evaluates its body for n**l carries, and compiles it l + 1
    times. Then the handler has no state, and what is performed in and after the loop no effects for handlers further
    out.

    Args:
        unroll: loops of known length are unrolled instead, which any ``ctl`` clause crosses: T iterations are
            interpreted T times, and where a clause resumes k times in each, the rest of the program k**T times.
    """
    if not isinstance(handler, Handler):
        raise BadArgument(
            f"handle: a handler is needed, got {type(handler).__name__}.", hint="make one with hx.handler({...})."
        )
    return Installation(handler, state, unroll)


@displayed
class Composition(Composable):
    """Installations and transformations around each other, outermost first: ``compose(a, b)(f) == a(b(f))``.

    A value: equal if its members are. As a ``with`` block it enters the outermost installation first, and gives their
    runs in this order.
    """

    __slots__ = ("members",)
    _guard = ("compositions", "compose(...) and @ make another one.")
    members: tuple[Any, ...]

    def __init__(self, members: tuple[Any, ...]):
        self._fill(members=members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self.members == other.members

    def __hash__(self) -> int:
        return hash((Composition, self.members))

    def __call__(self, f: Callable[P, Any]) -> Callable[P, Any]:
        for member in reversed(self.members):
            f = member(f)
        return f

    def __enter__(self) -> tuple[BlockRun, ...]:
        for member in self.members:
            if not isinstance(member, Installation):
                raise CannotCross(
                    f"compose: a with block is no function, which {name_of(member)} needs, got {self}.",
                    hint="put the block into a function: composition(f).",
                )
        with ExitStack() as opened:
            block = tuple([opened.enter_context(member) for member in self.members])
            opened.pop_all()
        return block

    def __exit__(self, *error: Any) -> None:
        with ExitStack() as closing:  # in reverse, also after an error
            for member in self.members:
                closing.callback(member.__exit__, *error)

    def __repr__(self) -> str:
        shown = [repr(each) if isinstance(each, Installation) else name_of(each) for each in self.members]
        return " @ ".join(shown) if len(shown) > 1 else f"compose({', '.join(shown)})"


def compose(*members: Any) -> Composable:
    """Installations, compositions and transformations around each other, outermost first; ``a @ b`` of two.

        compose(a, b)(f) == a(b(f))              compose()(f) == f
        (a @ b) @ c == a @ (b @ c)               a @ compose() == a == compose() @ a

    Compositions are values: equal, with one hash, if their members are. A transformation is any function from
    functions to functions, such as ``jit``, or a ``functools.partial`` of one.

    Raises: BadArgument: a member is none of these.

    >>> import handlax as hx
    >>> twice = hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)})
    >>> counting = hx.handler({hx.operations.Sin: lambda n, op, x: (n + 1, hx.perform(op, x))})
    >>> stack = hx.compose(hx.jit, hx.handle(counting, 0)) @ hx.handle(twice)
    >>> stack
    jit @ handle(handler(Sin), 0) @ handle(handler(Sin))
    >>> stack(hx.numpy.sin)(0.5)
    (Array(1, dtype=int32, weak_type=True), Array(0.9588..., dtype=float32, weak_type=True))
    """
    flat: list[Any] = []
    for member in members:
        if not callable(member):
            raise BadArgument(
                f"compose: a member must be callable on functions, got {shortened(repr(member), 60)}.",
                hint="hx.handle(h, state) installs a handler h.",
            )
        flat += member.members if isinstance(member, Composition) else [member]
    return flat[0] if len(flat) == 1 and isinstance(flat[0], Installation) else Composition(tuple(flat))


@displayed
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
