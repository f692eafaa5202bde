"""Equations of JAX's, performed as operations of handlax.

    perform_jaxpr(jax.make_jaxpr(f)(*xs), xs) == f(*xs)

Every operation of handlax is a primitive under JAX's name with JAX's parameters, so an equation is performed by
``primitive_called(eqn.primitive.name)``. ``READERS`` has the primitives for which that is not so. An equation without a
counterpart is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects.base.caches import WeakCache
from ..effects.base.errors import HandlaxError, NotProvided, TypeCheckError
from ..effects.base.source_locations import NOWHERE, Site, is_internal
from ..effects.base.stack import BASE, at_site, inside, perform
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.elementwise_factory import Elementwise
from ..effects.operations.manipulation.rearranging import broadcast_in_dim
from ..effects.programs.primitives import primitive_called
from ..effects.programs.program import Program
from ..effects.types.array_type import ArrayType
from ..effects.types.dtypes import KeyDType
from ..interpreters.core.record import record
from .jax_modules import is_of_jax, jax
from .jax_values import our_array, our_dtype, our_type, our_weakness, translated
from .jaxpr_writer import InForce

READERS: dict[str, Callable[..., Any]] = {}
"""Primitive -> function of the equation and its operands that performs it, where that of the same name does not."""
_NAMES = {"add_any": "add"}
# Parameters that say how XLA is to use memory, or repeat what the operands, the other parameters or the name say.
# (That of "scatter" itself does not: a reader has it.)
_REDUNDANT = {
    "jit": ("donated_invars", "keep_unused", "compiler_options_kvs", "ctx_mesh"), "conj": ("input_dtype",),
    **dict.fromkeys([f"scatter-{by}" for by in ("add", "sub", "mul", "min", "max")], ("update_jaxpr", "update_consts")),
}
_PROGRAMS = WeakCache("programs of jaxprs")
"""The program of each jaxpr, dropped with it."""


def opened(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr, closed or not, as its equations and the values of its constants."""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def is_jaxpr(x: Any) -> bool:
    return hasattr(opened(x)[0], "eqns") and not isinstance(x, Program)


def program_of(jaxpr: Any, name: str | None = None) -> Program:
    """The program of a jaxpr, its constants included."""
    part, key = _PROGRAMS.part(jaxpr), (name, jax.config.jax_threefry_partitionable)
    if key not in part:
        inner, _ = opened(jaxpr)
        types = [our_type(v.aval) for v in inner.invars]
        called = name or inner.debug_info.func_name
        with inside(BASE):
            made = record(lambda *xs: perform_jaxpr(jaxpr, xs), types, called, "from_jax")
        _PROGRAMS.add(part, key, made)
    return part[key]


def perform_jaxpr(jaxpr: Any, args: Sequence[Array]) -> list[Array]:
    """Perform the equations of a jaxpr in order, each at its own source line, with exactly the types that it states."""
    inner, consts = opened(jaxpr)
    values = dict(zip(inner.constvars, map(our_array, consts))) | dict(zip(inner.invars, args))

    def read(atom: Any) -> Array:
        return our_weakness(our_array(atom.val), our_type(atom.aval)) if hasattr(atom, "val") else values[atom]

    for eqn in inner.eqns:
        with at_site(site_of(eqn)):
            results = performed(eqn, [read(atom) for atom in eqn.invars])
            types = [our_type(v.aval) for v in eqn.outvars]
            values |= zip(eqn.outvars, [typed(y, t, eqn) for y, t in zip(results, types, strict=True)])
    return [read(atom) for atom in inner.outvars]


def performed(eqn: Any, xs: Sequence[Array]) -> Sequence[Array]:
    """The results of one equation.

    Raises: NotProvided: handlax has no such operation, or not with these parameters.
    """
    if isinstance(made := eqn.params.get("operation"), InForce):  # a primitive that to_jax made
        return made.op.as_results(perform(made.op, *xs))
    name = eqn.primitive.name
    if not is_of_jax(eqn.primitive):
        raise NotProvided(f"from_jax: an operation of JAX's own is needed, got another {name} {where(eqn)}.")
    return READERS[name](eqn, *xs) if name in READERS else performed_by_name(eqn, xs)


def performed_by_name(eqn: Any, xs: Sequence[Array]) -> Sequence[Array]:
    """The results of the operation that has the name and the parameters of an equation.

    Raises: NotProvided: handlax has no such operation, or not with these parameters.
    """
    name = eqn.primitive.name
    primitive = primitive_called(_NAMES.get(name, name))
    kind = None if primitive is None else primitive.operation
    if kind is None or kind.effectful or (eqn.effects and not kind.bodied):
        raise NotProvided(f"from_jax: an operation that handlax has is needed, got {name} {where(eqn)}.")
    params = {key: None if _on_no_mesh(x) else our_parameter(x)
              for key, x in eqn.params.items() if key not in _REDUNDANT.get(name, ())}
    try:
        op = kind.from_params({key: x for key, x in params.items() if kind.has_param(key) or not _says_nothing(x)})
    except HandlaxError as error:
        raise NotProvided(f"from_jax: {name} {where(eqn)}: {error.what}", hint=error.hint) from error
    operands = [_repeated(x, eqn) for x in xs] if issubclass(kind, Elementwise) else xs
    return op.as_results(perform(op, *operands))


def _repeated(x: Array, eqn: Any) -> Array:
    """An operand of an elementwise equation, whose sizes 1 JAX repeats."""
    shape = tuple(eqn.outvars[0].aval.shape)
    return x if x.type.shape in ((), shape) else broadcast_in_dim(x, shape, range(len(shape)))


def _says_nothing(value: Any) -> bool:
    """Whether a parameter of JAX's that handlax does not have leaves things as they are."""
    if isinstance(value, tuple):
        return all(map(_says_nothing, value))
    return value is None or value is False or type(value).__name__ == "UnspecifiedValue"


def _on_no_mesh(value: Any) -> bool:
    """Whether a parameter is a sharding over a mesh without axes, which JAX has where others have None."""
    return type(value).__name__ == "NamedSharding" and bool(value.mesh.empty)


def typed(y: Array, t: ArrayType, eqn: Any) -> Array:
    """A result with the weakness that JAX states for it. Raises: TypeCheckError: its shape or dtype is another one."""
    if (y.type.shape, y.type.dtype) != (t.shape, t.dtype):
        raise TypeCheckError(f"from_jax: a result of {eqn.primitive.name} must be {t}, got {y.type}, {where(eqn)}.")
    return convert(y, t.dtype, t.weak)


def our_parameter(value: Any) -> Any:
    """A parameter of JAX's as the operation of handlax has it."""
    return translated(value, "handlax", _ours)


def _ours(value: Any) -> Any:
    if is_jaxpr(value):
        return program_of(value)
    if type(value).__name__ == "Inline":
        return value.name == "JAX_EARLY"
    if type(value).__name__ == "PRNGImpl":
        return KeyDType(value.tag)
    return our_dtype(value) if type(value).__name__ == "KeyTy" else None


# Source lines


def site_of(eqn: Any) -> tuple[Any, int] | None:
    """The user's line at which JAX traced an equation; None where JAX does not say."""
    traceback = eqn.source_info.traceback
    frames = zip(*traceback.raw_frames()) if traceback else ()
    return next((frame for frame in frames if not is_internal(frame[0].co_filename)), None)


def where(eqn: Any) -> str:
    """The place of an equation, for messages."""
    return f"(at {Site(*(site_of(eqn) or NOWHERE))})"
