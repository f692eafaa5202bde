"""The rule cache: what a rule performs, recorded once and inlined from then on.

    rule(op, *operands) == outer.inline(cached.program, operands)

What a built-in rule of jvp or batch performs depends only on the operation, the types of the operands, and the marks of
the operands: which have a tangent, which are mapped. So the rule is called once per key, under a record; the resulting
program, the cached rule program, is inlined by the next handler out (``Run.inline``). Not cached: rules of a user's
operations, operations with bodies, effects, axes or several results, rules that read values or raise, and all rules
where a scope overrides some.

The cache lies on the operation's memo, so that a look-up hashes types and marks only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base import config
from ...effects.base.caches import AttachedCache, Owners
from ...effects.base.source_locations import is_ours
from ...effects.core.operation import MEMOS, Operation
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from .record import record_apart

RuleFunction = Callable[..., tuple[Sequence[Any], Any]]
RuleKey = tuple[Any, ...]  # types and marks of the operands; the keys of different handlers must differ
Describe = Callable[[Operation, RuleKey], tuple[RuleFunction, Sequence[ArrayType]]]
RULE_PROGRAMS = AttachedCache("rule_programs", "rule_programs", 8192, MEMOS)
"""Rule programs by operation, settings, and the operands' types and marks; attached to the operation."""


class RuleProgram(NamedTuple):
    """A cached rule program, from the operands to the results of a rule, and the static marks of these results."""

    program: Program
    marks: Any


def cached_rule_program(op: Operation, key: RuleKey, describe: Describe) -> RuleProgram | None:
    """The rule program of an operation that has a memo; None or False where the rule has to be called instead.

    ``describe(op, key)`` gives the rule as a function from values to results and marks, and the types of the values.
    """
    mark = config.CONFIG.get().settings.mark
    if mark is None:
        return None
    programs = op.memo.rule_programs  # type: ignore[union-attr]
    cached = programs.get((mark, key))
    if cached is not None:
        return cached
    ours = is_ours(type(op).__module__)
    if not ours or op.multiple_results or op.bodied or op.effectful or op.named or op.deferred:
        return None
    return RULE_PROGRAMS.add(programs, (mark, key), _recorded(*describe(op, key)) or False)


def _recorded(rule: RuleFunction, types: Sequence[ArrayType]) -> RuleProgram | None:
    """The program of a rule for operands of these types; None if the rule reads values, raises or has effects."""
    try:
        program, marks = record_apart(rule, types)
    except Exception:  # a rule that reads values or raises is not cached: uncached, the error names the user's line
        return None
    return RuleProgram(program, marks) if is_inlinable(program) else None


def is_inlinable(program: Program) -> bool:
    """Whether every equation has one result, no body, no effect and no named axis."""
    return not any([op.multiple_results or op.bodied or op.effectful or op.named for op in program.ops])


class InlinedBlock:
    """Consecutive equations of a tape that were inlined from one cached rule program, which is transposed as a unit.

    ``program``: the rule program, whose inputs are residuals, then linear operands; ``linear``: for each input whether
    it is one of the latter. ``positions``: for each input its first use in the block, (equation, operand). ``results``:
    the equations that compute the program's results. ``adjoints``: the transposed programs, by settings and types of
    the cotangents; False where there is none.
    """

    __slots__ = ("program", "linear", "positions", "results", "adjoints", "__weakref__")

    def __init__(self, program: Program, linear: tuple[bool, ...], positions: Sequence[Any], results: Sequence[int]):
        self.program = program
        self.linear = linear
        self.positions = positions
        self.results = results
        self.adjoints: dict[Any, Any] = {}
        _BLOCKS.add(self)


_BLOCKS = Owners()
ADJOINTS = AttachedCache("adjoints of rule programs", "adjoints", 8192, _BLOCKS)
"""The adjoints of a cached rule program, attached to it."""


def inlined_block(program: Program, residuals: int) -> InlinedBlock | None:
    """The block of a rule program whose first ``residuals`` inputs are residuals, and all others linear.

    None if the program cannot be transposed as a unit: it has no result, a result is an input, a constant or given
    twice, or a residual is not used.
    """
    count = len(program.in_types)
    first_uses: dict[int, tuple[int, int]] = {}
    for i, numbers in enumerate(program.args):
        for k, n in enumerate(numbers):
            first_uses.setdefault(n, (i, k))
    positions = [first_uses.get(n) for n in range(count)]
    results = [n - count for n in program.outs]
    if not results or min(results) < 0 or len(set(results)) < len(results) or None in positions[:residuals]:
        return None
    return InlinedBlock(program, (False,) * residuals + (True,) * (count - residuals), positions, results)
