"""Partial evaluation: operations on known values are performed now, those that depend on unknown values are recorded.

    program(known, unknown) = rest(residuals, unknown)  where  results, residuals = first(known)

Two forms of one algorithm. ``Tape`` partially evaluates a function while it is called: a record that answers only the
operations on its own boxes; the values that it captures from outside are the residuals. ``partial_eval_program`` splits
a program before any value is known, in one pass over its equations (``Splitter``). Operations with bodies are split by
``partial_eval_bodies``, each body by this module again.

An effect is performed in the part that its operands belong to. Where programs are split for the user, effects of one
class keep their order besides. Where the rest is a linear map they do not: it performs its effects later, or transposed
and in reverse, and the effects of the known part are those of the function.

Source: Radul et al. 2022, You Only Linearize Once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base import config
from ...effects.base.caches import AttachedCache
from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.stack import Run
from ...effects.control.checkpoint_policies import (
    SAVEABLE,
    Offloadable,
    Policy,
    Recompute,
    Verdict,
    exceeded_budget,
    plan_of,
)
from ...effects.core.named_axes import is_root
from ...effects.core.operation import MEMOS, Operation
from ...effects.operations.foundations.to_memory import ToMemory
from ...effects.programs.closure_conversion import with_inputs
from ...effects.programs.program import Program, ResidualBuilder, memoised
from ...effects.programs.program_cache import ProgramCache
from ...effects.sharding.devices import space_of
from ..analysis.dependence import effect_kinds
from ..analysis.simplify import dead_code_elimination
from ..core.record import Record, recorder_of
from ..core.rule_cache import inlined_block
from ..core.rule_codegen import partitioned_function
from .jvp_rules import may_perform, repeated
from .partial_eval_bodies import Operand, SplitOperation, SplitProgram, sources_of, split_bodies

_PROGRAMS = ProgramCache("partial_eval_program")
"""Programs in two parts, by program, unknown inputs, results forced into the rest, policy and settings."""
_OPERATIONS = ProgramCache("split_operation")
"""Operations with bodies in two parts, by operation without a memo, unknown operands, policy and settings."""
_SPLITS = AttachedCache("splits of one operation", "splits", owners=MEMOS)
"""Operations with bodies in two parts, attached to each operation with a memo."""


def _partitioned(program: Program, unknown: tuple[bool, ...]) -> Callable[..., tuple[Any, ...]]:
    """The generated function ``(tape, *operands) -> results`` that inlines a cached rule program on a tape.

    The operands marked ``unknown`` are boxes of the tape.
    """
    splitter = Splitter(program, unknown, None, repeat_cheap=False)  # every equation of a tape depends on its inputs
    known, rest, residuals, in_rest = splitter.split((False,) * len(program.outs), False)
    block = inlined_block(rest, len(residuals))
    sources = [(type(x) is Operand, x.number) for x in residuals]
    return partitioned_function(known, recorder_of(rest), block, unknown, sources, in_rest)


class Tape(Record):
    """A record of the operations that have one of its boxes as operand; all others are performed outside.

    The values that it captures, its constants, are the residuals.
    """

    __slots__ = ()
    new_builder = ResidualBuilder
    records_everything = False

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                return self._split(op, operands) if op.bodied else Record.answer(self, op, operands)
        return self.outer.answer(op, operands)

    def inline(self, program: Program, operands: Sequence[Any], sites: Any = None) -> tuple[Any, ...]:
        """The results of a program; of a cached rule program (no ``sites``) by a generated function."""
        if sites is not None:
            return Run.inline(self, program, operands, sites)
        unknown = tuple([x.run is self for x in operands])
        if True not in unknown:
            return self.outer.inline(program, operands)
        function = program.facts.get((Tape, unknown))
        if function is None:
            function = memoised(program, (Tape, unknown), lambda: _partitioned(program, unknown))
        return function(self, *operands)

    def _split(self, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Answer an operation with bodies by partitioning it into a known part and a rest."""
        parts = split_operation(op, [x.run is self for x in operands])
        if parts.rest is not None and (refused := exceeded_budget(parts.rest)) is not None:
            raise refused.error()
        return self.perform_split(parts, operands)

    def perform_split(self, parts: SplitOperation, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results of a split operation: its known part is performed outside, the rest is recorded."""
        values = list(operands)
        for known, sources in parts.known:
            values += self.outer.answer(known, tuple([values[n] for n in sources]))
        rest = () if parts.rest is None else Record.answer(self, parts.rest, tuple([values[n] for n in parts.sources]))
        return tuple([rest[later] if first is None else values[first] for first, later in parts.results])


def partial_eval_program(
    program: Program,
    unknown: Sequence[bool],
    *,
    instantiate: Sequence[bool] | None = None,
    policy: Policy | None = None,
) -> SplitProgram:
    """Split a program into its known part and the rest, by which inputs are unknown.

    Effects stay in order: an effect after an unknown effect of its class is unknown.

    Args:
        instantiate: results that ``rest`` has though they are known.
        policy: decides of each known result whether it may be a residual (``effects.control.checkpoint_policies``);
            where not, ``rest`` computes it again. Results of effects always may.
    """
    return split_program(program, unknown, instantiate, policy, False, frozenset())


def split_program(
    program: Program,
    unknown: Sequence[bool],
    forced: Sequence[bool] | None,
    policy: Policy | None,
    all_results: bool,
    late: frozenset[type] | None = None,
) -> SplitProgram:
    """The two parts of a program whose rest is a linear map; where ``all_results``, it has known results too. Cached.

    ``late``: effects keep their order, and those of these classes are unknown from the start, as in a loop whose rest
    performs such effects.
    """
    forced_results = (False,) * len(program.outs) if forced is None else tuple(forced)
    key = (program, tuple(unknown), forced_results, policy, all_results, late, config.current())
    return _PROGRAMS.get(key, lambda: _split_program(program, unknown, forced_results, policy, all_results, late))


def _split_program(
    program: Program,
    unknown: Sequence[bool],
    forced: Sequence[bool],
    policy: Policy | None,
    all_results: bool,
    late: frozenset[type] | None = None,
) -> SplitProgram:
    """``split_program``, uncached."""
    return Splitter(program, unknown, policy, late).split(forced, all_results)


def split_operation(
    op: Any, unknown: Sequence[bool], policy: Policy | None = None, ordered: bool = False
) -> SplitOperation:
    """An operation with bodies split into known operations and a rest, by which operands are unknown.

    ``ordered``: effects of one class keep their order.
    Cached; on the operation where it has a memo, since hashing it would cost half as much as splitting it.
    """
    key = (tuple(unknown), policy, ordered, config.current())
    if op.memo is None:
        return _OPERATIONS.get((op, *key), lambda: split_bodies(op, unknown, policy, ordered, split_program))
    splits = op.memo.splits
    parts = splits.get(key)
    if parts is not None:
        return parts
    return _SPLITS.add(splits, key, on_deep_stack(split_bodies, op, unknown, policy, ordered, _split_program))


class ResidualConstant:
    """A placeholder for known variable ``number`` among the constants of the rest, replaced by an input at the end."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


class Splitter:
    """One pass over a program that builds its known part and the rest.

    ``in_known[n]`` and ``in_rest[n]`` are the variables of the two parts that have the value of variable ``n``, or
    None. An unknown variable is in the rest only. A known one is in the known part, and gets into the rest on demand:
    as a residual, or by a second equation where its operation is cheap. Where the policy forbids a residual, the
    equation is in both parts, and dead code elimination removes what the rest does not need. What the derivative of
    such an equation performs, by rules of the user's, the known part alone performs.
    """

    def __init__(
        self, program: Program, unknown: Sequence[bool], policy: Policy | None, late: frozenset[type] | None = None,
        repeat_cheap: bool = True,
    ):
        self.program = program
        self.unknown = unknown
        self.repeat_cheap = repeat_cheap  # whether the rest computes operations that are cheap_to_recompute again
        self.plan = None if policy is None else plan_of(policy, program, unknown)
        self.known = ResidualBuilder()
        self.rest = ResidualBuilder()
        self.in_known: list[int | None] = []
        self.in_rest: list[int | None] = []
        self.shared_results: dict[tuple[int, tuple[int, ...]], int] = {}  # id of the memo, operands -> known result
        self.cheap: dict[int, int] = {}  # known variable -> its equation, where the rest repeats that on demand
        self.far: dict[int, tuple[Offloadable, Any]] = {}  # known variable -> where its residual lies, and its site
        self.residuals: dict[int, ResidualConstant] = {}  # variable of the known part -> its placeholder
        self.ordered = late is not None  # whether effects of one class keep their order
        self.late = set(late or ())  # classes of effects that are unknown from here on, where they keep their order
        self.residual_numbers: list[int] = []  # variables of the known part that the rest takes; set by ``freeze``

    def split(self, forced: Sequence[bool], all_results: bool) -> SplitProgram:
        """The known part and the rest; ``forced`` and ``all_results`` say which known results the rest returns too."""
        program = self.program
        for yes, t in zip(self.unknown, program.in_types):
            self.in_known.append(None if yes else self.known.input(t))
            self.in_rest.append(self.rest.input(t) if yes else None)
        for i, (op, args, types, site) in enumerate(zip(program.ops, program.args, program.types, program.sites)):
            unknown = self.is_unknown(op, args)
            if op.bodied and unknown and not self.late.isdisjoint(effect_kinds(op)):
                self.delay(op)
                self.unknown_equation(op, args, types, site)
            elif op.bodied and (unknown or (op.prunes and not self.may_save(i, op, args))):  # type: ignore[attr-defined]
                self.higher_order(i, op, args, site)
            elif unknown:
                if op.effectful:
                    self.delay(op)
                self.unknown_equation(op, args, types, site)
            else:
                self.known_equation(i, op, args, types, site)
        return self.freeze(forced, all_results)

    def is_unknown(self, op: Operation, args: Sequence[int]) -> bool:
        """Whether an operand is unknown, or an earlier effect of the same class that it comes after."""
        if self.late and not self.late.isdisjoint(effect_kinds(op)):
            return True
        in_known = self.in_known
        for n in args:
            if n >= 0 and in_known[n] is None:
                return True
        return False

    def delay(self, op: Operation) -> None:
        """Make effects of the classes that the rest performs in ``op`` wait for it, where they keep their order."""
        if self.ordered:
            self.late |= effect_kinds(op)

    def verdict(self, index: int, op: Operation, args: Sequence[int]) -> Verdict:
        """What the policy says of the known results of an equation: that they are residuals, in another memory until
        they are needed perhaps, or are computed again.
        """
        if self.plan is None or is_root(op):
            return SAVEABLE
        return self.plan.verdict(index, op, [*map(self.program.type_of, args)])

    def may_save(self, index: int, op: Operation, args: Sequence[int]) -> bool:
        """Whether the policy allows the known results of an equation as residuals."""
        return not isinstance(self.verdict(index, op, args), Recompute)

    def unknown_equation(self, op: Operation, args: tuple[int, ...], types: Any, site: Any) -> None:
        """Append an equation to the rest."""
        first = self.rest.append(op, self.rest_numbers(args), types, site)
        count = len(types) if op.multiple_results else 1
        self.in_known += [None] * count
        self.in_rest += range(first, first + count)

    def known_equation(self, index: int, op: Operation, args: tuple[int, ...], types: Any, site: Any) -> None:
        """Append an equation to the known part unless an equal one is there; to the rest too if it may not be saved."""
        at = len(self.in_known)
        count = len(types) if op.multiple_results else 1
        operands = self.known_numbers(args)
        memo = op.memo
        if memo is None or self.plan is not None or op.multiple_results or op.effectful:
            first = self.known.append(op, operands, types, site)
            self.in_known += range(first, first + count)
        else:
            key = (id(memo), operands)
            number = self.shared_results.get(key)
            if number is None:
                number = self.shared_results[key] = self.known.append(op, operands, types, site)
            self.in_known.append(number)
        verdict = SAVEABLE if self.plan is None else self.verdict(index, op, args)
        if isinstance(verdict, Offloadable):
            self.far.update(dict.fromkeys(range(at, at + count), (verdict, site)))
        if isinstance(verdict, Recompute):
            again = repeated(op, [*map(self.program.type_of, args)]) if may_perform(op) else op
            first = self.rest.append(again, self.rest_numbers(args), types, site)
            self.in_rest += range(first, first + count)
            return
        self.in_rest += [None] * count
        if self.repeat_cheap and op.cheap_to_recompute:
            self.cheap[at] = index

    def known_numbers(self, args: Sequence[int]) -> tuple[Any, ...]:
        """Known operands as variables of the known part."""
        in_known = self.in_known
        return tuple([in_known[n] if n >= 0 else self.known.const(self.program.consts[-1 - n]) for n in args])

    def rest_numbers(self, args: Sequence[int]) -> tuple[Any, ...]:
        """Operands as variables of the rest."""
        in_rest = self.in_rest
        numbers = []
        for n in args:
            own = in_rest[n] if n >= 0 else self.rest.const(self.program.consts[-1 - n])
            numbers.append(self.saved_or_repeated(n) if own is None else own)
        return tuple(numbers)

    def saved_or_repeated(self, n: int) -> int:
        """Bring a known variable into the rest: as a residual, or by repeating its equation where that is cheap."""
        index = self.cheap.get(n)
        if n in self.far:
            number = self.offloaded(n)
        elif index is None:
            number = self.residual(self.in_known[n])
        else:
            program = self.program
            operands = self.rest_numbers(program.args[index])
            number = self.rest.append(program.ops[index], operands, program.types[index], program.sites[index])
        self.in_rest[n] = number
        return number

    def offloaded(self, n: int) -> int:
        """Bring a known variable into the rest by way of another memory."""
        verdict, site = self.far[n]
        t, here, there = self.program.value_types()[n], space_of(verdict.src), space_of(verdict.dst)
        leave: Any = ToMemory(there)
        back: Any = ToMemory(here)
        away = self.known.append(leave, self.known_numbers((n,)), t.lying_in(there), site)
        return self.rest.append(back, (self.residual(away),), t.lying_in(here), site)

    def residual(self, own: Any) -> int:
        """The variable of the rest with the value of variable ``own`` of the known part."""
        placeholder = self.residuals.get(own)
        if placeholder is None:
            placeholder = self.residuals[own] = ResidualConstant(own)
        return self.rest.const(placeholder)

    def higher_order(self, index: int, op: Any, args: tuple[int, ...], site: Any) -> None:
        """Split an operation with bodies, and append its known operations and its rest to the two parts."""
        inner = None if self.plan is None else self.plan.inner
        parts = split_operation(op, [n >= 0 and self.in_known[n] is None for n in args], inner, self.ordered)
        may_save = self.may_save(index, op, args)
        results: list[int] = []  # of the known operations, as variables of the known part
        types = [*map(self.program.type_of, args)]
        count = len(args)

        for known, sources in parts.known:
            operands = tuple([self.known_numbers((args[n],))[0] if n < count else results[n - count] for n in sources])
            result_types = known.result_type(*[types[n] for n in sources])
            at = self.known.append(known, operands, result_types, site)
            results += range(at, at + len(result_types))
            types += result_types
        at = 0
        if parts.rest is not None:
            sources = parts.sources
            operands = tuple(
                [self.rest_numbers((args[n],))[0] if n < count else self.residual(results[n - count]) for n in sources]
            )
            at = self.rest.append(parts.rest, operands, parts.rest.result_type(*[types[n] for n in sources]), site)
            self.delay(parts.rest)
        for first, later in parts.results:
            self.in_known.append(None if first is None else results[first - count])
            self.in_rest.append(at + later if first is None or (later is not None and not may_save) else None)

    def freeze(self, forced: Sequence[bool], all_results: bool) -> SplitProgram:
        """The two parts as programs. A residual that is a known result anyway leaves the known part once."""
        program = self.program
        unknown = tuple([force or (n >= 0 and self.in_known[n] is None) for n, force in zip(program.outs, forced)])
        rest_outs = self.rest_numbers([n for n, yes in zip(program.outs, unknown) if yes or all_results])
        known_outs = list(self.known_numbers([n for n, yes in zip(program.outs, unknown) if not yes]))
        rest, self.residual_numbers = self.frozen_rest(rest_outs)
        residuals = sources_of(self.residual_numbers, len(self.known.in_types), known_outs)
        known = self.known.freeze(known_outs, program.name)
        if self.plan is not None:
            known = dead_code_elimination(known, instantiate=True, whole=may_perform).program
        return SplitProgram(known, rest, residuals, unknown)

    def frozen_rest(self, outs: Sequence[int]) -> tuple[Program, list[int]]:
        """The rest with its residuals as first inputs, and these as variables of the known part."""
        numbers = list(self.residuals)
        frozen = self.rest.freeze(outs, self.program.name)
        program = frozen
        if numbers:
            types = self.known.numbered_types()
            program = with_inputs(frozen, list(self.residuals.values()), [types[own] for own in numbers])
        if self.plan is None:
            return program, numbers
        residuals, inputs = len(numbers), len(frozen.in_types)
        program, used = dead_code_elimination(program, instantiate=(False,) * residuals + (True,) * inputs)
        return program, [own for own, yes in zip(numbers, used) if yes]
