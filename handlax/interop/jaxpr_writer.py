"""Equations of handlax, bound as primitives of JAX's.

    bind_program(make_program(f)(*xs), xs) == f(*xs)

An operation is bound as the primitive of its name with ``op.as_params()``; ``WRITERS`` has those for which that is not
so. Of a pure operation that JAX does not have, a user's too, a primitive is made, whose rules are what the handlers of
handlax make of the operation. An effect that nobody handles is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects.base.caches import Cache
from ..effects.base.errors import NotProvided, UnhandledEffect
from ..effects.base.lazy_module import LazyModule
from ..effects.base.source_locations import NOWHERE, Site
from ..effects.base.stack import perform
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
from .jax_values import their_array, their_dtype, their_type, their_weakness, translated, type_in_jax

_ad: Any = LazyModule("jax.interpreters.ad")
_batching: Any = LazyModule("jax.interpreters.batching")
_mlir: Any = LazyModule("jax.interpreters.mlir")
_core: Any = LazyModule("jax.extend.core")
_export: Any = LazyModule("jax.export")

_PRIMITIVES = Cache("primitives made for JAX")
_EXPORTED = Cache("operations exported to JAX", 256)
WRITERS: dict[str, Callable[..., Any]] = {}
"""Primitive -> function of the operation and of JAX's values that gives its results in JAX; None: a primitive is made of it."""


def bind_program(program: Program, args: Sequence[Any]) -> list[Any]:
    """The results of a program on values of JAX's, by primitives of JAX's, with exactly the types that it states."""
    values = [*args, *[None] * (program.count - len(args)), *map(their_array, reversed(program.consts))]
    for (op, numbers, results, types), site in zip(program.steps(), program.sites):
        ys = bound(op, [values[n] for n in numbers], Site(*site))
        values[results.start : results.stop] = map(their_weakness, ys, types)
    return [values[n] for n in program.outs]


def bound(op: Operation, xs: Sequence[Any], site: Site = NOWHERE) -> Sequence[Any]:
    """The results of one operation. Raises: UnhandledEffect: it has an effect that JAX does not have."""
    name = primitive_of(type(op)).name
    ys = WRITERS[name](op, *xs) if name in WRITERS else None
    if ys is not None:
        return ys  # type: ignore[no-any-return]
    if op.effects and not op.bodied:
        raise UnhandledEffect(
            f"to_jax: every effect must be handled, got {op.name} at {site}.",
            hint="handle it inside: to_jax(hx.handle(handler, state)(f)).",
        )
    known = name not in WRITERS and name in jax_primitives()
    return by_name(op, *xs) if known else made_primitive(type(op)).bind(*xs, operation=op)  # type: ignore[no-any-return]


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


def their_parameter(value: Any) -> Any:
    """A parameter of an operation as JAX's primitive has it."""
    return translated(value, "jax", _theirs)


def _theirs(value: Any) -> Any:
    if isinstance(value, Program):
        return jaxpr_of(value)
    return their_dtype(value) if isinstance(value, KeyDType) else None


# Primitives made of operations


def made_primitive(kind: type[Operation]) -> Any:
    """The primitive of JAX's that is made of a class of pure operations; its parameter is the operation."""
    return _PRIMITIVES.get(kind, lambda: _made(f"handlax.{kind.name}"))


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


def _performed(op: Operation, *xs: Any) -> list[Any]:
    return list(op.as_results(perform(op, *xs)))


def _abstract_eval(*avals: Any, operation: Operation) -> list[Any]:
    types = operation.as_results(result_type(operation, tuple(map(type_in_jax, avals))))
    return [jax.core.ShapedArray(t.shape, their_dtype(t.dtype), weak_type=t.weak) for t in types]


def _compiled(*xs: Any, operation: Operation) -> Any:
    """The results by the StableHLO that handlax emits."""
    types = tuple(map(type_in_jax, xs))

    def exported() -> Any:
        f = jit(lambda *xs: _performed(operation, *xs))
        return _export.deserialize(export(f)(*types).serialize())

    return _EXPORTED.get((operation, types), exported).call(*xs)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operation: Operation) -> tuple[list[Any], list[Any]]:
    moving = [i for i, dx in enumerate(tangents) if type(dx) is not _ad.Zero]
    count = len(primals)

    def both(*values: Any) -> list[Any]:
        xs = values[:count]
        f = lambda *some: _performed(operation, *[dict(zip(moving, some)).get(i, x) for i, x in enumerate(xs)])
        ys, dys = jvp(f, tuple([xs[i] for i in moving]), values[count:])
        return [*ys, *[dy for dy in dys if is_inexact(dy.dtype)]]

    results = in_jax(both, *primals, *[tangents[i] for i in moving])
    ys = results[: len(results) - sum([is_inexact(t.dtype) for t in map(type_in_jax, results)]) // 2]
    dys = iter(results[len(ys) :])
    return ys, [next(dys) if is_inexact(type_in_jax(y).dtype) else _ad.Zero.from_primal_value(y) for y in ys]


def _transpose(cts: Sequence[Any], *xs: Any, operation: Operation) -> list[Any]:
    linear = [i for i, x in enumerate(xs) if _ad.is_undefined_primal(x)]
    types = {i: type_in_jax(xs[i].aval) for i in linear}
    known = [x for i, x in enumerate(xs) if i not in types]
    cts = [_ad.instantiate_zeros(ct) for ct in cts]

    def adjoint(*values: Any) -> Any:
        given, cts = iter(values[: len(known)]), list(values[len(known) :])
        fixed = {i: next(given) for i in range(len(xs)) if i not in types}
        f = lambda *some: _performed(operation, *[x for _, x in sorted({**fixed, **dict(zip(linear, some))}.items())])
        return linear_transpose(f, *types.values())(cts)

    found = dict(zip(linear, in_jax(adjoint, *known, *cts)))
    return [found.get(i) for i in range(len(xs))]


def _batch(xs: Sequence[Any], dims: Sequence[Any], *, operation: Operation) -> tuple[list[Any], list[int]]:
    axes = tuple(dims)
    ys = in_jax(vmap(lambda *lane: _performed(operation, *lane), axes), *xs)
    return ys, [0] * len(ys)
