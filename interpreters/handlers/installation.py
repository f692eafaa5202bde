"""One installation of a user's handler.

While a clause is evaluated the stack is the one outside its handler, so ``perform`` in it forwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, CannotCross, HandlaxError, UnhandledEffect
from ...effects.base.frozen_values import Value
from ...effects.base.stack import STACK, Run, current, inside, installed, runs
from ...effects.base.wrapping import wraps
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program
from ..core.body_transform import BodyTransformer, cross, transform_body
from ..core.loop_rotation import rotate, rotate_within
from ..core.record import Record
from ..core.solver_state import cross_solver
from ..core.state_flow import STATELESS, StateFlow
from ..differentiation.linear_rules import cross_linear
from .answer_conversion import fit_answer
from .early_exit import Abort
from .handler import ClauseKind, Handler, check_arity, check_returns, final
from .merged_lanes import UnmergedLanes
from .open_log import OpenLog
from .state_movements import CarryMovement, leaves_of, merge
from .static_tally import tally_bodies, weight_of


class _NoState:
    """The type of ``NO_STATE``, which marks a handler without state; None is a state like any other."""

    def __repr__(self) -> str:
        return "no state"

    def __reduce__(self) -> str:  # there is one
        return "NO_STATE"


NO_STATE = _NoState()


class Refusal(Value):
    """Raises CannotCross for a ``ctl`` or ``final`` clause inside the derivative or batching rule named ``rule``."""

    rule: str

    def __call__(self, run: HandlerRun, op: Operation, clause: Any, operands: tuple[Any, ...]) -> Any:
        """Raises: CannotCross."""
        does = "ends the program" if isinstance(clause, final) else "takes the rest of the program"
        raise CannotCross(
            f"{self.rule}: the rule performs {op.name}, whose clause {does}, which a rule cannot.",
            hint="perform it before or after the function; a clause that ends may also be called by a function and "
            "its jvp or forward rule alike.",
        )


class HandlerRun(BodyTransformer):
    """One installation of a user's handler, with its current state.

    It answers operations that have a clause, crosses higher-order operations whose bodies perform such operations, see
    ``core.body_transform``, and forwards all others.
    """

    __slots__ = ("handler", "clauses", "current", "by_kind", "plain", "changing")
    owns_boxes = False

    def __init__(
        self, outer: Run, handler: Handler, state: Any, site: tuple[Any, int] | None = None, by_kind: Any = None
    ):
        super().__init__(outer, handler.label, site)
        self.handler = handler
        self.clauses = handler.table
        self.current = state  # or ``UnmergedLanes``
        self.by_kind = by_kind  # evaluates a ClauseKind, (run, op, clause, operands) -> answer; None in direct mode
        self.changing = False  # its state was read and is to be written
        # each clause answers once, and takes the operands
        self.plain = not (handler.tallies or handler.resumes or handler.aborts or handler.scopes)

    def merged_state(self) -> Any:
        """The current state, after the states of lanes that are not merged yet are merged by a loop."""
        if type(self.current) is UnmergedLanes:
            lanes = self.current
            with inside(self.outer):
                merged = lanes.merged()
            if self.current is not lanes:  # another thread was faster
                return self.merged_state()
            self.current = merged
        return self.current

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        clause: Any = self.clauses.get(type(op))
        cell = self.cell
        site = cell.site
        if clause is None:
            if (op.bodied or (op.deferred and not self.handler.tallies)) and self.concerns(op):
                try:
                    cell.site = site or self.labelled_site()
                    return self.cross(op, operands)
                finally:
                    cell.site = site
            clause = self.handler.otherwise
            if clause is None or not self.handler.over(op):
                return self.outer.answer(op, operands)
        if self.ended:
            raise self.has_ended(op)
        stateful = self.current is not NO_STATE
        around, arguments = STACK.get(), operands
        if stateful:
            self.claim(op)
        try:
            STACK.set(self.outer)
            if site is None:
                cell.site = self.labelled_site()
            if not self.plain:
                if self.handler.tallies:
                    weight = weight_of(clause, op, [x.type for x in operands])
                    self.current = self.handler.moves.then(self.current, weight)  # type: ignore[attr-defined]
                    return self.outer.answer(op, operands)
                if isinstance(clause, ClauseKind):
                    return self.by_kind(self, op, clause, operands)
                arguments = self.arguments(op, operands)
            before = self.current if type(self.current) is not UnmergedLanes else self.merged_state()
            if before is NO_STATE:
                y = clause(op, *arguments)
            else:
                state, y = pair(op, clause(before, op, *arguments))
                self.current = before.extended(state) if type(before) is OpenLog else state
            return fit_answer(op, operands, y)
        except (TypeError, AttributeError) as error:
            if not isinstance(error, HandlaxError):
                self.explain(op, clause, arguments)
            raise
        finally:
            cell.site = site
            if stateful:
                self.changing = False
            STACK.set(around)

    def arguments(self, op: Operation, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a clause takes after the effect: functions, each under this handler as what follows is, and operands."""
        arguments = clause_arguments(op, operands) if op.scopes else operands
        return (*[self.under(op, f) for f in arguments[: op.scopes]], *arguments[op.scopes :])

    def under(self, op: Operation, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function ``f`` of ``op`` under this handler: ``f(*xs)``, with a state ``f(s, *xs) -> (s, y)``."""
        stateful = self.current is not NO_STATE

        def handled(*args: Any) -> Any:
            if stateful and not args:
                raise BadCall(
                    f"{op.name}: under a handler with a state a function is called with the state first, got no "
                    "arguments.",
                    hint="state, y = body(state, *xs).",
                )
            state, xs = (args[0], args[1:]) if stateful else (NO_STATE, args)
            run = HandlerRun(current(), self.handler, state, self.site)
            with installed(run):
                y = f(*xs)
            return (run.merged_state(), y) if stateful else y

        return wraps(f)(handled)

    def claim(self, op: Operation) -> None:
        """Claim the state until it is written. Raises: BadCall: another thread, in a copy of this context, has it."""
        if self.changing:
            raise BadCall(
                f"{op.name}: two threads at once perform under {self.label}: one change of its state would be lost.",
                hint="install it in each thread, and combine the states; or let the threads take turns.",
            )
        self.changing = True

    def has_ended(self, op: Operation) -> UnhandledEffect:
        """The error for what is performed after the end of the function or block that this run handles."""
        return UnhandledEffect(
            f"{op.name}: it is performed under {self.label}, whose function or block has ended.",
            hint="what outlives it, such as a generator, a callback or a copied context, performs nothing, or installs "
            "a handler of its own.",
        )

    def explain(self, op: Operation, clause: Any, arguments: tuple[Any, ...]) -> None:
        """Raise a better error for a TypeError in a clause: BadCall for its signature, StateTypeError for its state."""
        stateful = self.current is not NO_STATE and not self.handler.tallies
        check_arity(op, clause, [getattr(x, "type", "body") for x in arguments], stateful)
        if stateful and type(self.handler.moves) in (CarryMovement, merge):
            leaves_of(self.merged_state())

    def concerns(self, op: Any) -> bool:
        """Whether a body, or a deferred rule, may perform an operation that is answered here."""
        return op.deferred or any(map(self.answers_in, op.bodies))  # what a deferred rule performs is not known yet

    def answers_in(self, program: Program) -> bool:
        """Whether a program may perform an operation that is answered here."""
        if any([kind in self.clauses or kind.deferred for kind in program.operations]):
            return True
        return self.handler.otherwise is not None and self.by_default_in(program)

    def by_default_in(self, program: Program) -> bool:
        """Whether a program, or a body in it, performs an operation that ``otherwise`` answers."""
        seen, todo, over = {id(program)}, [program], self.handler.over
        while todo:
            for op in todo.pop().ops:
                if not op.bodied and over(op):
                    return True
                bodies: Sequence[Program] = op.bodies if op.bodied else ()  # type: ignore[attr-defined]
                new = [body for body in bodies if id(body) not in seen]
                seen.update(map(id, new))
                todo += new
        return False

    def sees(self, op: Any) -> bool:
        """Whether a clause answers the operation, or may answer what its bodies or its deferred rule perform."""
        if type(op) in self.clauses:
            return True
        if op.bodied or op.deferred:
            return self.concerns(op)
        return self.handler.otherwise is not None and self.handler.over(op)

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer a higher-order operation, or an operation with a deferred rule, that this handler concerns."""
        if self.ended:
            raise self.has_ended(op)
        if op.bodied and op.tests and not self.handler.tallies and self.handles_in(op.tests[0]):
            with inside(self.outer):
                return (rotate_within if self.forwards_in(op) else rotate)(self, op, operands)
        stateful = self.current is not NO_STATE
        around = STACK.get()
        if stateful:
            self.claim(op)
        try:
            STACK.set(self.outer)
            if self.handler.tallies:
                moves: Any = self.handler.moves
                self.current = moves.then(self.current, tally_bodies(self.handler, op, operands))
                return self.outer.answer(op, operands)
            if not op.bodied:
                return cross_linear(self, op, operands)
            return (cross_solver if op.solves and stateful else cross)(self, op, operands)
        finally:
            if stateful:
                self.changing = False
            STACK.set(around)

    def handles_in(self, test: Program) -> bool:
        """Whether the test of a loop performs an operation that has a clause here, so that it may change the state."""
        if any([kind in self.clauses for kind in test.operations]):
            return True
        return self.handler.otherwise is not None and self.current is not NO_STATE and self.by_default_in(test)

    def forwards_in(self, op: HigherOrder) -> bool:
        """Whether the test of a loop performs effects that this handler forwards."""
        (test,), flow = op.tests, self.flow(op)
        left = transform_body(self, test, [None] * len(test.in_types), None, flow, flow.inner_types()).program.effects
        return any([not isinstance(effect, (Axis, Abort)) for effect in left])

    @property
    def lifts(self) -> bool:
        return compiled_apart(self.outer)

    def fresh(self, outer: Run) -> HandlerRun:
        return HandlerRun(outer, self.handler, self.current, None, self.by_kind)

    def restrict(self, rule: str, body: Program | None) -> None:
        """Refuse in a deferred rule clauses that resume, and those that end the program unless ``body`` may."""
        kinds = set() if body is None else body.operations
        may_end = any([isinstance(self.clauses.get(kind), final) for kind in kinds])
        if (self.handler.resumes or self.handler.aborts) and not may_end:
            self.by_kind = Refusal(rule)

    def takes_bodies(self, op: Any) -> bool:
        return self.current is NO_STATE or super().takes_bodies(op)

    def flow(self, op: HigherOrder) -> StateFlow:
        if self.current is NO_STATE:
            return STATELESS
        flow = self.handler.moves.flow(self, op)
        if op.runs == "mesh" and flow.varying is None:
            raise CannotCross(
                f"{op.name}: the state of {self.label} cannot cross it: devices have no order in which to hand it on.",
                hint="handle it inside: shard_map(hx.handle(h, state)(f), ...), and combine states by collectives; or "
                "declare moves=hx.append, hx.merge or hx.split.",
            )
        return flow


def compiled_apart(outer: Run) -> bool:
    """Whether what is performed under ``outer`` is compiled by itself, not as a part of a function that is traced.

    Numbers that clauses bring are then operands, which a compiled program takes anew in each call, not literals.
    """
    traced = [run for run in runs(outer) if isinstance(run, Record) and run.records_everything and run.literals is None]
    return not traced


def clause_arguments(op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a clause takes after a scoped effect: its functions, and the operands."""
    arguments = op.clause_arguments(operands)
    if not op.batched:
        return arguments
    return (*[_shared_by_lanes(op, f) for f in arguments[: op.scopes]], *arguments[op.scopes :])


def _shared_by_lanes(op: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, a function of ``op`` that computes all lanes.

    Raises, when called: CannotCross: a handler that the clause installed may end it for one lane, and so for all.
    """
    alone = [type(effect) for effect in op.effects if getattr(effect, "vmap", None) == "per_lane"]
    clause = current()

    def shared(*xs: Any) -> Any:
        within = [run for run in takewhile(lambda run: run is not clause, runs()) if isinstance(run, HandlerRun)]
        answered = any([run.handler.otherwise or kind in run.clauses for run in within for kind in alone])
        if answered and any([run.handler.aborts for run in within]):
            raise CannotCross(
                f"{op.name}: its function computes all lanes of a vmap, and a final clause inside of its clause would "
                "end it for all of them where one lane ends.",
                hint="declare @hx.effect(vmap='per_lane'), by which each lane is executed alone; or handle it inside: "
                "vmap(hx.handle(h)(f)).",
            )
        return f(*xs)

    return wraps(f)(shared)


def pair(op: Operation, answer: Any) -> tuple[Any, Any]:
    """The result of a clause of a handler with state, ``(state, answer)``. Raises: BadArgument: it is no pair."""
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    returned = f"a tuple of {len(answer)}" if isinstance(answer, tuple) else type(answer).__name__
    raise BadArgument(
        f"{op.name}: the clause of a handler with a state must return (state, answer), got {returned}.",
        hint="a handler without state is installed by hx.handle(h), without a second argument.",
    )


def final_answer(handler: Handler, state: Any, y: Any) -> Any:
    """The result of a handled function whose body returned ``y`` with this state: ``returns``, else y or (state, y).

    Raises: BadCall: ``returns`` takes other arguments.
    """
    stateful = state is not NO_STATE
    if handler.returns is None:
        return (state, y) if stateful else y
    try:
        return handler.returns(state, y) if stateful else handler.returns(y)
    except TypeError:
        check_returns(handler.returns, stateful)
        raise
