"""Operations of handlax that JAX binds otherwise than by a primitive of the same name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..effects.base.errors import NotProvided
from ..effects.base.lazy_module import LazyModule
from ..effects.control.branches import PlatformIndex
from ..effects.control.loops import While
from ..effects.programs.higher_order import HigherOrder
from ..effects.programs.program import Program, derived_once
from ..effects.types.dtypes import float0, is_extended
from ..interpreters.transformations.vmap import vmap
from .jax_modules import jax, lax
from .jax_values import their_type, type_in_jax
from .jaxpr_writer import (
    WRITERS,
    by_name,
    function_of,
    in_jax,
    inexact,
    performed_on,
    pushed_forward,
    their_parameter,
)
from .translated_policies import policy_for_jax

_experimental: Any = LazyModule("jax.experimental")
_batching: Any = LazyModule("jax.custom_batching")
_derivatives: Any = LazyModule("jax.custom_derivatives")


def writes(*names: str) -> Callable[[Any], Any]:
    """Decorator: the writer of the primitives of these names."""

    def register(writer: Callable[..., Any]) -> Callable[..., Any]:
        WRITERS.update(dict.fromkeys(names, writer))
        return writer

    return register


# JAX's function knows which parameters its version has.
writes("mul")(lambda op, x, y: [lax.mul(x, y)])
writes("conj")(lambda op, x: [lax.conj(x)])
writes("reduce_max")(lambda op, x: [lax.reduce_max(x, op.axes)])
writes("reduce_min")(lambda op, x: [lax.reduce_min(x, op.axes)])
writes("top_k")(lambda op, x: lax.top_k(x, op.k, axis=op.axis))
writes("random_wrap")(lambda op, x: [jax.random.wrap_key_data(x, impl=op.dtype.impl.name)])
writes("random_unwrap")(lambda op, keys: [jax.random.key_data(keys)])
# JAX has no such primitive, or not for all parameters: one is made of the operation.
_MADE: Any = lambda op, *xs: None
writes("random_seed", "lu_pivots_to_permutation")(_MADE)


@writes("platform_index")
def _(op: PlatformIndex) -> Sequence[Any]:
    # JAX has its primitive for itself. Backwards: of two branches for one platform the first counts.
    number = {name: i for i, names in reversed([*enumerate(op.platforms)]) for name in names or ("default",)}
    return [lax.platform_dependent(**{name: partial(np.int32, i) for name, i in number.items()})]


@writes("random_bits", "random_split")
def _(op: Any, keys: Any) -> Any:
    return by_name(op, keys) if jax.config.jax_threefry_partitionable else None  # in which case JAX's bits are others


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


@writes("select_n")
def _(op: Any, which: Any, *cases: Any) -> Any:
    shape = jax.numpy.broadcast_shapes(*map(jax.numpy.shape, (which, *cases)))
    return [lax.select_n(which, *[jax.numpy.broadcast_to(case, shape) for case in cases])]


# Bodies


@writes("jit")
def _(op: Any, *xs: Any) -> Any:
    return jax.jit(function_of(op.bodies[0].with_name(op.label)), inline=their_parameter(op.inline))(*xs)


@writes("checkpoint")
def _(op: Any, *xs: Any) -> Any:
    policy = policy_for_jax(op.policy)
    return jax.checkpoint(function_of(op.bodies[0]), prevent_cse=op.prevent_cse, policy=policy)(*xs)


@writes("scan", "lane_loop")
def _scanned(op: Any, *xs: Any) -> list[Any]:
    _, shared, carry, each = op.groups(xs)
    body = function_of(op.bodies[0])

    def step(carry: Any, row: Any) -> Any:
        ys = body(*shared, *carry, *row)
        return ys[: op.carry], ys[op.carry :]

    last, stacked = lax.scan(step, carry, each, length=op.length, reverse=op.backwards, unroll=op.unroll)
    return [*last, *stacked]


writes("lanes")(lambda op, *xs: _scanned(op.in_order(), *xs))


@writes("while")
def _(op: Any, *xs: Any) -> Any:
    return by_name(While(op.bodies, op.shared, op.carry), *xs)  # reverse mode is JAX's, which has none of such a loop


# Calls of the host


def _data(xs: Sequence[Any]) -> list[Any]:
    """The values as the host gets them: of keys their words."""
    return [jax.random.key_data(x) if is_extended(type_in_jax(x).dtype) else x for x in xs]


@writes("pure_callback")
def _(op: Any, *xs: Any) -> Any:
    def called(*xs: Any) -> Any:
        return jax.pure_callback(op.call, [*map(their_type, op.results)], *_data(xs), vmap_method=op.vmap_method)

    together = op.vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized")  # for which its types are others
    return _with_lanes(op, called)(*xs) if together else called(*xs)


@writes("io_callback")
def _(op: Any, *xs: Any) -> Any:
    return _experimental.io_callback(op.call, [*map(their_type, op.results)], *_data(xs), ordered=op.ordered)


@writes("debug_callback", "debug_print")
def _(op: Any, *xs: Any) -> Any:
    jax.debug.callback(op.call, *_data(xs), ordered=op.ordered)
    return []


# Functions with rules: a rule is what handlax makes of the operation, under its own transformation


def _with_lanes(op: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which computes in JAX the results of an operation, and on lanes what handlax makes of the operation."""
    function = _batching.custom_vmap(f)

    @function.def_vmap
    def rule(size: int, mapped: Sequence[bool], *xs: Any) -> Any:
        axes = tuple([0 if yes else None for yes in mapped])
        ys = in_jax(vmap(lambda *lane: performed_on(op, lane, {}), axes), *xs)
        return ys, [True] * len(ys)

    return function


@writes("custom_vmap_call")
def _(op: Any, *xs: Any) -> Any:
    if not (op.effects or _calls_host(op.bodies[0])):
        return None  # a primitive is made of it, which has reverse mode too
    return _with_lanes(op, function_of(op.bodies[0]))(*xs)


@derived_once
def _calls_host(program: Program) -> bool:
    """Whether a program calls the host, effects or not, its bodies included."""
    return any([op.calls_host or (isinstance(op, HigherOrder) and any(map(_calls_host, op.bodies)))
                for op in program.ops])


@writes("linear_solve")
def _(op: Any, *xs: Any) -> Any:
    if op.states:
        return None  # results that are no solution have derivatives too
    shared, b = xs[: op.shared], xs[op.shared :]
    solve, matvec, *transposed = [partial(function_of(body), *shared) for body in op.bodies]

    def solver(f: Callable[..., Any]) -> Callable[..., Any]:
        def solved(_: Any, b: Any) -> Any:
            ys = f(*b)
            return ys[: op.carry], ys[op.carry :]

        return solved

    x, aux = lax.custom_linear_solve(
        lambda x: matvec(*x)[: op.carry], [*b], solver(solve), solver(transposed[0]) if transposed else None,
        has_aux=True)
    return [*x, *aux]


# A ``custom_vjp`` too: its tangents are those of ``Adjoint``, whose transpose in JAX is the backward rule.
@writes("custom_jvp_call", "custom_vjp_call")
def _(op: Any, *xs: Any) -> Any:
    f, places = jax.custom_jvp(function_of(op.bodies[0])), inexact(op.bodies[0].in_types)

    def rule(primals: Any, tangents: Any) -> Any:
        moving = {i: tangents[i] for i in places if not isinstance(tangents[i], _derivatives.SymbolicZero)}
        ys, dys = pushed_forward(op, primals, moving)
        return ys, [np.zeros(y.shape, float0) if dy is None else dy for y, dy in zip(ys, dys)]

    f.defjvp(rule, symbolic_zeros=True)
    return f(*xs)
