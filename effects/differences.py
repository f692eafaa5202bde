"""What differs between two programs: nothing, exactly when they are equal.

    bool(p.diff(q)) == (p != q)

Equations are matched first by the whole expression that they compute, then, between those, by operation and type;
matched equations whose operands do not correspond are wired differently.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from .printing import Printer, row_text, types_text
from .values import Value

if TYPE_CHECKING:
    from .programs import Program

# beyond this many unmatched equations on both sides, matching is by position from both ends: it must stay linear
MATCHED = 2000


class Difference(Value):
    """The difference of two programs, as lines of text; false when there is none.

    ``signature``: inputs, results and effects. ``removed`` and ``inserted``: equations of one side, by index.
    ``changed``: indices in both of what is the same operation with other operands, fields or types.
    ``lines``: all of it, in order.
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


def difference(old: Program, new: Program) -> Difference:
    """What has to change in ``old`` to become ``new``."""
    if old == new:
        return Difference()
    table: dict[Hashable, int] = {}
    matched = _match(old, new, table)
    rename = {n: n for n in range(min(len(old.in_types), len(new.in_types)))}
    starts = _starts(old), _starts(new)
    for i, j in matched.items():
        results = zip(range(starts[0][i], starts[0][i + 1]), range(starts[1][j], starts[1][j + 1]))
        rename.update(results)
    texts = _texts(old), _texts(new)
    same = _same_operand(old, new, rename)
    changed = []
    for i, j in sorted(matched.items()):
        wired = len(old.args[i]) == len(new.args[j]) and all(map(same, old.args[i], new.args[j]))
        if not wired or old.ops[i] != new.ops[j] or old.types[i] != new.types[j]:
            changed.append((i, j, texts[0](i), texts[1](j)))
    taken = set(matched.values())
    removed = tuple([(i, texts[0](i)) for i in range(len(old.ops)) if i not in matched])
    inserted = tuple([(j, texts[1](j)) for j in range(len(new.ops)) if j not in taken])
    signature = _signature(old, new, same, texts)
    lines = (*signature, *_in_order(matched, removed, inserted, changed))
    return Difference(signature, removed, inserted, tuple(changed), lines)


def _in_order(
    matched: dict[int, int], removed: Sequence[tuple[int, str]], inserted: Sequence[tuple[int, str]],
    changed: Sequence[tuple[int, int, str, str]],
) -> list[str]:  # fmt: skip
    """The lines in the order of the old program, what was inserted behind the equation that it follows."""
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


def _starts(program: Program) -> list[int]:
    """The number of each equation's first result, and the number of values at the end."""
    starts = [len(program.in_types)]
    for op, made in zip(program.ops, program.types):
        starts.append(starts[-1] + (len(made) if op.multiple else 1))
    return starts


def _texts(program: Program) -> Any:
    """Index -> the text of that equation; -1 -> the results."""
    printer = Printer(False)
    printer.count(program)
    operand, names = printer.names(program)
    starts = _starts(program)

    def text(i: int) -> str:
        if i < 0:
            return f"return ({', '.join(map(operand, program.outs))})"
        op, made = program.ops[i], program.types[i]
        results = zip(names[starts[i] : starts[i + 1]], made if op.multiple else (made,))
        shown = ", ".join([f"{name}: {printer.type(type)}" for name, type in results])
        operands = "".join([" " + operand(n) for n in program.args[i]])
        return f"{shown}{' = ' if shown else ''}{printer.operation(op)}{operands}"

    return text


def _same_operand(old: Program, new: Program, rename: dict[int, int]) -> Callable[[int, int], bool]:
    def same(a: int, b: int) -> bool:
        if a >= 0 or b >= 0:
            return rename.get(a) == b
        return old.const_key(a) == new.const_key(b)

    return same


def _signature(old: Program, new: Program, same: Callable[[int, int], bool], texts: Any) -> tuple[str, ...]:
    lines = []
    if old.in_types != new.in_types:
        lines += [f"- inputs {types_text(old.in_types)}", f"+ inputs {types_text(new.in_types)}"]
    if old.effects != new.effects:
        lines += [f"- effects {row_text(old.effects)}", f"+ effects {row_text(new.effects)}"]
    if len(old.outs) != len(new.outs) or not all(map(same, old.outs, new.outs)):
        lines += [f"- {texts[0](-1)}", f"+ {texts[1](-1)}"]
    return tuple(lines)


def _expressions(program: Program, table: dict[Hashable, int]) -> list[int]:
    """A number for each equation: equal for equal expressions over the inputs, effects counted as part of the order."""
    values: list[int] = [table.setdefault(("input", n, t), len(table)) for n, t in enumerate(program.in_types)]
    found = []
    for op, args, made in zip(program.ops, program.args, program.types):
        operands = tuple([values[n] if n >= 0 else ("const", program.const_key(n)) for n in args])
        number = table.setdefault((op, operands, made), len(table))
        found.append(number)
        count = len(made) if op.multiple else 1
        values.extend([table.setdefault((number, k), len(table)) for k in range(count)])
    return found


def _match(old: Program, new: Program, table: dict[Hashable, int]) -> dict[int, int]:
    """Index in ``old`` -> index in ``new``, increasing."""
    deep = _expressions(old, table), _expressions(new, table)
    matched: dict[int, int] = {}
    left: list[tuple[int, int, int, int]] = []
    _align(*deep, 0, len(old.ops), 0, len(new.ops), matched, left)
    shallow = [list(zip(p.ops, p.types)) for p in (old, new)]
    names = [[op.name for op in p.ops] for p in (old, new)]
    for a, b in (shallow, names):
        again: list[tuple[int, int, int, int]] = []
        for gap in left:
            _align(a, b, *gap, matched, again)
        left = again
    return matched


def _align(
    a: Sequence[Any], b: Sequence[Any], i: int, i_end: int, j: int, j_end: int,
    matched: dict[int, int], left: list[tuple[int, int, int, int]],
) -> None:  # fmt: skip
    """Match equal items of ``a[i:i_end]`` and ``b[j:j_end]`` in order; what lies between matches is left."""
    while i < i_end and j < j_end and a[i] == b[j]:
        matched[i] = j
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        matched[i_end] = j_end
    if i == i_end or j == j_end:
        return
    if (i_end - i) + (j_end - j) > MATCHED:
        left.append((i, i_end, j, j_end))
        return
    at = (i, j)
    for block in SequenceMatcher(None, a[i:i_end], b[j:j_end], autojunk=False).get_matching_blocks():
        start, other = i + block.a, j + block.b
        if at[0] < start and at[1] < other:
            left.append((at[0], start, at[1], other))
        for k in range(block.size):
            matched[start + k] = other + k
        at = (start + block.size, other + block.size)
