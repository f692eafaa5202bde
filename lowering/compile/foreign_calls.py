"""The text of a call of a function that XLA finds by its name: ``stablehlo.custom_call``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.operations.foundations.foreign_call import ForeignCall, Layouts
from ...effects.sharding.factor_rules import SizedRule, factors_text
from ...effects.types.array_type import ArrayType
from ..xla.stablehlo_types import names, short_signature, storage
from .attributes import bare, dictionary_text, quoted
from .manual_computation import need_no_automatic


def foreign_call(emit: Any, call: ForeignCall, values: Sequence[Any]) -> list[Any]:
    """The results of a call on SSA values.

    Raises: CannotCross: it has side effects, the program is for several devices, and no region says what each does.
    """
    if call.side_effect and emit.mesh_of_all is not None:  # XLA gives the call no device of its own, and fails
        if emit.manual is None:
            raise CannotCross(
                f"ffi_call {call.target!r}: a program over several devices cannot call a function with side effects, "
                f"since XLA does not know which of {emit.mesh_of_all.size} devices calls.",
                hint="call it inside hx.shard_map, where each device does, on its piece.",
            )
        need_no_automatic(call.target, emit.manual)
    ragged = any([t.ragged for t in call.types])
    shapes = [emit.sizes(storage(t)[0]) for t in call.types] if ragged else []
    text = _text(call, values, shapes, emit.mesh_of_all is not None)
    results: list[Any] = emit.results(text, call.types)
    return results


def _text(call: ForeignCall, values: Sequence[Any], shapes: Sequence[Any], partitioned: bool) -> str:
    """The call on SSA values; ``shapes``: those of the results, where some are known only when the program is
    executed; ``partitioned``: it is for several devices.
    """
    taken = [*values, *shapes]
    given, types = [v.type for v in taken], call.types
    config = dictionary_text(call.attributes) if call.api_version >= 4 else quoted(call.config or "")
    parts = [f"api_version = {call.api_version} : i32", f"backend_config = {config}"]
    if call.side_effect:
        parts.append("has_side_effect = true")
    parts.append(f"operand_layouts = {_layouts(call.operand_layouts, given)}")
    parts.append(f"result_layouts = {_layouts(call.result_layouts, types)}")
    if shapes:
        places = [*range(len(values), len(taken))]
        parts.append(f"indices_of_shape_operands = dense<{places}> : tensor<{len(types)}xi64>")
    if call.into:
        aliases = [_alias(i, y, len(types)) for i, y in call.into.items()]
        parts.append(f"output_operand_aliases = [{', '.join(aliases)}]")
    if partitioned and call.batch_dims:
        parts.append(f'mhlo.frontend_attributes = {{num_batch_dims = "{call.batch_dims}"}}')
        parts.append(f"sdy.sharding_rule = {_sharding_rule(call.batch_dims, given, types)}")
    made = short_signature(taken, types)
    return f"stablehlo.custom_call @{bare(call.target)}({names(taken)}) {{{', '.join(parts)}}} : {made}"


def _layouts(layouts: Layouts, types: Sequence[ArrayType]) -> str:
    """The orders of the dimensions in memory, in StableHLO's words: the one whose neighbours are adjacent first."""
    orders = [*(layouts or ()), *[None] * (len(types) - len(layouts or ()))]
    return f"[{', '.join([_layout(len(storage(t)[0]), order) for t, order in zip(types, orders)])}]"


def _layout(rank: int, order: Sequence[int] | None) -> str:
    listed = [*(range(rank) if order is None else order)][::-1]
    return f"dense<{listed or ''}> : tensor<{rank}xindex>"


def _alias(operand: int, result: int, count: int) -> str:
    at = [result] if count > 1 else []
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {at}, operand_index = {operand},"
        " operand_tuple_indices = []>"
    )


def _sharding_rule(lanes: int, given: Sequence[ArrayType], types: Sequence[ArrayType]) -> str:
    """Shardy's rule: leading dimensions are cut together, and no others."""
    sizes: dict[str, int] = {}
    rows = []
    for i, t in enumerate((*given, *types)):
        dims = [f"lane {d}" if d < lanes else f"{d} of {i}" for d in range(len(t.shape))]
        sizes.update(zip(dims, t.shape))
        rows.append([(factor,) for factor in dims])
    return factors_text(SizedRule(rows[: len(given)], rows[len(given) :], sizes))
