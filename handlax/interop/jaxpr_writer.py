"""Equations of handlax, bound as primitives of JAX's.

    bind_program(make_program(f)(*xs), xs) == f(*xs)

An operation of the package is bound as the primitive of its name with ``op.as_params()``; ``WRITERS`` has those for
which that is not so. Of any other pure operation, one that JAX does not have, a user's, or one whose rules ``hx.rules``
replaces, a primitive is made, whose rules are what the handlers of handlax make of the operation. An effect that nobody
handles is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..effects.base import config
from ..effects.base.caches import Cache
from ..effects.base.errors import NotProvided, UnhandledEffect
from ..effects.base.frozen_values import Value
from ..effects.base.lazy_module import LazyModule
from ..effects.base.source_locations import NOWHERE, Site, is_ours
from ..effects.base.stack import perform
from ..effects.core.columns import BATCH, JVP, LOWER, TRANSPOSE
from ..effects.core.operation import Operation, result_type
from ..effects.programs.higher_order import record_body
from ..effects.programs.primitives import primitive_of
from ..effects.programs.program import Program
from ..effects.types.array_type import ArrayType
from ..effects.types.dtypes import KeyDType, is_inexact
from ..interpreters.transformations.derivatives import jvp, linear_transpose
from ..interpreters.transformations.vmap import vmap
from ..lowering.export.export import export
from ..lowering.jit.jit import jit
from .jax_modules import jax, jax_primitives
from .jax_values import (
    their_array,
    their_constant,
    their_dtype,
    their_type,
    their_weakness,
    translated,
    type_in_jax,
)

_ad: Any = LazyModule("jax.interpreters.ad")
_batching: Any = LazyModule("jax.interpreters.batching")
_mlir: Any = LazyModule("jax.interpreters.mlir")
_core: Any = LazyModule("jax.extend.core")
_export: Any = LazyModule("jax.export")

_PRIMITIVES = Cache("primitives made for JAX")
_EXPORTED = Cache("operations exported to JAX", 256)
WRITERS: dict[str, Callable[..., Any]] = {}
"""Primitive -> function of the operation and of JAX's values that gives its results; None: one is made of it."""


def bind_program(program: Program, args: Sequence[Any]) -> list[Any]:
    """The results of a program on values of JAX's, by primitives of JAX's, with exactly the types that it states."""
    values = [*args, *[None] * (program.count - len(args)), *map(their_constant, reversed(program.consts))]
    for (op, numbers, results, types), site in zip(program.steps(), program.sites):
        ys = bound(op, [values[n] for n in numbers], Site(*site))
        values[results.start : results.stop] = map(their_weakness, ys, types)
    return [their_array(values[n]) if n < 0 else values[n] for n in program.outs]


def bound(op: Operation, xs: Sequence[Any], site: Site = NOWHERE) -> Sequence[Any]:
    """The results of one operation.

    Raises: UnhandledEffect: it has an effect that JAX does not have. NotProvided: it has one, and a rule of it is
    replaced.
    """
    kind = type(op)
    name, replaced = primitive_of(kind).name, is_replaced(kind)
    if replaced and op.effects:
        raise NotProvided(f"to_jax: hx.rules may replace rules of pure operations, {op.name} at {site} has effects.")
    shared = is_ours(kind.__module__) and not replaced
    ys = WRITERS[name](op, *xs) if shared and name in WRITERS else None
    if ys is not None:
        return ys
    known = shared and name not in WRITERS and name in jax_primitives()
    if op.effects and not (op.bodied and known):
        raise UnhandledEffect(
            f"to_jax: every effect must be handled, got {op.name} at {site}.",
            hint="handle it inside: to_jax(hx.handle(handler, state)(f)).",
        )
    return by_name(op, *xs) if known else made_primitive(kind).bind(*xs, operation=InForce(op, config.current()))


def is_replaced(kind: type[Operation]) -> bool:
    """Whether ``hx.rules`` replaces one of the rules by which JAX, too, tells what an operation means."""
    tables = config.current().tables
    return bool(tables) and any([column.in_scope(kind) for column in (BATCH, JVP, TRANSPOSE, LOWER)])


def by_name(op: Operation, *xs: Any) -> Sequence[Any]:
    """The results of the primitive that has the operation's name and parameters.

    Raises: NotProvided: JAX's has others.
    """
    primitive = jax_primitives()[primitive_of(type(op)).name]
    params = {key: their_parameter(value) for key, value in op.as_params().items()}
    try:
        ys = primitive.bind(*op.primitive_operands(xs), **params)
    except TypeError as error:
        raise NotProvided(f"to_jax: {primitive} must have the parameters {sorted(params)} in JAX: {error}") from error
    return ys if primitive.multiple_results else [ys]


def jaxpr_of(program: Program) -> Any:
    """The closed jaxpr of a program."""
    return jax.make_jaxpr(function_of(program))(*map(their_type, program.in_types))


def function_of(program: Program) -> Callable[..., list[Any]]:
    """A program as a function of JAX's, of the same name."""

    def function(*xs: Any) -> list[Any]:
        return bind_program(program, xs)

    function.__name__ = program.name
    return function


def in_jax(f: Callable[..., Sequence[Any]], *xs: Any) -> list[Any]:
    """The results in JAX of a function of handlax of flat arrays."""
    return bind_program(record_body(f, [*map(type_in_jax, xs)], "to_jax"), xs)


def performed_on(op: Operation, xs: Sequence[Any], others: Mapping[int, Any]) -> list[Any]:
    """The results of an operation on ``xs``, with ``others`` in their places."""
    return list(op.as_results(perform(op, *[others.get(i, x) for i, x in enumerate(xs)])))


def inexact(xs: Sequence[Any]) -> list[int]:
    """The places of the values that have tangents."""
    return [i for i, x in enumerate(xs) if is_inexact(x.dtype)]


def their_parameter(value: Any) -> Any:
    """A parameter of an operation as JAX's primitive has it."""
    return translated(value, "jax", _theirs)


def _theirs(value: Any) -> Any:
    if isinstance(value, Program):
        return jaxpr_of(value)
    return their_dtype(value) if isinstance(value, KeyDType) else None


# Primitives made of operations


class InForce(Value):
    """An operation, and the settings under which it was performed: its rules are those of the scopes of that place.

    It is the parameter of a primitive, and so part of the keys of JAX's caches.
    """

    op: Operation
    settings: config.Configuration

    def __repr__(self) -> str:
        return repr(self.op)


def made_primitive(kind: type[Operation]) -> Any:
    """The primitive of JAX's that is made of a class of pure operations; its parameter is an ``InForce``."""
    key: Any = kind
    return _PRIMITIVES.get(key, lambda: _made(f"handlax.{kind.name}"))


def _made(name: str) -> Any:
    p = _core.Primitive(name)
    p.multiple_results = True
    p.def_abstract_eval(_abstract_eval)
    p.def_impl(jax.jit(lambda *xs, operation: p.bind(*xs, operation=operation), static_argnames="operation"))
    _mlir.register_lowering(p, _mlir.lower_fun(_compiled, multiple_results=True))
    _ad.primitive_jvps[p] = _jvp
    _ad.primitive_transposes[p] = _transpose
    _batching.primitive_batchers[p] = _batch
    return p


def _abstract_eval(*avals: Any, operation: InForce) -> list[Any]:
    op = operation.op
    with config.in_force(operation.settings):
        types = op.as_results(result_type(op, tuple(map(type_in_jax, avals))))
    return [jax.core.ShapedArray(t.shape, their_dtype(t.dtype), weak_type=t.weak) for t in types]


def _compiled(*xs: Any, operation: InForce) -> Any:
    """The results by the StableHLO that handlax emits."""
    types = tuple(map(type_in_jax, xs))
    with config.in_force(operation.settings):
        return _EXPORTED.get((operation, types), lambda: _exported(operation.op, types)).call(*xs)


def _exported(op: Operation, types: Sequence[ArrayType]) -> Any:
    """An operation as an ``Exported`` of JAX's, which has the fields of that of handlax."""
    made = export(jit(lambda *xs: performed_on(op, xs, {})))(*types)
    ins, outs = [[jax.core.ShapedArray(t.shape, their_dtype(t.dtype)) for t in each]
                 for each in (made.in_avals, made.out_avals)]
    structure = jax.tree_util.tree_structure
    parts = dict(in_avals=tuple(ins), in_tree=structure(((0,) * len(ins), {})), out_avals=tuple(outs),
                 out_tree=structure([0] * len(outs)), _has_named_shardings=True, _get_vjp=None)
    names = [field.name for field in dataclasses.fields(_export.Exported)]
    return _export.Exported(**{name: parts[name] if name in parts else getattr(made, name) for name in names})


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operation: InForce) -> tuple[list[Any], list[Any]]:
    moving = {i: dx for i, dx in enumerate(tangents) if type(dx) is not _ad.Zero}
    with config.in_force(operation.settings):
        ys, dys = pushed_forward(operation.op, primals, moving)
    return ys, [_ad.Zero(jax.typeof(y).to_tangent_aval()) if dy is None else dy for y, dy in zip(ys, dys)]


def pushed_forward(op: Operation, xs: Sequence[Any], moving: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
    """The results in JAX of an operation, and their tangents, None for integers; ``moving``: tangents by operand."""

    def both(*values: Any) -> list[Any]:
        xs, dxs = values[: len(values) - len(moving)], values[len(values) - len(moving) :]
        f = lambda *some: performed_on(op, xs, dict(zip(moving, some)))
        ys, dys = jvp(f, tuple([xs[i] for i in moving]), dxs)
        return [*ys, *[dys[i] for i in inexact(ys)]]

    results = in_jax(both, *xs, *moving.values())
    count = len(op.as_results(result_type(op, tuple(map(type_in_jax, xs)))))
    tangents = dict(zip(inexact(results[:count]), results[count:]))
    return results[:count], [tangents.get(i) for i in range(count)]


def _transpose(cts: Sequence[Any], *xs: Any, operation: InForce) -> list[Any]:
    linear = [i for i, x in enumerate(xs) if _ad.is_undefined_primal(x)]
    types = {i: type_in_jax(xs[i].aval) for i in linear}
    known = [x for i, x in enumerate(xs) if i not in types]
    live = [i for i, ct in enumerate(cts) if type(ct) is not _ad.Zero]

    def adjoint(*values: Any) -> Any:
        places, given = iter(values), [None if i in types else 0 for i in range(len(xs))]
        operands = [x if x is None else next(places) for x in given]

        def f(*some: Any) -> Any:
            ys = performed_on(operation.op, operands, dict(zip(linear, some)))
            return [ys[i] for i in live]

        return linear_transpose(f, *types.values())([*places])

    with config.in_force(operation.settings):
        found = dict(zip(linear, in_jax(adjoint, *known, *[cts[i] for i in live])))
    return [found.get(i) for i in range(len(xs))]


def _batch(xs: Sequence[Any], dims: Sequence[Any], *, operation: InForce) -> tuple[list[Any], list[int]]:
    axes = tuple(dims)
    with config.in_force(operation.settings):
        ys = in_jax(vmap(lambda *lane: performed_on(operation.op, lane, {}), axes), *xs)
    return ys, [0] * len(ys)
