"""The difference of two programs: empty iff they are equal.

    bool(p.diff(q)) == (p != q)

Equations are matched by the expression that they compute, down to the inputs; those left between matches by operation
and type, then by the operation's name. A match whose operands, fields or types differ is a changed equation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any

from ..base.frozen_values import Value
from .printer import Printer, ProgramLike, row_text, types_text

# above this many equations in a gap only equal prefixes and suffixes are matched: SequenceMatcher is quadratic
MATCHED = 2000


class ProgramDifference(Value):
    """The difference of two programs, as lines of text; false when there is none.

    ``signature``: changes of inputs, results and effects. ``removed``, ``inserted``: index and text of equations that
    only the old or only the new program has. ``changed``: old and new index and text of matched equations that differ.
    ``lines``: all of these in order.
    """

    signature: tuple[str, ...] = ()
    removed: tuple[tuple[int, str], ...] = ()
    inserted: tuple[tuple[int, str], ...] = ()
    changed: tuple[tuple[int, int, str, str], ...] = ()
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def difference(old: ProgramLike, new: ProgramLike) -> ProgramDifference:
    """The changes that turn ``old`` into ``new``."""
    if old == new:
        return ProgramDifference()
    table: dict[Hashable, int] = {}
    matched = _match(old, new, table)
    rename = {n: n for n in range(min(len(old.in_types), len(new.in_types)))}
    starts = old.starts(), new.starts()
    for i, j in matched.items():
        results = zip(range(starts[0][i], starts[0][i + 1]), range(starts[1][j], starts[1][j + 1]))
        rename.update(results)
    texts = _texts(old), _texts(new)
    same = _same_operand(old, new, rename)
    changed = []
    for i, j in sorted(matched.items()):
        same_operands = len(old.args[i]) == len(new.args[j]) and all(map(same, old.args[i], new.args[j]))
        if not same_operands or old.ops[i] != new.ops[j] or old.types[i] != new.types[j]:
            changed.append((i, j, texts[0](i), texts[1](j)))
    kept = set(matched.values())
    removed = tuple([(i, texts[0](i)) for i in range(len(old.ops)) if i not in matched])
    inserted = tuple([(j, texts[1](j)) for j in range(len(new.ops)) if j not in kept])
    signature = _signature(old, new, same, texts)
    lines = (*signature, *_in_order(matched, removed, inserted, changed))
    return ProgramDifference(signature, removed, inserted, tuple(changed), lines)


def _in_order(
    matched: dict[int, int], removed: Sequence[tuple[int, str]], inserted: Sequence[tuple[int, str]],
    changed: Sequence[tuple[int, int, str, str]],
) -> list[str]:
    """The lines in the order of the old program; an inserted equation follows the matched one before it."""
    rows = [(i, 0, -1, f"- {text}") for i, text in removed]
    rows += [(i, 0, -1, f"- {old}\n+ {new}") for i, _, old, new in changed]
    before = {j: i for i, j in matched.items()}
    after = -1
    texts = dict(inserted)
    for j in sorted({*before, *texts}):
        if j in texts:
            rows.append((after, 1, j, f"+ {texts[j]}"))
        else:
            after = before[j]
    return [text for *_, text in sorted(rows)]


def _texts(program: ProgramLike) -> Any:
    """The function from the index of an equation to its text; index -1 gives the text of the results."""
    printer = Printer(False)
    printer.count(program)
    operand, names = printer.names(program)
    steps = list(program.steps())

    def text(i: int) -> str:
        if i < 0:
            return f"return ({', '.join(map(operand, program.outs))})"
        op, args, results, types = steps[i]
        shown = ", ".join([f"{names[n]}: {printer.type(type)}" for n, type in zip(results, types)])
        return printer.line(op, shown, map(operand, args))

    return text


def _same_operand(old: ProgramLike, new: ProgramLike, rename: dict[int, int]) -> Callable[[int, int], bool]:
    def same(a: int, b: int) -> bool:
        if a >= 0 or b >= 0:
            return rename.get(a) == b
        return old.const_key(a) == new.const_key(b)

    return same


def _signature(old: ProgramLike, new: ProgramLike, same: Callable[[int, int], bool], texts: Any) -> tuple[str, ...]:
    lines = []
    if old.in_types != new.in_types:
        lines += [f"- inputs {types_text(old.in_types)}", f"+ inputs {types_text(new.in_types)}"]
    if old.effects != new.effects:
        lines += [f"- effects {row_text(old.effects)}", f"+ effects {row_text(new.effects)}"]
    if len(old.outs) != len(new.outs) or not all(map(same, old.outs, new.outs)):
        lines += [f"- {texts[0](-1)}", f"+ {texts[1](-1)}"]
    return tuple(lines)


def _expressions(program: ProgramLike, table: dict[Hashable, int]) -> list[int]:
    """A number for each equation; equal numbers, of either program, mean the same expression of the inputs."""
    values: list[int] = [table.setdefault(("input", n, t), len(table)) for n, t in enumerate(program.in_types)]
    numbers = []
    for op, args, _, types in program.steps():
        operands = tuple([values[n] if n >= 0 else ("const", program.const_key(n)) for n in args])
        number = table.setdefault((op, operands, types), len(table))
        numbers.append(number)
        values.extend([table.setdefault((number, k), len(table)) for k in range(len(types))])
    return numbers


def _match(old: ProgramLike, new: ProgramLike, table: dict[Hashable, int]) -> dict[int, int]:
    """The matched equations as a strictly increasing map from index in ``old`` to index in ``new``."""
    expressions = _expressions(old, table), _expressions(new, table)
    matched: dict[int, int] = {}
    gaps: list[tuple[int, int, int, int]] = []
    _align(*expressions, 0, len(old.ops), 0, len(new.ops), matched, gaps)
    operations = [list(zip(p.ops, p.types)) for p in (old, new)]
    names = [[op.name for op in p.ops] for p in (old, new)]
    for a, b in (operations, names):
        remaining: list[tuple[int, int, int, int]] = []
        for gap in gaps:
            _align(a, b, *gap, matched, remaining)
        gaps = remaining
    return matched


def _align(
    a: Sequence[Any], b: Sequence[Any], i: int, i_end: int, j: int, j_end: int,
    matched: dict[int, int], gaps: list[tuple[int, int, int, int]],
) -> None:
    """Match equal items of ``a[i:i_end]`` and ``b[j:j_end]`` in order; unmatched ranges are appended to ``gaps``."""
    while i < i_end and j < j_end and a[i] == b[j]:
        matched[i] = j
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        matched[i_end] = j_end
    if i == i_end or j == j_end:
        return
    if (i_end - i) + (j_end - j) > MATCHED:
        gaps.append((i, i_end, j, j_end))
        return
    at = (i, j)
    for block in SequenceMatcher(None, a[i:i_end], b[j:j_end], autojunk=False).get_matching_blocks():
        start, other = i + block.a, j + block.b
        if at[0] < start and at[1] < other:
            gaps.append((at[0], start, at[1], other))
        for k in range(block.size):
            matched[start + k] = other + k
        at = (start + block.size, other + block.size)
