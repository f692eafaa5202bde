"""One installation of a user's handler.

While a clause is evaluated the stack is the one outside its handler, so ``perform`` in it forwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, CannotCross, HandlaxError
from ...effects.base.frozen_values import Value
from ...effects.base.stack import STACK, Run, current, inside, installed
from ...effects.base.wrapping import wraps
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program
from ..core.body_transform import STATELESS, BodyTransformer, StateFlow, cross, transform_body
from ..core.loop_rotation import rotate, rotate_within
from ..core.solver_state import cross_solver
from ..differentiation.linear_rules import cross_linear
from .answer_conversion import fit_answer
from .early_exit import Abort
from .handler import ClauseKind, Handler, check_arity, final
from .merged_lanes import UnmergedLanes
from .open_log import OpenLog
from .state_movements import CarryMovement, leaves_of, merge
from .static_tally import tally_bodies, weight_of


class _NoState:
    """The type of ``NO_STATE``, which marks a handler without state; None is a state like any other."""

    def __repr__(self) -> str:
        return "no state"


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

    __slots__ = ("handler", "clauses", "current", "reified", "plain", "changing")
    owns_boxes = False

    def __init__(
        self, outer: Run, handler: Handler, state: Any, site: tuple[Any, int] | None = None, reified: Any = None
    ):
        super().__init__(outer, handler.label, site)
        self.handler = handler
        self.clauses = handler.table
        self.current = state  # or ``UnmergedLanes``
        self.reified = reified  # evaluates a ClauseKind, (run, op, clause, operands) -> answer; None in direct mode
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
        stateful = self.current is not NO_STATE
        around, arguments = STACK.get(), operands
        if stateful:
            self.begin(op)
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
                    return self.reified(self, op, clause, operands)
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
        arguments = op.clause_arguments(operands)
        return (*map(self.under, arguments[: op.scopes]), *arguments[op.scopes :])

    def under(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function ``f`` under this handler: ``f(*xs)``, with a state ``f(s, *xs) -> (s, y)``."""
        stateful = self.current is not NO_STATE

        def handled(*args: Any) -> Any:
            state, xs = (args[0], args[1:]) if stateful and args else (NO_STATE, args)
            run = HandlerRun(current(), self.handler, state, self.site)
            with installed(run):
                y = f(*xs)
            return (run.merged_state(), y) if stateful else y

        return wraps(f)(handled)

    def begin(self, op: Operation) -> None:
        """Claim the state until it is written. Raises: BadCall: another thread, in a copy of this context, has it."""
        if self.changing:
            raise BadCall(
                f"{op.name}: two threads at once perform under {self.label}: one change of its state would be lost.",
                hint="install it in each thread, and combine the states; or let the threads take turns.",
            )
        self.changing = True

    def explain(self, op: Operation, clause: Any, arguments: tuple[Any, ...]) -> None:
        """Raise a better error for a TypeError in a clause: BadCall for its signature, StateTypeError for its state."""
        stateful = self.current is not NO_STATE and not self.handler.tallies
        check_arity(op, clause, [getattr(x, "type", "body") for x in arguments], stateful)
        if stateful and type(self.handler.moves) in (CarryMovement, merge):
            leaves_of(self.merged_state())

    def concerns(self, op: Any) -> bool:
        """Whether a body, or a deferred rule, may perform an operation that has a clause here."""
        if self.handler.otherwise is not None or op.deferred:  # what a deferred rule performs is not known yet
            return True
        return any([kind in self.clauses or kind.deferred for body in op.bodies for kind in body.operations])

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer a higher-order operation, or an operation with a deferred rule, that this handler concerns."""
        if op.bodied and op.tests and not self.handler.tallies and self.handles_in(op.tests[0]):
            with inside(self.outer):
                return (rotate_within if self.leaves_in(op) else rotate)(self, op, operands)
        stateful = self.current is not NO_STATE
        around = STACK.get()
        if stateful:
            self.begin(op)
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
        handler = self.handler
        if handler.otherwise is None or self.current is NO_STATE:
            return False
        return any([op.bodied or handler.over(op) for op in test.ops])

    def leaves_in(self, op: HigherOrder) -> bool:
        """Whether the test of a loop performs effects that this handler forwards."""
        (test,), flow = op.tests, self.flow(op)
        left = transform_body(self, test, [None] * len(test.in_types), None, flow, flow.inner_types()).program.effects
        return any([not isinstance(effect, (Axis, Abort)) for effect in left])

    def fresh(self, outer: Run) -> HandlerRun:
        return HandlerRun(outer, self.handler, self.current, None, self.reified)

    def restrict(self, rule: str, body: Program | None) -> None:
        """Refuse in a deferred rule clauses that resume, and those that end the program unless ``body`` may."""
        kinds = set() if body is None else body.operations
        may_end = any([isinstance(self.clauses.get(kind), final) for kind in kinds])
        if (self.handler.resumes or self.handler.aborts) and not may_end:
            self.reified = Refusal(rule)

    def flow(self, op: HigherOrder) -> StateFlow:
        if self.current is NO_STATE:
            return STATELESS
        if op.runs == "mesh":
            raise CannotCross(
                f"{op.name}: the state of {self.label} cannot cross it: devices have no order in which to hand it on.",
                hint="handle it inside: shard_map(hx.handle(h, state)(f), ...), and combine states by collectives.",
            )
        return self.handler.moves.flow(self, op)


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
    """The result of a handled function whose body returned ``y`` with this state: ``returns``, else y or (state, y)."""
    if state is NO_STATE:
        return y if handler.returns is None else handler.returns(y)
    return (state, y) if handler.returns is None else handler.returns(state, y)
