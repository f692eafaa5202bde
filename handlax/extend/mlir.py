"""``handlax.extend.mlir``: the lowering of primitives, as JAX has it in ``jax.interpreters.mlir``.

    register_lowering(p, rule)                                      values = rule(ctx, *operands, **params)
    register_lowering(p, lower_fun(f, multiple_results=False))      y = f(*operands, **params)

A rule builds operations with MLIR's bindings, ``ir`` and ``dialects``. They become a private function of the module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..effects.base.errors import BadArgument, MissingRule
from ..effects.base.frozen_values import Value
from ..effects.control.callbacks import io_callback, pure_callback
from ..effects.core.arrays import type_of
from ..effects.core.columns import DECOMPOSE, LOWER, Rule
from ..effects.core.operation import result_type
from ..effects.programs.primitives import Primitive, primitive_of
from ..effects.types.array_type import ArrayType, array_type
from ..interpreters.core.record import record
from ..lowering.xla import mlir_bindings
from ..lowering.xla.mlir_bindings import dialects as dialects
from ..lowering.xla.mlir_bindings import ir as ir
from .checked_results import checked_list

__all__ = [
    "LoweringRuleContext", "ModuleContext", "aval_to_ir_type", "dialects", "dtype_to_ir_type", "emit_python_callback",
    "ir", "ir_constant", "lower_fun", "register_lowering",
]


class ModuleContext(Value):
    """The module that a rule adds to, and the platforms that it is for."""

    context: Any
    module: Any
    platforms: tuple[str, ...]

    def add_keepalive(self, keepalive: None) -> None:
        """Keep what a callback needs as long as the module: None, for it keeps the host's functions that it calls.

        Raises: BadArgument: another object.
        """
        if keepalive is not None:
            raise BadArgument(f"add_keepalive: what emit_python_callback gives is needed, None, got {keepalive!r}.")


class LoweringRuleContext(Value):
    """What a rule knows: the module, the primitive, and the types of operands and results."""

    module_context: ModuleContext
    primitive: Primitive
    avals_in: tuple[ArrayType, ...]
    avals_out: tuple[ArrayType, ...]
    emit: Any

    def replace(self, **fields: Any) -> LoweringRuleContext:
        return dataclasses.replace(self, **fields)


class LoweredFunction(Value):
    """What ``lower_fun`` makes: as a rule of its own it needs no bindings, in another rule it calls a function."""

    f: Callable[..., Any]
    multiple_results: bool

    def __call__(self, ctx: LoweringRuleContext, *values: Any, **params: Any) -> Sequence[Any]:
        program = record(lambda *xs: self.results(*xs, **params), ctx.avals_in)
        symbol = ctx.emit.private(program, ctx.primitive.name)
        return mlir_bindings.call(ctx.module_context.module, symbol, values, program.out_types)

    def results(self, *xs: Any, **params: Any) -> list[Any]:
        y = self.f(*xs, **params)
        return list(y) if self.multiple_results else [y]

    def decompose(self, op: Any, *xs: Any) -> Any:
        """The cell of ``decompose`` of a primitive's operation: what the function gives for its parameters."""
        types = op.as_results(result_type(op, tuple([x.type for x in xs])))
        results = self.results(*xs, **op.as_params())
        return op.from_results(checked_list(f"{op.name}, register_lowering", results, types))


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """The lowering rule of a primitive that computes ``fun``, a function of arrays."""
    return LoweredFunction(fun, multiple_results)


class PlatformRules(Value):
    """The cell of ``lower`` by the rules of a primitive: that of the platform, that of all, or what it had before."""

    former: Rule | None
    by_platform: Mapping[str | None, Rule]

    def __call__(self, op: Any, emit: Any, *values: Any) -> Any:
        rule = self.by_platform.get(emit.platform) or self.by_platform.get(None)
        if isinstance(rule, LoweredFunction):
            return emit.decompose(partial(rule.decompose, op), *values)
        if rule is not None:
            return _by_bindings(rule, op, emit, values)
        if self.former is not None:
            return self.former(op, emit, *values)
        raise MissingRule(
            f"{op.name}: there is no lowering for {emit.platform}, only for {', '.join(map(str, self.by_platform))}.",
            hint=f"register_lowering({op.name}_p, rule).",
        )


_ALIASES = {"gpu": ("cuda", "rocm")}


def register_lowering(
    prim: Primitive, rule: Rule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Rule:
    """Make ``rule`` the lowering of a primitive, on one platform (``cpu``, ``cuda``, ``gpu``, ...) or on all others.

    ``inline`` and ``cacheable`` change nothing: equal operations of a module share one function, which XLA inlines.
    """
    known = LOWER.cell(prim.operation)
    rules = known if isinstance(known, PlatformRules) else PlatformRules(LOWER.registered(prim.operation), {})
    platforms = _ALIASES.get(platform or "", (platform,))
    LOWER.assign(prim.operation, PlatformRules(rules.former, {**rules.by_platform, **dict.fromkeys(platforms, rule)}))
    if platform is None and isinstance(rule, LoweredFunction):  # which other interpreters can follow too
        DECOMPOSE.assign(prim.operation, rule.decompose)
    return rule


def _by_bindings(rule: Rule, op: Any, emit: Any, values: Sequence[Any]) -> Any:
    """The results of a rule in MLIR's values: a call of the function that it builds."""
    takes, gives = tuple([v.type for v in values]), tuple(op.as_results(emit.made))
    primitive = primitive_of(type(op))

    def body(module: Any, *arguments: Any) -> Any:
        inside = ModuleContext(module.context, module, (emit.platform,))
        return rule(LoweringRuleContext(inside, primitive, takes, gives, emit), *arguments, **op.as_params())

    symbol = emit.defined(
        (op, takes), op.name, lambda symbol: mlir_bindings.function_text(symbol, takes, gives, body)
    )
    return op.from_results(emit.call_of(symbol, values, gives))


def aval_to_ir_type(aval: ArrayType) -> Any:
    """The tensor type of values of this type."""
    return mlir_bindings.ir_type(aval)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The type of the elements of a tensor."""
    return ir.RankedTensorType(mlir_bindings.ir_type(array_type((), dtype))).element_type


def ir_constant(val: Any, *, aval: ArrayType | None = None) -> Any:
    """A constant, as a value of MLIR."""
    aval = type_of(val) if aval is None else aval
    return mlir_bindings.ir_constant(val, aval)


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable[..., Any], token: Any, operands: Sequence[Any],
    operand_avals: Sequence[ArrayType], result_avals: Sequence[ArrayType], *, has_side_effect: bool,
    sharding: None = None,
) -> tuple[Sequence[Any], Any, Any]:
    """A call of the host: ``results = callback(*operands)`` with NumPy arrays; gives them, ``token`` and None.

    Raises: BadArgument: a ``sharding`` is asked for.
    """
    if sharding is not None:
        raise BadArgument(
            f"emit_python_callback: sharding must be None, got {sharding}.",
            hint="lower_fun of a function that calls pure_callback under shard_map.",
        )
    perform = io_callback if has_side_effect else pure_callback
    call = lower_fun(lambda *xs: perform(callback, tuple(result_avals), *xs))
    return call(ctx.replace(avals_in=tuple(operand_avals)), *operands), token, None
