"""Dimension variables of exported functions: their values from the shapes of arguments, in the program and in calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.caches import cached
from ...effects.base.errors import ShapeMismatch
from ...effects.types.array_type import ArrayType
from ...effects.types.dimension_equations import DimensionEquations, holds, solve, substituted
from ...effects.types.extent import floor_divided
from ...interpreters.core.trace_cache import leaf_names
from ..compile.attributes import quoted
from ..compile.symbolic_sizes import SIZE
from ..xla.stablehlo_types import names, signature


def argument_labels(tree: Any) -> list[str]:
    """The names of the leaves of the arguments: ``args[0]['w']``."""
    return leaf_names(lambda n: f"args[{n}]", tree)


def bind_variables(emit: Any, values: Sequence[Any], equations: DimensionEquations) -> None:
    """Emit the values of the dimension variables, computed from the shapes of the arguments, and their checks.

    A program whose shapes are refined drops assertions that hold; one that does not hold is an error there.
    """
    for symbol, equation, factor, rest in equations.solutions:
        size = _measured(emit, values, equation)
        if rest or factor != 1:
            quotient = lambda size, rest, factor=factor: (size - rest) // factor
            size = emit.decompose(quotient, size, emit.size(rest))
        emit.symbols[symbol] = size
    for check in equations.checks:
        size = emit.size(check.size)
        if check.equation is not None:
            size = emit.binary("subtract", size, _measured(emit, values, check.equation))
        ok = emit.compare("EQ" if check.equal else "GE", size, emit.constant(0, SIZE))
        message = quoted(f"the sizes of arguments must be such that {check.claim}, got {{0}} for the difference.")
        call = f"stablehlo.custom_call @shape_assertion({names([ok, size])})"
        attributes = f"{{error_message = {message}, has_side_effect = true}}"
        emit.results(f"{call} {attributes} : {signature([ok, size], [])}", [])


def _measured(emit: Any, values: Sequence[Any], equation: Any) -> Any:
    """The actual size of the argument of an equation."""
    x = values[equation.argument]
    return emit.inline("get_dimension_size", f"{x.name}, dim = {equation.axis}", x, type=SIZE)


def called_sizes(exported: Any, types: Sequence[ArrayType]) -> dict[Any, Any]:
    """The sizes of the dimension variables in a call with arguments of these types, numbers or symbolic.

    Raises: ShapeMismatch: the sizes do not fit together, or a constraint does not hold.
    """
    if not any([t.ragged for t in exported.in_avals]):
        return {}
    equations = _equations(exported.in_avals, exported.in_tree, exported.fun_name)
    actual = lambda equation: types[equation.argument].shape[equation.axis]
    values = equations.values(actual, floor_divided)
    for check in equations.checks:
        if not holds(check, values, actual):
            found = ", ".join([f"{symbol} = {size}" for symbol, size in values.items()])
            shown = ", ".join([f"{name}: {t}" for name, t in zip(argument_labels(exported.in_tree), types)])
            raise ShapeMismatch(
                f"{exported.fun_name}: the sizes of the arguments must be such that {check.claim}, as it was exported, "
                f"got {shown}, from which {found}.",
                hint="other sizes, or export the function for these.",
            )
    return values


@cached("dimension equations", 1024)
def _equations(types: tuple[ArrayType, ...], tree: Any, name: str) -> DimensionEquations:
    """The solutions for the variables in the types of the arguments of an exported function."""
    return solve(types, argument_labels(tree), name)


def called_types(exported: Any, sizes: dict[Any, Any]) -> tuple[ArrayType, ...]:
    """The types of the results in a call with these sizes."""
    return tuple([t.with_sizes(lambda size: substituted(size, sizes)) for t in exported.out_avals])
