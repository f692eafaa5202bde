"""Early exit: a program that performs ``Abort`` is rewritten into one that returns a flag and a payload instead.

    with_exit_flag(p)  :  inputs of p -> (results of p, payload of the abort, whether it aborted)

The program is cut after each equation that may abort. Every segment but the first is executed in a branch, only if no
segment before it aborted: a flat chain of guards. So is the body of a loop. A ``while`` also tests the flag, so it ends
at the abort. Lanes become a loop, so that the first one aborts. A function with a custom rule keeps it: its rule is
rewritten like its body (``ExitingDerivative``, ``ExitingLanes``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross, TreeMismatch
from ...effects.base.stack import at_site, current
from ...effects.control.branches import Cond
from ...effects.control.recorded_bodies import diverging, with_types
from ...effects.core.arrays import as_array
from ...effects.core.columns import zeros_like
from ...effects.core.named_axes import Axis
from ...effects.core.operation import effect
from ...effects.core.varying import vary
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_not
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import Program, bind, derived_once, interpret, perform_equations
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import int32, is_inexact
from ..analysis.liveness import last_uses
from ..batching.batching_rules import BatchingRule
from ..core.record import record
from ..differentiation.jvp_rules import PERFORMED, DerivativeRule
from .answer_conversion import as_result
from .without_rule import without_rule


# ends the program, with the operands as its results
@effect(vmap="per_lane", diff="stop")
class Abort:
    by: str  # name of the operation whose clause ends it
    tree: Any  # structure of its operands

    def result_type(op, *answer):
        return ()


class Payload(NamedTuple):
    """The types and the structure of the value that every abort of a program must give: those of its results."""

    types: tuple[ArrayType, ...]
    tree: Any

    def status(self) -> list[Any]:
        """Payload and flag before an abort."""
        return [*_zeros(self.types), as_array(False)]


def with_exit_flag(program: Program, tree: Any) -> Program:
    """The program that gives results, of structure ``tree``, payload and flag; the payload has the results' types.

    Without an abort the payload is zero; after one the results have no meaning.
    Raises: TreeMismatch, DTypeMismatch: what an abort gives does not fit.
    """
    return _with_exit_flag(program, Payload(program.out_types, tree))


@derived_once
def _with_exit_flag(program: Program, payload: Payload) -> Program:
    def flat(*xs: Any) -> list[Any]:
        env = bind(program, xs)
        status = payload.status()
        for segment in _segments(program):
            perform = _perform_guarded if segment.first else _perform
            status = perform(program, env, segment, payload, status)
        outs = zip([env[n] for n in program.outs], program.out_types)
        return [*[zeros_like(t) if y is None else y for y, t in outs], *status]  # None: after an unconditional abort

    return record(flat, program.in_types, program.name, "")


class _Segment(NamedTuple):
    """Equations ``first`` to ``last``, of which only the last may abort. ``number``: of their first result.

    ``live``: the numbers of their results that later segments, or the results of the program, use.
    """

    first: int
    last: int
    number: int
    live: list[int]


def _segments(program: Program) -> list[_Segment]:
    """The segments of a program; those after an equation that always aborts are left out."""
    end = len(program.ops)
    last = last_uses(program)
    starts = program.starts()
    segments = []
    first = 0
    for i, op in enumerate(program.ops):
        always = isinstance(op, Abort)
        if i + 1 == end or always or (op.bodied and _may_abort(op)):
            live = [n for n in range(starts[first], starts[i + 1]) if last[n] > i]
            segments.append(_Segment(first, i, starts[first], live))
            first = i + 1
        if always:
            break
    return segments


def _zeros(types: Sequence[ArrayType]) -> list[Any]:
    return [zeros_like(t) for t in types]


def _perform(program: Program, env: list[Any], segment: _Segment, payload: Payload, status: list[Any]) -> list[Any]:
    """Perform the equations of a segment, and set their results in ``env``; payload and flag after it."""
    last = segment.last
    op: Any = program.ops[last]
    aborts = isinstance(op, Abort) or (op.bodied and _may_abort(op))
    number = perform_equations(program, env, segment.first, last if aborts else last + 1, segment.number)
    if not aborts:
        return status
    xs = tuple([env[n] for n in program.args[last]])
    with at_site(program.sites[last]):
        if isinstance(op, Abort):
            return [*_as_payload(op, xs, payload), as_array(True)]
        results = _higher_order(op, xs, payload)
    count = len(program.types[last])
    env[number : number + count] = results[:count]
    return results[count:]


def _perform_guarded(
    program: Program, env: list[Any], segment: _Segment, payload: Payload, status: list[Any]
) -> list[Any]:
    """Perform a segment in a branch that is executed if the flag is False; otherwise its results are zeros."""
    types = [program.type_of(n) for n in segment.live]

    def rest() -> list[Any]:
        after = _perform(program, env, segment, payload, status)
        return [*[env[n] for n in segment.live], *after]

    results = _branch(status[-1], lambda: [*_zeros(types), *status], rest)
    for n, y in zip(segment.live, results):
        env[n] = y
    return results[len(types) :]


def _may_abort(op: Any) -> bool:
    return any([_aborts(body) for body in op.bodies])


def _aborts(program: Program) -> bool:
    kinds: Any = program.operations
    return Abort in kinds


def _aborted_by(op: Any) -> str:
    """The names of the operations whose clauses end the program in a body."""
    names = {each.by for body in op.bodies for each in body.effects if isinstance(each, Abort)}
    return ", ".join(sorted(names))


def _as_payload(op: Any, xs: Sequence[Any], payload: Payload) -> list[Any]:
    """The operands of an abort, converted to the payload's types. Raises: TreeMismatch, DTypeMismatch."""
    if op.tree != payload.tree:
        raise TreeMismatch(
            f"{op.by}: a final clause must give what the handled function gives, {payload.tree}, got {op.tree}.",
            hint="let returns= and the clause give the same structure, such as (ok, value).",
        )
    return [as_result(op.by, x, t, "what the handled function gives") for x, t in zip(xs, payload.types)]


def _branch(flag: Any, ended: Callable[[], list[Any]], rest: Callable[[], list[Any]]) -> list[Any]:
    """A ``Cond``: the results of ``ended`` if the flag is True, else those of ``rest``."""
    programs = [record(lambda: rest(), (), "rest", ""), record(lambda: ended(), (), "ended", "")]
    varying = flag.type.varying.union(*[t.varying for program in programs for t in program.out_types])
    bodies, captured = close_all(programs)
    bodies = tuple([with_types(body, [t.along(varying) for t in body.out_types]) for body in bodies])
    chosen = tuple(diverging(bodies, flag.type.varying))
    inputs = [vary(x, flag.type.varying) for x in captured]
    return list(current().answer(Cond(chosen, len(captured)), (convert(flag, int32), *inputs)))


def _higher_order(op: Any, xs: Sequence[Any], payload: Payload) -> list[Any]:
    """Results, payload and flag of an operation with a body that may abort."""
    loop = op.in_order()
    if loop is None:
        raise CannotCross(
            f"{op.name}: the clause of {_aborted_by(op)} ends the program, and its lanes are in no order.",
            hint="handle it inside, vmap(hx.handle(h)(f)) or shard_map(hx.handle(h)(f), ...), or with known lengths.",
        )
    op = loop
    if op.scopes and not op.passes_on:
        raise op.computed_with(f"the clause of {_aborted_by(op)}, which ends the program,")
    if not (op.prunes or op.deferred or op.scopes):  # derivatives of its own results have no place for a payload
        op, xs = without_rule(op, xs, f"the clause of {_aborted_by(op)} ends the program", current().cell.site)
    selects, shared, carry, each = op.groups(xs)
    if not op.loops:
        bodies, captured = close_all([_with_exit_flag(body, payload) for body in op.bodies])
        rules = {"rule": _exiting(op.rule, len(captured), payload)} if op.deferred else {}
        new = op.with_bodies(bodies, shared=op.shared + len(captured), **rules)
        return list(current().answer(new, (*selects, *captured, *shared, *carry, *each)))
    types, functions = _loop_functions(op, payload)
    closed, captured = close_all([record(f, types, op.name, "") for f in functions])
    status = payload.status()
    end = op.carry + len(status)
    new = op.with_bodies(closed, shared=op.shared + len(captured), carry=end)
    results = list(current().answer(new, (*captured, *shared, *carry, *status, *each)))
    carried, status, outs = _split_at(results, op.carry, end)
    return [*carried, *outs, *status]


def _loop_functions(op: Any, payload: Payload) -> tuple[list[ArrayType], list[Callable[..., list[Any]]]]:
    """The test, of a ``while``, and the body of a loop that carries payload and flag too; the types of their inputs."""
    body = op.main[0]
    first, last = op.shared, op.shared + op.carry
    status_types = [*payload.types, as_array(False).type]
    inner = _with_exit_flag(body, payload)

    def step(*values: Any) -> list[Any]:
        shared, carry, status, each = _split_at(values, first, last, last + len(status_types))
        out_types = body.out_types[op.carry :]

        def rest() -> list[Any]:
            results = interpret(inner, [*shared, *carry, *each])
            return [*results[: op.carry], *results[len(body.outs) :], *results[op.carry : len(body.outs)]]

        return _branch(status[-1], lambda: [*carry, *status, *_zeros(out_types)], rest)

    def test(*values: Any) -> list[Any]:
        ended, again = values[-1], lambda: list(interpret(op.bodies[0], values[:last]))
        if any([not isinstance(effect, Axis) for effect in op.bodies[0].effects]):  # after the end none is performed
            return _branch(ended, lambda: [as_array(False)], again)
        return [bitwise_and(again()[0], bitwise_not(ended))]

    types = [*body.in_types[:last], *status_types, *body.in_types[last:]]
    return types, [*([test] if op.runs == "until" else []), step]


def _split_at(items: Sequence[Any], *indices: int) -> list[list[Any]]:
    """``items`` cut at these indices: before the first, between consecutive ones, and from the last on."""
    bounds = [0, *indices, len(items)]
    return [list(items[a:b]) for a, b in itertools.pairwise(bounds)]


# Custom rules of functions that may abort


def _exiting(rule: Any, extra: int, payload: Payload) -> Any:
    """The rule for a body with exit flag, whose first ``extra`` operands are captured values."""
    kind = ExitingLanes if isinstance(rule, BatchingRule) else ExitingDerivative
    return kind(rule, extra, payload)


class ExitingDerivative(DerivativeRule):
    """A derivative rule of a function that may abort: results, payload and flag, and their tangents.

    The tangents of results are the rule's; that of the payload is the derivative of what the rule performs.
    """

    inner: Any
    extra: int
    payload: Payload

    def states(self, count: int) -> list[int]:
        return [self.extra + i for i in self.inner.states(count - self.extra)]

    def differentiable(self) -> bool:
        return any([is_inexact(t.dtype) for t in self.payload.types]) or bool(self.inner.differentiable())

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values, dvalues = operands[self.extra :], tangents[self.extra :]
        given = [dx for dx in dvalues if dx is not None]
        dys: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            dxs = iter(xs[len(values) :])
            ys, returned = self.inner.within(xs[: len(values)], [None if dx is None else next(dxs) for dx in dvalues])
            dys[:] = returned
            return [*ys, *[dy for dy in returned if dy is not None and dy is not PERFORMED]]

        program = record(flat, [x.type for x in (*values, *given)], "rule", "")
        outs = interpret(_with_exit_flag(program, self.payload), [*values, *given])
        ys, nonzero, status = _split_at(outs, len(dys), len(program.outs))
        nonzero_tangents = iter(nonzero)
        tangents = [dy if dy is None or dy is PERFORMED else next(nonzero_tangents) for dy in dys]
        return [*ys, *status], [*tangents, *[PERFORMED] * len(status)]


class ExitingLanes(BatchingRule):
    """A batching rule of a function that may abort; the rule, which computes all lanes at once, does not."""

    inner: Any
    extra: int
    payload: Payload

    def varies(self, mapped: Sequence[bool]) -> bool:
        return bool(self.inner.varies(mapped[self.extra :]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        ys, lanes = self.inner(size, mapped[self.extra :], operands[self.extra :])
        status = self.payload.status()
        return [*ys, *status], [*lanes, *[False] * len(status)]
