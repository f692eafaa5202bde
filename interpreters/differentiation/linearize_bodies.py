"""Linearization of operations with bodies: each body is linearized as a function is, over a record.

    linearize(op)(x) = op(x), (dx -> op'(x) dx)      known operations, and a rest that is linear

The body is interpreted once: jvp performs its primal operations on the record and its tangent operations on a tape over
that record, as it does outside of bodies. So the derivative is never written down as one program that is then split. In
a loop, which carries have a tangent is the least fixed point over the iterations. ``partial_eval_bodies`` assembles the
known operations and the rest.

Where a policy or an effect decides what is known, or the results need the whole derivative (``while``, lanes), the
operation is crossed by jvp, and the tape splits what jvp performs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.base import config
from ...effects.base.source_locations import Sites
from ...effects.base.stack import BASE, STACK, Run, inside
from ...effects.core.columns import JVP, zeros_like
from ...effects.core.named_axes import under
from ...effects.operations.elementwise.conversion import as_type
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Builder, Program, ResidualBuilder, interpret, set_out_types
from ...effects.programs.program_cache import ProgramCache
from ..analysis.dependence import Marks
from ..core.record import Record
from .jvp import Jvp
from .partial_eval import Tape, split_program
from .partial_eval_bodies import Assembly, BodyTypes, SplitOperation, SplitProgram, sources_of

_OPERATIONS = ProgramCache("linearize_operation")
"""Linearized operations with bodies, in two parts, by operation, operands that have a tangent and settings."""


class LinearizingJvp(Jvp):
    """Forward mode directly over a tape: an operation with bodies is linearized in one pass, where that is possible."""

    __slots__ = ()
    outer: Tape

    def fresh(self, outer: Run) -> Jvp:
        return Jvp(outer, self.label)

    def by_rule(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if not op.bodied or not self.in_one_pass(op, operands):
            return super().by_rule(op, operands)
        marks = tuple([x.run is self for x in operands])
        key = (op, marks, self.scope, config.current())
        linearized = _OPERATIONS.get(key, lambda: _linearize_operation(self, op, marks))
        values: list[Any] = []
        around = STACK.get()
        try:
            STACK.set(self.outer)
            for x, mark in zip(operands, linearized.operands):
                values += self.force(x, mark or None)
            results = iter(self.outer.perform_split(linearized.parts, values))
        finally:
            STACK.set(around)
        return tuple([self.pair(next(results), next(results) if mark else None) for mark in linearized.results])

    def in_one_pass(self, op: HigherOrder, operands: Sequence[Any]) -> bool:
        """Whether exactly the tangents of an operation are unknown, and no policy, effect or rule forbids one pass."""
        if op.runs not in ("once", "one", "loop") or not op.prunes or op.deferred or op.saves is not None:
            return False
        if op.effects or op.binds is not None or JVP.has(type(op)):
            return False
        if any([x.run is self for x in operands[: op.selects]]):
            return False
        tape = self.outer
        pairs = [self.unbox(x) for x in operands]
        return all([x.run is not tape and (dx is None or dx.run is tape) for x, dx in pairs])


class LinearizedOperation(NamedTuple):
    """An operation linearized for certain operands: ``operands`` and ``results`` mark those that have a tangent.

    ``parts`` takes each operand, then its tangent if it has one, and gives the results in the same way.
    """

    parts: SplitOperation
    operands: Marks
    results: Marks


class LinearizedBody(NamedTuple):
    """A body partitioned into primals and tangents; ``marks`` says which of its results have a tangent."""

    half: SplitProgram
    marks: Marks


def _linearize_operation(run: Jvp, op: HigherOrder, operand_marks: Marks) -> LinearizedOperation:
    """The linearization of an operation whose operands have a tangent where ``operand_marks``."""
    _, shared, moving, each = op.groups(operand_marks)
    while True:
        marks = (*shared, *moving, *each)
        bodies = [_linearize_body(run, body, marks) for body in op.bodies]
        reached = [any(column) for column in zip(*[body.marks for body in bodies])]
        grown = [a or b for a, b in zip(moving, reached)]
        if not op.loops or grown == moving:
            break
        moving = grown
    results = (*moving, *reached[op.carry :]) if op.loops else tuple(reached)
    halves = [
        new.half if new.marks == results else _linearize_body(run, body, marks, results).half
        for body, new in zip(op.bodies, bodies)
    ]
    types = BodyTypes(
        tuple(_with_tangents(op.bodies[0].in_types, op.bodies[0].in_types, marks)),
        op.shared + sum(shared), op.carry + sum(moving),
    )
    unknown, unknown_results = [tuple(_with_tangents([False] * len(m), [True] * len(m), m)) for m in (marks, results)]
    parts = Assembly(op, types, unknown, unknown_results, halves, False, split_program).parts()
    return LinearizedOperation(parts, (*operand_marks[: op.selects], *marks), results)


def _with_tangents(primals: Sequence[Any], tangents: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    """The primals, each one followed by its tangent if it is marked."""
    return [part for x, dx, mark in zip(primals, tangents, marks) for part in ((x, dx) if mark else (x,))]


def _linearize_body(run: Jvp, body: Program, marks: Marks, wanted: Marks | None = None) -> LinearizedBody:
    """The linearization of a body whose inputs have a tangent where ``marks``, and its results where ``wanted``."""
    recorder = Record(under(BASE, run.scope), "", run.site, run)
    tape = Tape(recorder, "", run.site, run)
    inner = LinearizingJvp(tape, run.label, run.site)
    primals = recorder.inputs(body.in_types)
    tangents = iter(tape.inputs([t for yes, t in zip(marks, body.in_types) if yes]))
    try:
        with inside(inner):
            results = interpret(body, [inner.pair(x, next(tangents)) if yes else x for yes, x in zip(marks, primals)])
        nonzero = tuple([y.run is inner for y in results]) if wanted is None else wanted
        with inside(tape):
            pairs = [*map(inner.unbox, results)]
            outs = [y if y.type is t else as_type(y, t) for (y, _), t in zip(pairs, body.out_types)]
            given = [(dy, t) for (_, dy), t, yes in zip(pairs, body.out_types, nonzero) if yes]
            dys = [tape.number(zeros_like(t) if dy is None else as_type(dy, t)) for dy, t in given]
        captured = [x for x in tape.builder.consts if x.run is recorder]
        known, numbers = _without_duplicates(recorder.builder, [recorder.number(x) for x in (*outs, *captured)])
        unknown = tuple(_with_tangents([False] * len(nonzero), [True] * len(nonzero), nonzero))
        rest = _TapedRest(known, tape.builder, recorder, numbers[len(outs) :])
        return LinearizedBody(rest.split(numbers[: len(outs)], dys, unknown, body.name), nonzero)
    finally:
        inner.ended = tape.ended = recorder.ended = True


def _without_duplicates(builder: Builder, outs: list[int]) -> tuple[Builder, list[int]]:
    """The same results with equal equations of one result performed once: else equal residuals would be saved twice."""
    same = [id(op.memo or op) for op in builder.ops]  # equal operations with a memo have one
    if len(set(zip(same, builder.args))) == len(same):
        return builder, outs
    new = ResidualBuilder()
    numbers = [new.input(t) for t in builder.in_types]
    new.consts += builder.consts
    first: dict[Any, int] = {}
    for op, args, types, site in zip(builder.ops, builder.args, builder.types, builder.sites):
        operands = tuple([n if n < 0 else numbers[n] for n in args])
        if op.memo is None or op.multiple_results:
            at = new.append(op, operands, types, site)
            numbers += range(at, new.count)
            continue
        key = (id(op.memo), operands)
        if key not in first:
            first[key] = new.append(op, operands, types, site)
        numbers.append(first[key])
    return new, [n if n < 0 else numbers[n] for n in outs]


class _TapedRest:
    """Makes the rest of a body from its tape: a program of its residuals, then the tangents of its inputs.

    ``known``: the known part, whose variables ``captured`` are what the tape captured from ``recorder``. The rest takes
    these as residuals, or computes them first where their operation is ``cheap_to_recompute``.
    """

    def __init__(self, known: Builder, tape: Builder, recorder: Record, captured: Sequence[int]):
        self.known = known
        self.tape = tape
        self.recorder = recorder
        self.captured = captured
        self.starts = known.starts()
        self.types = known.numbered_types()
        self.residuals: dict[int, int] = {}  # variable of the known part -> input of the rest
        self.repeated: dict[int, int] = {}  # variable of the known part -> its equation, which the rest repeats
        self.consts: list[Any] = []

    def split(self, outs: list[int], dys: Sequence[int], unknown: Marks, name: str) -> SplitProgram:
        """The two parts, with these variables of the known part and of the tape as results; ``unknown`` marks those."""
        for n in self.captured:
            self.take(n)
        rest = self.program(dys, name)
        sources = sources_of([*self.residuals], len(self.known.in_types), outs)
        known = self.known.freeze(outs, name)
        set_out_types(known, tuple([self.types[n] if n >= 0 else known.consts[-1 - n].type for n in outs]))
        return SplitProgram(known, rest, sources, unknown)

    def take(self, n: int) -> None:
        """Make variable ``n`` of the known part available to the rest."""
        if n < 0 or n in self.residuals or n in self.repeated:
            return
        index = bisect_right(self.starts, n) - 1
        if index < 0 or not self.known.ops[index].cheap_to_recompute:
            self.residuals[n] = len(self.residuals)
            return
        for operand in self.known.args[index]:
            self.take(operand)
        self.repeated[n] = index

    def program(self, dys: Sequence[int], name: str) -> Program:
        """The rest: inputs are residuals and tangents, equations those that are repeated, then those of the tape."""
        known, tape = self.known, self.tape
        residuals, inputs = len(self.residuals), len(tape.in_types)
        of_known = {**self.residuals, **{n: residuals + inputs + k for k, n in enumerate(self.repeated)}}
        repeated = list(self.repeated.values())
        args = [tuple([of_known[n] if n >= 0 else self.const(known.consts[-1 - n]) for n in known.args[i]])
                for i in repeated]
        taken = iter(self.captured)
        consts = [of_known[next(taken)] if x.run is self.recorder else self.const(x) for x in tape.consts]
        first = residuals + inputs + len(repeated)  # the number of the first result of the tape's equations
        of_tape = [*range(residuals, residuals + inputs), *range(first, first + tape.count - inputs), *reversed(consts)]
        args += [tuple([of_tape[n] for n in operands]) for operands in tape.args]
        sites = Sites([known.sites[i] for i in repeated])
        sites.codes += tape.sites.codes
        sites.offsets += tape.sites.offsets
        return Program(
            [*[self.types[n] for n in self.residuals], *tape.in_types],
            [*[known.ops[i] for i in repeated], *tape.ops],
            args,
            [*[known.types[i] for i in repeated], *tape.types],
            [of_tape[n] for n in dys],
            self.consts,
            sites,
            name,
        )

    def const(self, value: Any) -> int:
        """The number of a constant of the rest."""
        self.consts.append(value)
        return -len(self.consts)
