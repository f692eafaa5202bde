"""Equations of handlax, bound as primitives of JAX's.

    bind_program(make_program(f)(*xs), xs) == f(*xs)

An operation is bound as the primitive of its name with ``op.as_params()``; ``WRITERS`` has the operations for which
that is not so. An operation without a counterpart, and an effect that nobody handles, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects.base.errors import NotProvided, UnhandledEffect
from ..effects.base.source_locations import Site
from ..effects.core.operation import Operation
from ..effects.programs.primitives import primitive_of
from ..effects.programs.program import Program
from ..effects.types.array_type import ArrayType
from ..effects.types.dtypes import KeyDType
from .jax_modules import jax, jax_primitives
from .jax_values import their_array, their_dtype, their_type, their_weakness, translated

Types = Sequence[ArrayType]
WRITERS: dict[str, Callable[..., Any]] = {}
"""Operation, by its primitive -> function of it and of JAX's values that gives its results in JAX."""


def bind_program(program: Program, args: Sequence[Any]) -> list[Any]:
    """The results of a program on values of JAX's, by primitives of JAX's, with exactly the types that it states."""
    values = [*args, *[None] * (program.count - len(args)), *map(their_array, reversed(program.consts))]
    for (op, numbers, results, types), site in zip(program.steps(), program.sites):
        ys = bound(op, [values[n] for n in numbers], types, Site(*site))
        values[results.start : results.stop] = ys
    return [values[n] for n in program.outs]


def bound(op: Operation, xs: Sequence[Any], types: Types, site: Site) -> list[Any]:
    """The results of one operation.

    Raises: UnhandledEffect: it has an effect. NotProvided: JAX has no such primitive.
    """
    name = primitive_of(type(op)).name
    if name in WRITERS:
        ys = WRITERS[name](op, *xs)
    else:
        if op.effectful:
            raise UnhandledEffect(
                f"to_jax: every effect must be handled, got {op} (at {site}).",
                hint="handle it inside: to_jax(hx.handle(handler, state)(f)).",
            )
        primitive = jax_primitives().get(name)
        if primitive is None:
            raise NotProvided(f"to_jax: an operation that JAX has is needed, got {name} (at {site}).")
        params = {key: their_parameter(value) for key, value in op.as_params().items()}
        ys = primitive.bind(*op.primitive_operands(xs), **params)
        ys = ys if primitive.multiple_results else [ys]
    return [their_weakness(y, t) for y, t in zip(ys, types, strict=True)]


def jaxpr_of(program: Program) -> Any:
    """The closed jaxpr of a program."""
    return jax.make_jaxpr(lambda *xs: bind_program(program, xs))(*map(their_type, program.in_types))


def their_parameter(value: Any) -> Any:
    """A parameter of an operation as JAX's primitive has it."""
    return translated(value, "jax", _theirs)


def _theirs(value: Any) -> Any:
    if isinstance(value, Program):
        return jaxpr_of(value)
    return their_dtype(value) if isinstance(value, KeyDType) else None
