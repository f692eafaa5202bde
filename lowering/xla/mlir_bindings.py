"""MLIR's Python bindings in jaxlib: for lowering rules that build operations with them, and for whole modules.

Loading them takes a quarter of a second, so that they are loaded when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import dialects as dialects
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo

from ...effects.base.errors import CompileError
from ...effects.types.array_type import ArrayType
from .stablehlo_types import dense, storage, tensor

_UPSTREAM = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(_UPSTREAM)


def new_context() -> Any:
    """A context in which the dialects that programs are made of are loaded; it starts no threads."""
    context = ir.Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(_UPSTREAM)
    context.load_all_available_dialects()
    for dialect in (chlo, sdy, stablehlo):
        dialect.register_dialect(context)
    return context


def ir_type(type: ArrayType) -> Any:
    """The tensor type in the current context."""
    return ir.Type.parse(tensor(type))


def ir_constant(value: Any, type: ArrayType) -> Any:
    """A constant of this type at the current insertion point."""
    data = np.asarray(value).astype(storage(type)[1])
    constant = ir.Operation.parse(f"stablehlo.constant {dense(data)} : {tensor(type)}")
    ir.InsertionPoint.current.insert(constant)
    return constant.results[0]


def function_text(
    symbol: str, takes: Sequence[ArrayType], gives: Sequence[ArrayType], body: Callable[..., Any]
) -> str:
    """The text of a private function; ``body(module, *arguments)`` builds its operations and gives its results.

    Functions that ``body`` adds to the module follow; those that it only declares are left out.

    Raises: CompileError: what ``body`` built is not valid.
    """
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            made = func.FuncOp(symbol, ([*map(ir_type, takes)], [*map(ir_type, gives)]), visibility="private")
        with ir.InsertionPoint(made.add_entry_block()):
            func.ReturnOp([*_values(body(module, *made.arguments))])
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise CompileError(f"{symbol}: a lowering rule must build valid operations, got {error}") from None
        return "".join([f"  {f}\n" for f in module.body.operations if not f.is_external])


def call(module: Any, symbol: str, values: Sequence[Any], gives: Sequence[ArrayType]) -> list[Any]:
    """A call of a function that is defined elsewhere, and declared in ``module``."""
    types = [*map(ir_type, gives)]
    if symbol not in [f.name.value for f in module.body.operations]:
        with ir.InsertionPoint(module.body):
            func.FuncOp(symbol, ([v.type for v in values], types), visibility="private")
    return list(func.CallOp(types, ir.FlatSymbolRefAttr.get(symbol), list(values)).results)


def _values(results: Any) -> Iterator[Any]:
    """The values among the results of a rule: a value, an operation with one result, or a sequence of these."""
    if isinstance(results, ir.Value):
        yield results
    elif isinstance(results, ir.OpView):
        yield results.result
    else:
        for result in results:
            yield from _values(result)
