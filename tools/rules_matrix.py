"""Print the matrix of rules as markdown: a row per operation, a column per handler, and why a cell is missing.

    python tools/rules_matrix.py > matrix.md
"""

from __future__ import annotations

from collections import defaultdict

import handlax
from handlax.effects.core.cell_sources import shown
from handlax.effects.core.columns import COLUMNS, ElementwiseLowering, LinearIn
from handlax.effects.core.operation import OPERATIONS, Operation

STANDARD_RULES = ("linear", "multilinear", "componentwise", "zero", "decomposed", "per_operand", "data_movement")


def families() -> dict[str, list[type[Operation]]]:
    """The operations of the library by the file that defines them."""
    for name in handlax.__all__:  # some are imported at first access
        getattr(handlax, name)
    for column in COLUMNS.values():
        column.complete()
    by_family: dict[str, list[type[Operation]]] = defaultdict(list)
    for kind in {id(kind): kind for kind in OPERATIONS.values()}.values():
        package, _, family = kind.__module__.rpartition(".")
        if package.split(".")[0] == "handlax":
            by_family[family].append(kind)
    return {family: sorted(kinds, key=lambda kind: kind.name) for family, kinds in sorted(by_family.items())}


def cell(kind: type[Operation], column: str) -> str:
    """The text of a cell: the name of a standard rule or of an operation of StableHLO or CHLO, ``rule`` for code.

    It is ``exempt`` where a reason follows below.
    """
    written = COLUMNS[column].cell(kind)
    if written is None:
        return "exempt" if column in kind.exempt else ""
    if isinstance(written, str | LinearIn):
        return shown(written)
    if isinstance(written, ElementwiseLowering):
        return shown(written.name)
    name = getattr(written, "__name__", "")
    return name if name in STANDARD_RULES else "rule"


def table(kinds: list[type[Operation]]) -> list[str]:
    """The rows of one family, followed by the reasons of exemptions."""
    columns = [name for name in COLUMNS if any(name in kind.exempt or COLUMNS[name].has(kind) for kind in kinds)]
    lines = [f"| {' | '.join(['operation', *columns])} |", f"|{' --- |' * (len(columns) + 1)}"]
    for kind in kinds:
        effect = " (effect)" if kind.effectful else ""
        lines.append(f"| {' | '.join([f'`{kind.name}`{effect}', *[cell(kind, column) for column in columns]])} |")
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind in kinds:
        for law, why in kind.exempt.items():
            reasons[why][law].append(f"`{kind.name}`")
    for why, laws in reasons.items():
        exempt = "; ".join([f"{law} of {', '.join(names)}" for law, names in laws.items()])
        lines.append(f"{'' if lines[-1][:1] == '-' else chr(10)}- {exempt}: {why}.")
    return [*lines, ""]


def matrix() -> str:
    """The matrix of all families, a heading for each."""
    lines = ["# The matrix of rules", ""]
    for family, kinds in families().items():
        lines += [f"## {family}", "", *table(kinds)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(matrix())
