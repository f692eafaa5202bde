"""Pages of what is known of programs: their text, costs, residuals, profile, and the handlers around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.wrapping import name_of
from ...effects.core.arrays import Array, ConcreteArray
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...interpreters.handlers.handle import Composition, Handlers, Installation
from ...interpreters.handlers.handler import Clause, ClauseKind, Handler
from ...interpreters.handlers.installation import NO_STATE
from ...interpreters.inspection.draw import Drawing
from ...interpreters.inspection.html import program_elements
from ...interpreters.inspection.outline import bytes_text, outlines
from ...interpreters.inspection.stepper import Stepper
from ...interpreters.inspection.stepper_prompt import shown
from ...interpreters.library.pure.cost_table import Costs
from ...interpreters.transformations.saved_residuals import Residual, Residuals
from ..inspection.memory_plan import MemoryPlan
from ..inspection.profile import Profile
from .page import Page, describe, note, preformatted, table, titled

EQUATIONS = 1000  # of a longer program so many equations are shown
FEW = 10          # so many numbers of an array in a state are shown


@describe.register
def _of_program(program: Program) -> Page:
    parts = outlines(program)
    return Page(parts[0].signature, [program_elements(parts, EQUATIONS)])


@describe.register
def _of_drawing(drawing: Drawing) -> Page:
    return describe(drawing.program)


@describe.register
def _of_stepper(stepper: Stepper) -> Page:
    return Page(f"Stepper of {stepper.program.name}", [shown(stepper, html=True)])


@describe.register
def _of_costs(costs: Costs) -> Page:
    tables = [table("l" + "r" * (len(head) - 1), head, rows, total=True) for head, *rows in costs.tables()]
    memory = costs.memory
    held = "" if memory is None else f", {bytes_text(memory.peak)} held at once"
    title = f"Costs: {costs.flops:,} flops, {bytes_text(costs.bytes)} read and written{held}"
    return titled(title, *tables, *map(note, sorted(costs.assumed)))


@describe.register
def _of_residuals(residuals: Residuals) -> Page:
    return titled(f"{_counted(len(residuals), 'residual')}, {bytes_text(residuals.bytes)}", _residual_table(residuals))


@describe.register
def _of_residual(residual: Residual) -> Page:
    return _of_residuals(Residuals((residual,)))


@describe.register
def _of_memory_plan(plan: MemoryPlan) -> Page:
    saved, budget, minimum = map(bytes_text, (plan.residuals.bytes, plan.budget, plan.minimum))
    repeated = f"{plan.recomputed:,} of {plan.flops:,} operations repeated"
    temporary = f"{bytes_text(plan.temporary_bytes)} of temporary values"
    title = f"Memory plan: {saved} of {budget} saved, at least {minimum}"
    return titled(title, note(f"{repeated}, {temporary}"), _residual_table(plan.residuals))


def _residual_table(residuals: Sequence[Residual]) -> str:
    rows = [(each.type, bytes_text(each.bytes), each.origin, each.users) for each in residuals]
    return table("lrll", ("type", "size", "what", "used by"), rows)


@describe.register
def _of_profile(profile: Profile) -> Page:
    title, *totals = profile.totals()
    rows = profile.rows()
    tables = [table("l" + "r" * (len(rows[0]) - 1), rows[0], rows[1:])] if rows else []
    reasons = [preformatted("\n".join(lines)) for lines in profile.reasons()]
    return titled(title, *map(note, totals), *tables, *reasons)


@describe.register
def _of_handler(handler: Handler) -> Page:
    return titled(repr(handler), _clause_table(handler))


@describe.register
def _of_installation(installation: Installation) -> Page:
    state = _state_text(installation)
    return titled(
        f"handle({installation.handler})", *[note(f"state {state}")] * bool(state), _clause_table(installation.handler)
    )


@describe.register
def _of_composition(composition: Composition) -> Page:
    rows = [
        (number, member.handler if isinstance(member, Installation) else name_of(member), _state_text(member))
        for number, member in enumerate(composition.members)
    ]
    return titled(f"{_counted(len(rows), 'member')}, outermost first", table("rll", ("", "member", "state"), rows))


@describe.register
def _of_handlers(handlers: Handlers) -> Page:
    rows = list(enumerate(handlers))
    shown = table("rl", ("", "handler"), rows) if rows else note("operations are evaluated")
    return titled(f"{_counted(len(rows), 'handler')} in force, innermost first", shown)


def _state_text(member: Any) -> str:
    """The state with which a member of a stack begins, large arrays by their types; empty without one."""
    if not isinstance(member, Installation) or member.state is NO_STATE:
        return ""
    return repr(pytrees.tree_map(_few_numbers, member.state))


class _TypeText(str):
    """A text that stands for an array in the text of a state, without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def _few_numbers(x: Any) -> Any:
    """A small array itself, any other as its type."""
    if not isinstance(x, Array):
        return x
    if isinstance(x, ConcreteArray) and x.is_deleted():
        return _TypeText(f"{x.type} deleted")
    return x if isinstance(x, ConcreteArray) and x.size <= FEW else x.type


def _clause_table(handler: Handler) -> str:
    """The clauses by operation, in the order of their names: the kind of each, and its function."""
    rows = [(kind.__name__, *_clause(each)) for kind, each in handler.clauses.items()]
    rows.sort()
    others = (("otherwise", handler.otherwise), ("returns", handler.returns))
    rows += [(name, *_clause(f)) for name, f in others if f is not None]
    return table("lll", ("clause for", "kind", "function"), rows)


def _clause(clause: Clause | ClauseKind) -> tuple[str, str]:
    """The kind of a clause, and the name of its function."""
    if isinstance(clause, ClauseKind):
        return type(clause).__name__, name_of(clause.f)
    return "function", name_of(clause)


def _counted(count: int, noun: str) -> str:
    """``1 handler``, ``2 handlers``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
