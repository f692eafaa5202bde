"""The text of calls of the host: which function, and which of several devices call it; and of what the compiler calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.control.callbacks import Callback
from ...effects.operations.foundations.foreign_call import PARTITIONED_CALL
from ...effects.sharding.factor_rules import factors_text
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.types.array_type import ArrayType
from ..xla.compiler_calls import INSPECTION, Inspection, UserPartitionCall
from ..xla.host_callbacks import HOST_CALL, HostCall
from ..xla.stablehlo_types import names, short_signature, storage
from .manual_computation import need_no_automatic


def host_call(emit: Any, op: Callback, values: Sequence[Any]) -> list[Any]:
    """A call of the host function of a callback, which is added to the module's ``calls``."""
    types = emit.made
    program, index = emit.here
    first_alone = emit.mesh_of_all is not None and emit.manual is None
    whole = NamedSharding(emit.mesh_of_all, PartitionSpec()) if first_alone else None
    values = [emit.sharding_constraint(x, whole) if whole else x for x in values]
    effect = "true" if op.effectful else "false"
    text = (
        f"stablehlo.custom_call @{HOST_CALL}({names(values)}) {{api_version = 4 : i32,"
        f" has_side_effect = {effect}, backend_config = {{index = {len(emit.calls)} : ui64}}"
        f"{_caller(emit, op, types)}}} : {short_signature(values, types)}"
    )
    emit.calls.append(HostCall(op, program.sites[index], None if emit.mesh_of_all is None else types))
    results: list[Any] = emit.results(text, types)
    if whole is None or not results:
        return results
    apart = emit.ops("optimization_barrier", *results, types=types)  # else XLA takes their sharding for the call's
    return [emit.sharding_constraint(y, whole) for y in apart]


def _caller(emit: Any, op: Callback, types: Sequence[ArrayType]) -> str:
    """Which of several devices call the host: in a manual region each, on its pieces; else the first, on all."""
    if emit.mesh_of_all is None:
        return ""
    each = ["<mesh<[], device_ids=[0]>, []>"] * max(len(types), 1)
    if emit.manual is not None:
        need_no_automatic(op.name, emit.manual)
        ranks = [len(storage(t)[0]) for t in types] or [0]
        each = [f"<mesh<[]>, [{', '.join(['{}'] * rank)}]>" for rank in ranks]
    return f", sdy.sharding = #sdy.sharding_per_value<[{', '.join(each)}]>"


def inspect_sharding(emit: Any, op: Any, x: Any) -> None:
    """The request that the compiler call ``op.inspected`` with the sharding of a value; of one device it is known."""
    if emit.mesh_of_all is not None:
        number = f'backend_config = "{INSPECTION}{len(emit.calls)}"'
        attributes = f"{{api_version = 1 : i32, has_side_effect = true, {number}}}"
        asked = f"stablehlo.custom_call @InspectSharding({x.name}) {attributes} : {short_signature([x], [x.type])}"
        emit.new(asked, x.type)
    emit.calls.append(Inspection(op, len(storage(x.type)[0])))


def partitioned_call(emit: Any, op: Any, values: Sequence[Any]) -> list[Any]:
    """The call in whose place the compiler takes what ``op.partition`` says; the body on one device, and in a region
    that each device executes on its own parts.
    """
    if emit.mesh_of_all is None or emit.manual is not None:
        called: list[Any] = emit.call(op.bodies[0], op.label, values)
        return called
    program, index = emit.here
    types = emit.made
    rule = op.partition.sized_rule(emit.mesh_of_all)
    ruled = ""
    if rule is not None and values and types:  # the text of a rule must have an array on each side
        stored = rule.of_storage([storage(x.type)[0] for x in values], [storage(t)[0] for t in types])
        ruled = f", sdy.sharding_rule = {factors_text(stored)}"
    number = f'api_version = 2 : i32, backend_config = "{PARTITIONED_CALL}{len(emit.calls)}"'
    emit.calls.append(UserPartitionCall(op, program.sites[index], emit.mesh_of_all, emit.platform))
    text = f"stablehlo.custom_call @{PARTITIONED_CALL}({names(values)}) {{{number}{ruled}}}"
    made: list[Any] = emit.results(f"{text} : {short_signature(values, types)}", types)
    return made
