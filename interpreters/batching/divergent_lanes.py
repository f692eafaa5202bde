"""Branches and loops on which lanes diverge: a mapped index of a branch, a mapped test of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import BASE, current, inside, perform
from ...effects.control.recorded_bodies import may_part
from ...effects.core.columns import MASKED
from ...effects.core.named_axes import is_root
from ...effects.operations.elementwise.bitwise import bitwise_not
from ...effects.operations.elementwise.comparison import clamp, eq, gt, select_n
from ...effects.operations.reductions.reductions import ReduceOr
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.program import Program, bind, interpret
from ...effects.programs.program_cache import ProgramCache
from ..analysis.dependence import body_dependence
from ..core.body_transform import transform_body
from ..core.record import Record, record
from ..core.state_flow import RequiredSignature
from .taken_lanes import where_taken, while_taken

_STEPS = ProgramCache("while_any")
"""Bodies of a while loop whose lanes end at different iterations, by test, body and mapped operands."""


def all_branches(op: Any, operands: tuple[Any, ...], mapped: Sequence[bool] | None) -> tuple[Any, ...]:
    """Evaluate every branch, and select each result by the index. Operands: the index, then those of the branches.

    ``mapped``: the operands that differ from lane to lane; None where nothing differentiates the results. A branch is
    held where it is taken, but not one in which lanes meet: what others get there has derivatives by all lanes.
    """
    index, *xs = operands
    count = len(op.bodies)
    if count == 1:
        return interpret(op.bodies[0], xs)
    which = gt(index, 0) if count == 2 else clamp(0, index, count - 1)
    if mapped is None:
        results: list[Sequence[Any]] = [interpret(body, xs) for body in op.bodies]
    else:
        taken = [bitwise_not(which), which] if count == 2 else [eq(which, i) for i in range(count)]
        results = [_branch(body, yes, xs, mapped[1:]) for body, yes in zip(op.bodies, taken)]
    return tuple([op.of_lane(which, cases) for cases in zip(*results)])


def _branch(body: Program, taken: Any, xs: list[Any], mapped: Sequence[bool]) -> Sequence[Any]:
    if not may_part([body]):
        return interpret(where_taken(body, tuple(mapped), False), [taken, *xs])
    env, _ = _guarded(body, xs, taken, tuple(mapped))
    return [env[n] for n in body.outs]


def while_any(run: Any, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Iterate while the test of any lane holds; a lane whose test has failed keeps its carry."""
    test, body = op.bodies
    _, shared, carry, _ = op.groups(operands)
    fixed = [run.split(x) for x in shared]
    mapped = tuple([mark is not None for mark, _ in fixed])
    reversible = bool(op.slots)
    step = _STEPS.get((test, body, mapped, reversible), lambda: guarded_step(test, body, mapped, reversible))
    moving = [run.mapped_mark(t) for t in body.out_types]
    marks = [*[mark for mark, _ in fixed], *moving]
    transformed = [
        transform_body(run, test, marks, RequiredSignature([0])).program,
        transform_body(run, step, marks, RequiredSignature(moving)).program,
    ]
    (tests, steps), captured = close_all(transformed)
    any_test = record(lambda *xs: [perform(ReduceOr((0,)), interpret(tests, xs)[0])], tests.in_types, tests.name)
    parts = [*captured, *[part for _, parts in fixed for part in parts]]
    with inside(run.outer):
        carried = [run.force(x, mark) for x, mark in zip(carry, moving)]
        entering = [part for parts in carried for part in parts]
        loop = op.with_bodies((any_test, steps), shared=len(parts), carry=len(entering))
        results = iter(perform(loop, *parts, *entering))
    return tuple([run.box(mark, [next(results) for _ in parts]) for mark, parts in zip(moving, carried)])


def guarded_step(test: Program, body: Program, mapped: tuple[bool, ...], reversible: bool) -> Program:
    """A body that is applied if the test holds and else returns the carry; ``mapped``: the mapped shared operands.

    Of a loop that has a reverse mode the body may be undefined for lanes that have ended.
    """
    recorder = Record(BASE, "")
    inputs = recorder.inputs(body.in_types)
    with inside(recorder):
        (more,) = interpret(test, inputs)
        if reversible and not may_part([body]):
            body = where_taken(body, (*mapped, *[True] * (len(inputs) - len(mapped))), False)
            inputs, mapped = [more, *inputs], (True, *mapped)
        env, guarded = _guarded(body, inputs, more, mapped)
        first = len(mapped)
        ends = [_end(body, env, guarded, more, first + i, n) for i, n in enumerate(body.outs)]
        return recorder.freeze(ends, body.name)


def _guarded(body: Program, inputs: list[Any], more: Any, mapped: tuple[bool, ...]) -> tuple[list[Any], set[int]]:
    """Perform the equations of a body; an inner loop whose test is mapped continues only while ``more`` holds as well.

    A lane that has ended then does not prolong an inner loop, unless lanes meet there. Returns all values of the body
    by number, and the indices of those loops.
    """
    env = bind(body, inputs)
    lanes = [*mapped, *[True] * (len(inputs) - len(mapped)), *[False] * (len(env) - len(inputs))]
    number = len(inputs)
    guarded = set()
    cell = current().cell
    for i, (op, args, cell.site) in enumerate(zip(body.ops, body.args, body.sites.labelled_by(current().labeller))):
        operands, marks = [env[n] for n in args], [lanes[n] for n in args]
        loop: Any = op
        alone = op.bodied and loop.runs == "until" and not is_root(op) and not may_part(loop.bodies)
        if alone and body_dependence(loop).reached(marks).test:
            guarded.add(i)
            operands.insert(0, more)
            op = while_taken(loop)
        y = perform(op, *operands)
        for value in op.as_results(y):
            env[number], lanes[number] = value, any(marks)
            number += 1
    cell.site = None
    return env, guarded


def _end(body: Program, env: Sequence[Any], guarded: set[int], more: Any, before: int, after: int) -> Any:
    """The carry after an iteration: value ``after`` of the body where the test holds, else value ``before``, the old
    carry.

    A selection costs as much as the buffer that it selects. So where the body replaces one slice of the carry, only the
    slice is selected; and a guarded loop that starts from the old carry needs none: it returns its start unchanged.
    """
    old, new = env[before], env[after]
    definition = body.definition(after)
    if definition is not None:
        i, k = definition
        op: Any = body.ops[i]
        args = body.args[i]
        if i in guarded and args[op.shared + k] == before:
            return new
        if args and args[0] == before and MASKED.has(type(op)):
            return MASKED.find(type(op))(op, more, *[env[n] for n in args])
    return old if before == after else select_n(more, old, new)
