"""The text of a call through XLA's foreign function interface, of functions on stacks of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...effects.types.array_type import ArrayType
from ..xla.stablehlo_types import ELEMENT, names, short_signature


def foreign_call_text(
    target: str,
    values: Sequence[Any],
    types: Sequence[ArrayType],
    into: Mapping[int, int],
    attributes: Mapping[str, Any],
    partitioned: bool,
) -> str:
    """The call of the function ``target`` on SSA values, with results of these types.

    Values of the highest rank are matrices, which are column-major, whatever their leading dimensions are; ``into[i]``
    is the result in the memory of operand ``i``. A ``partitioned`` program may be cut along leading dimensions.
    """
    given = [v.type for v in values]
    rank = max([len(t.shape) for t in given])
    fields = [_attribute(name, value) for name, value in attributes.items()]
    parts = ["api_version = 4 : i32", f"backend_config = {{{', '.join(fields)}}}"]
    parts.append(f"operand_layouts = [{', '.join([_layout(t, rank) for t in given])}]")
    parts.append(f"result_layouts = [{', '.join([_layout(t, rank) for t in types])}]")
    if into:
        parts.append(f"output_operand_aliases = [{', '.join([_alias(i, y, len(types)) for i, y in into.items()])}]")
    if partitioned and rank > 2:
        parts.append(f'mhlo.frontend_attributes = {{num_batch_dims = "{rank - 2}"}}')
        parts.append(f"sdy.sharding_rule = {_sharding_rule(rank - 2, given, types)}")
    return f"stablehlo.custom_call @{target}({names(values)}) {{{', '.join(parts)}}} : {short_signature(values, types)}"


def _attribute(name: str, value: Any) -> str:
    """A field of the call: a letter, a boolean, or a NumPy scalar, of its dtype."""
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, str):
        return f"{name} = {ord(value)} : ui8"
    return f"{name} = {value} : {ELEMENT[np.dtype(value.dtype).name]}"


def _layout(t: ArrayType, rank: int) -> str:
    """The order of the dimensions in memory, the one whose neighbours are adjacent first."""
    order = list(range(len(t.shape)))[::-1]
    if len(order) == rank:
        order[:2] = order[1::-1]
    return f"dense<{order if order else ''}> : tensor<{len(order)}xindex>"


def _alias(operand: int, result: int, count: int) -> str:
    at = [result] if count > 1 else []
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {at}, operand_index = {operand},"
        " operand_tuple_indices = []>"
    )


def _sharding_rule(lanes: int, given: Sequence[ArrayType], types: Sequence[ArrayType]) -> str:
    """Shardy's rule: leading dimensions are cut together, and no others."""
    sizes = list(given[0].shape[:lanes])
    texts = []
    for t in (*given, *types):
        own = range(len(sizes), len(sizes) + len(t.shape) - lanes)
        sizes += t.shape[lanes:]
        texts.append(f"[{', '.join(map(_factor, [*range(lanes), *own]))}]")
    pairs = [f"{_factor(n)}={size}" for n, size in enumerate(sizes)]
    takes, gives = ", ".join(texts[: len(given)]), ", ".join(texts[len(given) :])
    return f"#sdy.op_sharding_rule<({takes})->({gives}) {{{', '.join(pairs)}}}, custom>"


def _factor(number: int) -> str:
    """Shardy's name of a factor: i, j, ..., z, z_1, z_2, ..."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"
