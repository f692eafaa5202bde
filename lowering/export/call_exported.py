"""Calls of exported functions: an operation by its types and its lowering, with the exported derivative.

    exported.call(x) == f(x)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.caches import cached
from ...effects.base.errors import DeviceMismatch, DTypeMismatch, NotExportable, ShapeMismatch, TreeMismatch
from ...effects.base.stack import perform
from ...effects.core.arrays import as_array
from ...effects.core.operation import effect, operation
from ...effects.operations.foundations.shapes import zeros
from ...effects.sharding.mesh import AbstractMesh
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.trees import pytrees
from ...effects.types.array_type import array_type
from ...effects.types.dtypes import float0
from ...effects.types.extent import Extent
from ...interpreters.custom.custom_vjp import custom_vjp
from ...interpreters.custom.custom_vmap import sequential_vmap
from ..compile.emitter import identifier
from ..jit.jit import jit
from ..xla import mlir_modules
from ..xla.stablehlo_types import names, signature, tensor
from .artifact_schema import FOREIGN_EFFECT
from .dimension_arguments import argument_labels, called_sizes, called_types
from .refined_functions import refined


# (y, ...) = f(x, ...), of which the StableHLO alone is known; ``call`` gives it a derivative, and lanes
@operation
class CallExported:
    exported: Any
    multiple_results = True

    def result_type(op, *types):
        return called_types(op.exported, check_types(op.exported, types))

    def sharding_rule(op, operands, results):  # as it was exported, over a mesh of its own
        return [(UNCONSTRAINED,) * len(t.shape) for t in results]

    def lower(op, emit, *values):
        exported = refined(op.exported, tuple([x.type.strong() for x in values]))
        _check_devices(exported, emit)
        given = _constrained(emit, exported, values, exported._in_named_shardings)
        taken = [_converted(emit, given[i], exported.in_avals[i]) for i in exported.module_kept_var_idx]
        index = _platform(exported, emit.platform)
        if len(exported.platforms) > 1:
            taken.insert(0, emit.constant(index, _index_type(exported)))
        types = exported.out_avals
        text = f"func.call @{_entry(emit, exported)}({names(taken)}) : {signature(taken, types)}"
        made = [_converted(emit, y, t) for y, t in zip(emit.results(text, types), emit.made)]
        return _constrained(emit, exported, made, exported._out_named_shardings)


# the same, of a program that calls foreign functions with side effects: in every call, and in that of every lane
@effect(vmap="per_lane")
class CallExportedEffect(CallExported):
    calls_host = True


def call_exported(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of an exported function. Raises: as ``Exported.call``."""
    leaves, tree = pytrees.flatten((args, kwargs))
    if tree != exported.in_tree:
        raise TreeMismatch(
            f"{exported.fun_name}: the exported function takes arguments of structure {exported.in_tree}, got {tree}.",
            hint="give (args, kwargs) as they were described to export.",
        )
    xs = [as_array(x) for x in leaves]
    check_types(exported, [x.type for x in xs])
    unknown = [*exported.ordered_effects, *[name for name in exported.unordered_effects if name != FOREIGN_EFFECT]]
    if unknown:
        raise NotExportable(
            f"{exported.fun_name}: a function that is called must have no effects but those of foreign functions, got "
            f"{', '.join(unknown)}.",
            hint="call it where it was exported.",
        )
    return exported.out_tree.unflatten(_differentiable(exported)(*xs))


@cached("exported functions", 1024)
def _differentiable(exported: Any) -> Any:
    """The function of leaves, whose reverse derivative is the exported one; lanes of ``vmap`` are a loop.

    Those of effects are performed as every effect is, nested ones row by row.
    """

    kind = CallExportedEffect if exported.unordered_effects else CallExported

    def call(*xs: Any) -> Any:
        return perform(kind(exported), *xs)

    def backward(xs: Any, cts: Any) -> tuple[Any, ...]:
        derivative = exported.vjp()
        results = called_types(exported, check_types(exported, [x.type for x in xs]))
        expected = [t.update(dtype=taken.dtype) for t, taken in zip(results, derivative.in_avals[len(xs) :])]
        cts = [zeros(t) if t.dtype == float0 else ct for t, ct in zip(expected, cts)]
        found = call_exported(derivative, (*xs, *cts), {})
        return tuple([None if ct.dtype == float0 else ct for ct in found])

    call.__name__ = backward.__name__ = exported.fun_name
    function = custom_vjp(call if exported.unordered_effects else sequential_vmap(call))
    function.defvjp(lambda *xs: (function(*xs), xs), backward)
    return jit(function)


def check_types(exported: Any, types: Sequence[Any]) -> dict[Any, Any]:
    """The sizes of the dimension variables in a call with arguments of these types.

    Raises: ShapeMismatch, DTypeMismatch: an argument has another type than that which was exported.
    """
    for i, (t, wanted) in enumerate(zip(types, exported.in_avals)):
        fits = t.shape == wanted.shape or _fits(t.shape, wanted.shape)
        if not fits or t.dtype != wanted.dtype:
            name = argument_labels(exported.in_tree)[i]
            kind = DTypeMismatch if fits else ShapeMismatch
            raise kind(
                f"{exported.fun_name}: argument {name} must be {wanted}, as it was exported, got {t}.",
                hint="convert it, or export the function for this type.",
            )
    return called_sizes(exported, types)


def _fits(shape: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether a shape has the sizes of another that are numbers."""
    return len(shape) == len(wanted) and all([type(n) is Extent or size == n for size, n in zip(shape, wanted)])


def _converted(emit: Any, x: Any, type: Any) -> Any:
    """A value with the sizes of a type that are numbers there, and without those that are not."""
    text = f"stablehlo.convert {x.name} : ({tensor(x.type)}) -> {tensor(type)}"
    return x._replace(type=type) if tensor(x.type) == tensor(type) else emit.new(text, type)


def _check_devices(exported: Any, emit: Any) -> None:
    """Raises: DeviceMismatch: the program is for another number of devices than the one that is being lowered."""
    found = 1 if emit.mesh_of_all is None else emit.mesh_of_all.size
    if exported.nr_devices not in (1, found):
        raise DeviceMismatch(
            f"{exported.fun_name}: a function that was exported for {exported.nr_devices} devices must be called on as "
            f"many, got {found}.",
            hint="device_put the arguments by in_shardings_jax(mesh).",
        )


def _platform(exported: Any, platform: str) -> int:
    """The index of the platform that is lowered for. Raises: NotExportable: the program was not exported for it."""
    if platform in exported.platforms:
        return int(exported.platforms.index(platform))
    if exported.allows_other_platforms:
        return 0
    raise NotExportable(
        f"{exported.fun_name}: a function must be called on a platform that it was exported for, which are "
        f"{', '.join(exported.platforms)}, got {platform}.",
        hint=f"export(f, platforms=[{platform!r}]).",
    )


def _index_type(exported: Any) -> Any:
    """The type of the index of a platform, which JAX writes in either width of its default integers."""
    takes, _ = mlir_modules.entry_types(exported.mlir_module_serialized)
    return array_type((), np.dtype("int32" if takes[0] == "tensor<i32>" else "int64"))


def _constrained(emit: Any, exported: Any, values: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    """The values with the shardings for which the program was exported."""
    if exported.nr_devices == 1:
        return list(values)
    return [x if s is None else emit.sharding_constraint(x, s) for x, s in zip(values, shardings)]


def _entry(emit: Any, exported: Any) -> str:
    """The symbol of the program's entry in the module that is being emitted, which gets its functions once."""
    if exported not in emit.functions:
        module = mlir_modules.read_artifact(exported.mlir_module_serialized)
        axes = mlir_modules.meshes_of(module)
        label = f"{identifier(exported.fun_name)}_{len(emit.functions)}"
        symbols = {symbol: f"{label}_{i}" for i, symbol in enumerate(mlir_modules.symbols_of(module))}
        for symbol, pairs in axes.items():
            mesh = AbstractMesh([size for _, size in pairs], tuple([name for name, _ in pairs]))
            symbols[symbol] = emit.mesh(mesh).removeprefix("@")
        for function in mlir_modules.renamed_functions(module, symbols):
            emit.functions[exported, function.symbol] = function.symbol, f"  {function.text}\n"
        emit.functions[exported] = symbols["main"], ""
    return str(emit.functions[exported][0])
