"""Operations of handlax that JAX binds otherwise than by a primitive of the same name and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.base.errors import NotProvided
from .jax_modules import jax, lax
from .jaxpr_writer import WRITERS, by_name, function_of, their_parameter


def writes(*names: str) -> Callable[[Any], Any]:
    """Decorator: the writer of the primitives of these names."""

    def register(writer: Callable[..., Any]) -> Callable[..., Any]:
        WRITERS.update(dict.fromkeys(names, writer))
        return writer

    return register


# JAX's function knows which parameters its version has.
writes("mul")(lambda op, x, y: [lax.mul(x, y)])
writes("conj")(lambda op, x: [lax.conj(x)])
writes("random_wrap")(lambda op, x: [jax.random.wrap_key_data(x, impl=op.dtype.impl.name)])
writes("random_unwrap")(lambda op, keys: [jax.random.key_data(keys)])
# JAX has no such primitive, or not for all parameters: one is made of the operation.
_MADE: Any = lambda op, *xs: None
writes("random_seed", "lu_pivots_to_permutation")(_MADE)


@writes("fft")
def _(op: Any, x: Any) -> Any:
    return by_name(op, x) if 0 < len(op.lengths) < 4 and x.size else None  # as far as XLA goes


@writes("cholesky")
def _(op: Any, x: Any) -> Any:
    return [jax.numpy.tril(by_name(op, x)[0])]  # the primitive leaves what is above the diagonal


@writes("sharding_constraint", "shard_map")
def _(op: Any, *xs: Any) -> Any:
    raise NotProvided(f"to_jax: {op.name} must be left to JAX, devices of handlax are not those of JAX.")


@writes("eigh")
def _(op: Any, x: Any) -> Any:
    vectors, values = lax.linalg.eigh(
        x, lower=op.lower_triangle, symmetrize_input=False, implementation=their_parameter(op.implementation)
    )
    return [vectors, values] if op.vectors else [values]


@writes("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _(op: Any, x: Any, indices: Any, updates: Any) -> Any:
    if not indices.shape[-1]:
        return None  # XLA would refuse what JAX makes of it
    function = getattr(lax, op.name)
    return [function(x, indices, updates, their_parameter(op.dimension_numbers), mode=their_parameter(op.mode),
                     indices_are_sorted=op.indices_are_sorted, unique_indices=op.unique_indices)]


# Bodies


@writes("jit")
def _(op: Any, *xs: Any) -> Any:
    return jax.jit(function_of(op.bodies[0].with_name(op.label)), inline=their_parameter(op.inline))(*xs)


@writes("checkpoint")
def _(op: Any, *xs: Any) -> Any:
    policy = their_parameter(op.policy)
    return jax.checkpoint(function_of(op.bodies[0]), prevent_cse=op.prevent_cse, policy=policy)(*xs)


@writes("scan")
def _(op: Any, *xs: Any) -> Any:
    _, shared, carry, each = op.groups(xs)
    body = function_of(op.bodies[0])

    def step(carry: Any, row: Any) -> Any:
        ys = body(*shared, *carry, *row)
        return ys[: op.carry], ys[op.carry :]

    last, stacked = lax.scan(step, carry, each, length=op.length, reverse=op.backwards, unroll=op.unroll)
    return [*last, *stacked]
