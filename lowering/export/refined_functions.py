"""Exported functions with symbolic sizes, for arguments of known sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...effects.base.caches import cached
from ...effects.types.array_type import ArrayType
from ..xla import mlir_modules, shape_refinement
from ..xla.stablehlo_types import tensor
from .dimension_arguments import called_sizes, called_types


@cached("refined functions", 1024)
def refined(exported: Any, types: tuple[ArrayType, ...]) -> Any:
    """The exported function for arguments of these types; itself, where it or they have no sizes to be known.

    Raises: ShapeMismatch: an assertion of the program does not hold.
    """
    sizes = called_sizes(exported, types)
    if not sizes or any([t.ragged for t in types]):
        return exported
    results = called_types(exported, sizes)
    indices = mlir_modules.entry_types(exported.mlir_module_serialized)[0][:-len(exported.module_kept_var_idx)]
    takes = [*indices, *[tensor(types[i]) for i in exported.module_kept_var_idx]]
    artifact = shape_refinement.refined_artifact(
        exported.mlir_module_serialized, exported.fun_name, takes, [tensor(t) for t in results]
    )
    return replace(exported, in_avals=types, out_avals=results, mlir_module_serialized=artifact)
