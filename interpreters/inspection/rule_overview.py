"""``explain_rules``: the rules of one operation, and where each is written."""

from __future__ import annotations

from ...effects.base.errors import BadArgument
from ...effects.core.cell_sources import where_written
from ...effects.core.columns import COLUMNS
from ...effects.core.operation import Operation


def explain_rules(op: type[Operation] | Operation) -> str:
    """Every cell of an operation with the file and line where it is written, third-party ones included.

    A missing cell is listed with its reason, where the operation declares one in ``exempt``.

    Raises: BadArgument: ``op`` is no operation.

    >>> from handlax import operation
    >>> print(explain_rules(operation(type("Nothing", (), {"exempt": {"jvp": "it has no operand"}}))))
    Nothing (nothing) of ...
      jvp          none: it has no operand
    """
    kind = op if isinstance(op, type) else type(op)
    if not issubclass(kind, Operation):
        raise BadArgument(
            f"explain_rules: an operation is needed, got {op!r}.", hint="use the operation Sin, not the function sin."
        )
    lines = [f"{kind.__name__} ({kind.name}) of {kind.__module__}"]
    typed = getattr(kind, "result_tree", kind.result_type) if kind.effectful else kind.result_type
    if getattr(Operation, typed.__name__, None) is not typed:
        lines.append(f"  {'result_type':<12} {where_written(typed, kind, 'result_type')}")
    for name, column in COLUMNS.items():
        cell = column.complete().cell(kind)
        if cell is not None:
            scoped = column.in_scope(kind)
            place = where_written(cell) if scoped else where_written(cell, kind, name)
            lines.append(f"  {name:<12} {place}{'  (in force in this scope)' * scoped}")
        elif name in kind.exempt:
            lines.append(f"  {name:<12} none: {kind.exempt[name]}")
    lines += [f"  exempt from {law}: {why}" for law, why in kind.exempt.items() if law not in COLUMNS]
    return "\n".join(lines)
