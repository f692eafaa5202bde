"""Transpose: the adjoint of a linear program, from the last equation to the first.

    <u, J v> = <J^T u, v>

Variables that depend on a linear input are linear; all others are known, and their values are residuals for the rules.
The pass visits each equation once: an operation's transpose rule turns the cotangents of its results into contributions
to the cotangents of its linear operands. Equations inlined from one cached rule program are transposed as a unit, by a
memoised adjoint program; operations with bodies by ``transpose_bodies``.

On a mesh, the cotangent of a value that is equal on all devices of an axis is a sum over them. While it is *unreduced*,
each device has the sum of its own contributions; it is reduced where it is read. Unreduced cotangents leave bodies, and
pass through equations that are linear maps on each device: in the body of a loop through all of them, so that what is
made in each iteration is reduced once, after the outermost loop; elsewhere to an operand that is not larger.

Source: Radul et al. 2022, You Only Linearize Once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...effects.base import config
from ...effects.base.errors import HandlaxError, MissingRule, NotAnArray, NotDifferentiable
from ...effects.base.stack import BASE, SiteCell, at_site, current, inside
from ...effects.core.arrays import ConcreteArray
from ...effects.core.columns import JVP, TRANSPOSE, add_tangents, componentwise
from ...effects.core.named_axes import under
from ...effects.core.varying import vary, with_varying
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.sharding_constraint import hide, reveal, states
from ...effects.programs.program import Builder, Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import ArrayType
from ..analysis.dependence import body_dependence, scattered
from ..core.record import Record
from ..core.rule_cache import ADJOINTS, InlinedBlock, is_inlinable
from ..core.rule_results import need_cotangents
from .partial_eval import split_program
from .transpose_bodies import transpose_operation

_PROGRAMS = ProgramCache("transpose_program")
"""Adjoint programs, by program, linear inputs, results that have a cotangent and settings."""


def backward(
    tape: Builder | Program, known: Sequence[Any], outs: Sequence[int], cts: Sequence[Any], consts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the inputs of a tape from those of its outputs; None is the symbolic zero.

    ``known[i]`` is the value of input ``i``, or None where the tape is linear in it. ``consts`` are the values of the
    tape's constants.
    """
    walk = _Backward(tape, known, consts, False)
    walk.equations(outs, cts)
    if walk.unreduced:
        walk.reduce(range(len(tape.in_types)))
    return walk.grads[: len(tape.in_types)]


def _unreduced(
    tape: Builder | Program, known: Sequence[Any], outs: Sequence[int], cts: Sequence[Any], consts: Sequence[Any],
    iterated: bool = False,
) -> list[Any]:
    """``backward`` whose results may be unreduced; ``iterated``: in the body of a loop."""
    walk = _Backward(tape, known, consts, iterated)
    walk.equations(outs, cts)
    return walk.grads[: len(tape.in_types)]


class _Backward:
    """The pass from the last equation to the first: ``grads[n]`` is the cotangent of variable ``n`` so far.

    ``values[n]`` is its value where it depends on no linear input, else None; ``starts[i]`` is the first result of
    equation ``i``. ``cuts``: some type states how values are cut, so that rules are called on hidden operands.
    ``unreduced``: some cotangent is; in the body of a loop, ``iterated``, equations may take it.
    """

    __slots__ = (
        "tape", "values", "types", "starts", "grads", "consts", "run", "cell", "outs", "needed", "cuts", "iterated",
        "unreduced",
    )

    def __init__(self, tape: Builder | Program, known: Sequence[Any], consts: Sequence[Any], iterated: bool):
        self.tape = tape
        self.iterated = iterated
        self.unreduced = False
        self.values, self.types, self.starts = _residuals(tape, known, consts)
        self.grads: list[Any] = [None] * len(self.types)
        self.consts = consts
        self.run = current()
        self.cell = self.run.cell or SiteCell()
        self.outs: Sequence[int] = ()
        self.needed: set[int] | None = None
        self.cuts = any([t.cut is not None for t in self.types])

    def equations(self, outs: Sequence[int], cts: Sequence[Any]) -> None:
        """The pass, from the cotangents of the outputs."""
        self.seed(outs, cts)
        tape, outside = self.tape, self.cell.site
        blocks = tape.inlined_blocks if isinstance(tape, Builder) and config.current().mark is not None else {}
        i = len(tape.ops)
        try:
            while i:
                i -= 1
                block = blocks.get(i)
                first = i if block is None else i + 1 - len(block.program.ops)
                if block is not None and self.block(first, block):
                    i = first
                else:
                    self.equation(i)
        finally:
            self.cell.site = outside

    def seed(self, outs: Sequence[int], cts: Sequence[Any]) -> None:
        """Add the cotangents of the outputs to ``grads``."""
        self.outs = [n for n, ct in zip(outs, cts) if ct is not None]
        for n, ct in zip(outs, cts):
            if ct is not None and self.values[n] is None:
                self.add(n, ct)

    def add(self, n: int, part: Any) -> None:
        """Add ``part`` to the cotangent of variable ``n``; where both are sums of which each device of a mesh axis has
        its own contribution, so is the result, and the devices' parts are not summed yet.
        """
        grads, varying = self.grads, self.types[n].varying
        if part.type.varying is not varying:
            part = vary(part, varying)
            self.unreduced = True
        cut = self.types[n].dual.cut
        if cut is None and n >= len(self.tape.in_types):  # inside, the cotangent of a whole value is not made whole
            cut = part.type.cut if grads[n] is None else grads[n].type.cut
        if part.type.cut is not cut:
            part = reveal(part, cut)
        before = grads[n]
        if before is not None and before.type.varying is not part.type.varying:
            common = before.type.varying & part.type.varying
            before, part = with_varying(before, common), with_varying(part, common)
        grads[n] = add_tangents(before, part)

    def reduce(self, results: Sequence[int]) -> None:
        """Reduce the cotangents of these variables."""
        for n in results:
            ct = self.grads[n]
            self.grads[n] = ct if ct is None else with_varying(ct, self.types[n].varying)

    def passes_unreduced(self, op: Any, args: Sequence[int], first: int) -> bool:
        """Whether an equation, whose first result is ``first``, takes its cotangent unreduced."""
        if op.bodied or op.effectful or (op.named and (op.meets or op.makes_equal)):
            return False
        result, linear = self.types[first], [self.types[n] for n in args if self.values[n] is None]
        if self.iterated or len(linear) != 1 or result.ragged or linear[0].ragged:
            return self.iterated
        return linear[0].nbytes <= result.nbytes

    def equation(self, i: int) -> None:
        """Add the contributions of equation ``i`` to the cotangents of its operands."""
        tape, grads, types = self.tape, self.grads, self.types
        op, args, start = tape.ops[i], tape.args[i], self.starts[i]
        if self.unreduced and not self.passes_unreduced(op, args, start):
            self.reduce(range(start, start + (len(tape.types[i]) if op.multiple_results else 1)))
        if op.multiple_results:
            ct = tuple(grads[start : start + len(tape.types[i])])
            zero = not any([part is not None for part in ct])
            if zero and not (ct and op.answers_zero and self.is_needed(start)):
                return
        else:
            ct = grads[start]
            if ct is None:
                return
            grads[start] = None  # read for the last time: its memory is freed
        self.cell.site = tape.sites[i]
        operands = [*map(self.values.__getitem__, args)]
        linear = [x is None for x in operands]
        operands = [types[n] if x is None else x for n, x in zip(args, operands)]
        if self.cuts and not (op.bodied or isinstance(op, Elementwise)):
            given = [x for x in (*operands, *op.as_results(ct)) if x is not None]
            if states([x.cut if isinstance(x, ArrayType) else x.type.cut for x in given]):
                ct = op.from_results([*map(hide, op.as_results(ct))])
                operands = [*map(hide, operands)]
        for n, part in zip(args, _cotangents(op, ct, operands, linear, self.iterated)):
            if part is not None:
                self.add(n, part)

    def is_needed(self, n: int) -> bool:
        """Whether variable ``n`` is linear in the inputs, and an output with a cotangent is made of it, or of another
        result of its equation.
        """
        if self.needed is None:
            self.needed = {*self.outs}
            for _, args, results, _ in reversed([*self.tape.steps()]):
                if not self.needed.isdisjoint(results):
                    self.needed.update(args, results)
        return self.values[n] is None and n in self.needed

    def block(self, first: int, block: InlinedBlock) -> bool:
        """Transpose an inlined block, whose first equation is ``first``, as a unit. False: it has no adjoint."""
        tape, grads, consts, args = self.tape, self.grads, self.consts, self.tape.args
        start = self.starts[first]
        cts = [grads[start + k] for k in block.results]
        nonzero = [ct for ct in cts if ct is not None]
        if not nonzero:
            return True
        types = [None if ct is None else ct.type for ct in cts]
        key = (config.current().mark, *types)
        adjoint = block.adjoints.get(key)
        if adjoint is None:
            adjoint = ADJOINTS.add(block.adjoints, key, _adjoint(block, types))
        if not adjoint:
            return False
        program, residuals, targets = adjoint
        self.cell.site = tape.sites[first]
        for k in block.results:
            grads[start + k] = None
        operands = [*[consts[-1 - args[first + i][k]] for i, k in residuals], *nonzero]
        for (i, k), part in zip(targets, self.run.inline(program, operands)):
            self.add(args[first + i][k], part)
        return True


def _adjoint(block: InlinedBlock, types: Sequence[ArrayType | None]) -> Any:
    """The adjoint of an inlined block for cotangents of these types, or False.

    Returns the adjoint program, and the positions in the block of its residuals and of the operands of its cotangents.
    """
    program, linear, positions = block.program, block.linear, block.positions
    if any([ct is not None and ct is not t for ct, t in zip(types, program.out_types)]):
        return False  # a cotangent may be weak where the result is not
    nonzero = [ct is not None for ct in types]
    try:
        adjoint, live = transpose_body(program, linear, nonzero)
    except HandlaxError:  # transposed equation by equation, the error names the equation's line
        return False
    if not is_inlinable(adjoint):
        return False
    has_cotangent = iter(live)
    residuals = [positions[i] for i, yes in enumerate(linear) if not yes]
    return adjoint, residuals, [positions[i] for i, yes in enumerate(linear) if yes and next(has_cotangent)]


def _residuals(
    tape: Builder | Program, known: Sequence[Any], consts: Sequence[Any]
) -> tuple[list[Any], list[Any], list[int]]:
    """The fields ``values``, types and ``starts`` of ``_Backward``; performs the equations on known operands.

    The values of the constants stand last, so that their negative numbers index them.
    """
    types, starts = tape.numbered_types(), tape.starts()
    # every equation of a tape depends on its inputs; a program may have some on constants alone, which are known
    if not isinstance(tape, Program) and not any(value is not None for value in known):
        return [*[None] * len(types), *reversed(consts)], types, starts
    values: list[Any] = list(known)
    answer, cell = current().answer, current().cell or SiteCell()
    with at_site(cell.site, cell):
        for (op, args, results, _), cell.site in zip(tape.steps(), tape.sites):
            operands = [consts[-1 - n] if n < 0 else values[n] for n in args]
            if all(x is not None for x in operands):
                y = answer(op, tuple(operands))
                values.extend(op.as_results(y))
            elif JVP.cell(type(op)) is componentwise:
                known_operands = tuple([x for x in operands if x is not None])
                results_of_known = iter(answer(op, known_operands) if known_operands else ())
                values.extend([None if x is None else next(results_of_known) for x in operands])
            else:
                values.extend((None,) * len(results))
    return [*values, *reversed(consts)], types, starts


def _cotangents(op: Any, ct: Any, operands: list[Any], linear: list[bool], iterated: bool) -> Sequence[Any]:
    """The contribution of one equation to the cotangent of each operand; None for operands that are not linear.

    Raises: NotDifferentiable: the operation is not linear, or has no rule. BadCall: the rule gives other things.
    """
    if op.bodied and not TRANSPOSE.has(type(op)):
        transpose = transpose_iteration if iterated or op.loops else transpose_body
        return transpose_operation(op, ct, operands, linear, transpose)
    try:
        rule = TRANSPOSE.find(type(op))
    except MissingRule as error:
        if TRANSPOSE.has(type(op)):
            raise
        raise NotDifferentiable(
            f"{op.name}: reverse mode met an operation that is not linear, or has no transpose rule.", hint=error.hint
        ) from None
    try:
        parts = rule(op, ct, operands, tuple(linear))
    except (NotAnArray, AttributeError) as error:  # the rule reads the value of a linear operand, which is its type
        if isinstance(error, AttributeError) and not _is_of_a_value(error):
            raise
        raise NotDifferentiable(
            f"{op.name}: the function must be linear, and this operation is not, "
            "in those operands that depend on its argument.",
            hint="linear_transpose takes linear functions only, vjp takes any; a rule of custom_jvp is linear in its "
            "tangents.",
        ) from error
    need_cotangents(op, parts, len(operands))
    return parts


def _is_of_a_value(error: AttributeError) -> bool:
    """Whether the missing attribute named by an AttributeError is one that arrays have and types do not."""
    return isinstance(error.obj, ArrayType) and hasattr(ConcreteArray, error.name or "")


def transpose_program(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool]
) -> tuple[Program, tuple[bool, ...]]:
    """The adjoint of a program that is linear in the inputs marked ``linear``.

    Returns the adjoint program, from the other inputs, then the cotangents of the outputs marked ``nonzero``, to the
    cotangents of linear inputs; and for each linear input whether it has one: if not, it is zero.
    """
    return _transposed(program, linear, nonzero, backward)


def transpose_body(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool]
) -> tuple[Program, tuple[bool, ...]]:
    """``transpose_program``, but the cotangents may be unreduced."""
    return _transposed(program, linear, nonzero, _unreduced)


def transpose_iteration(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool]
) -> tuple[Program, tuple[bool, ...]]:
    """``transpose_body`` of the body of a loop, or of a body inside of it."""
    return _transposed(program, linear, nonzero, _unreduced_in_loop)


_unreduced_in_loop = partial(_unreduced, iterated=True)


def pull_back(program: Program, linear: Sequence[bool], known: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The cotangent of each linear input, None for zero, from the other inputs and the cotangents of all outputs."""
    adjoint, marks = transpose_program(program, linear, [True] * len(cts))
    return scattered(interpret(adjoint, [*known, *cts]), marks)


def _transposed(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool], walk: Callable[..., list[Any]]
) -> tuple[Program, tuple[bool, ...]]:
    """``transpose_program`` by ``walk``, a form of ``backward``."""
    key = (program, tuple(linear), tuple(nonzero), walk, current().scope, config.current())
    return _PROGRAMS.get(key, lambda: _transpose(program, linear, nonzero, walk))


def _transpose(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool], walk: Callable[..., list[Any]]
) -> tuple[Program, tuple[bool, ...]]:
    """``_transposed`` without its cache."""
    run = Record(under(BASE, current().scope), "")
    known = [None if yes else run.input(t) for yes, t in zip(linear, program.in_types)]
    cts = [run.input(t.dual) if yes else None for yes, t in zip(nonzero, program.out_types)]
    with inside(run):
        if _uses_known_results_of_bodies(program, linear):
            program, known, cts = _without_known(program, linear, known, cts)
        grads = walk(program, known, program.outs, cts, program.consts)
    linear_grads = [grad for grad, value in zip(grads, known) if value is None]
    live = tuple([grad is not None for grad in linear_grads])
    return run.freeze([grad for grad in linear_grads if grad is not None], program.name), live


def _uses_known_results_of_bodies(program: Program, linear: Sequence[bool]) -> bool:
    """Whether an operation with bodies and linear operands has a known result that another equation uses."""
    if not any([op.bodied for op in program.ops]):
        return False
    is_linear = list(linear)
    for op, args, results, _ in program.steps():
        marks = [n >= 0 and is_linear[n] for n in args]
        marked: Sequence[bool] = (True in marks,) * len(results)
        if op.bodied and marked and marked[0]:
            marked = body_dependence(op, ordered=False).reached(marks).results
            if not all(marked) and not TRANSPOSE.has(type(op)):
                known = {n for n, yes in zip(results, marked) if not yes}
                if any([not known.isdisjoint(operands) for operands in program.args]):
                    return True
        is_linear += marked
    return False


def _without_known(
    program: Program, linear: Sequence[bool], known: Sequence[Any], cts: Sequence[Any]
) -> tuple[Program, list[Any], list[Any]]:
    """The linear part of a program, its known inputs and the cotangents of its outputs. Performs the known part."""
    parts = split_program(program, linear, None, None, False)
    inputs = [x for x, yes in zip(known, linear) if not yes]
    residuals = parts.residual_values(inputs, interpret(parts.known, inputs))
    return parts.rest, [*residuals, *[None] * sum(linear)], [ct for ct, yes in zip(cts, parts.unknown) if yes]
