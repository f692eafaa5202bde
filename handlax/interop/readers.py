"""Equations of JAX's that are other operations in handlax, or compositions of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..effects.base.errors import NotProvided
from ..effects.base.lazy_module import LazyModule
from ..effects.base.stack import perform
from ..effects.control.callbacks import io_callback, pure_callback
from ..effects.control.checkpoint import Checkpoint
from ..effects.control.composite import Composite
from ..effects.control.debug_callbacks import callback as debug_callback
from ..effects.control.debug_callbacks import print as debug_print
from ..effects.control.loops import Scan, While
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.comparison import Ge, Le, select_n
from ..effects.operations.foundations.attributes import attributes
from ..effects.operations.indexing.scatter_functions import scatter_apply
from ..effects.operations.linalg.eigh import Eigh
from ..effects.operations.manipulation.rearranging import broadcast_in_dim, reshape, squeeze, stack, tile
from ..effects.operations.manipulation.slicing import slice as lax_slice
from ..effects.operations.random_bits import random_unwrap, random_wrap
from ..effects.operations.random_generators import fold_keys, key_bits, seed_keys, split_keys
from ..effects.operations.reductions.generic_reduce import reduce
from ..effects.operations.reductions.reductions import reduce_max, reduce_min, reduce_or, reduce_sum
from ..effects.operations.windows.generic_window import reduce_window
from ..effects.operations.windows.geometry import Window
from ..effects.operations.windows.window_reductions import ReduceWindowMax, ReduceWindowMin
from ..effects.programs.higher_order import record_body
from ..effects.programs.primitives import primitive_called, primitive_of
from ..effects.programs.program import Program
from ..effects.types.dtypes import float0, is_inexact
from ..interpreters.custom.custom_jvp import custom_jvp
from ..interpreters.custom.custom_vjp import custom_vjp
from ..interpreters.custom.custom_vmap import custom_vmap
from ..interpreters.custom.derivative_rules import SymbolicZero
from ..interpreters.custom.implicit import custom_linear_solve
from ..interpreters.transformations.derivatives import jvp, vjp
from ..interpreters.transformations.vmap import vmap
from ..lax import (
    approx_max_k,
    approx_min_k,
    linalg,
    log2,
    one_minus_square,
    polynomial,
    ragged_dot_general,
    rng_bit_generator,
    rng_uniform,
    unstack,
)
from ..lowering.export.artifact_reader import deserialize
from ..numpy import zeros
from ..random import gamma, loggamma
from .converted_functions import Converted, FromJax
from .jax_modules import jax
from .jax_values import their_type
from .jaxpr_reader import READERS, our_parameter, perform_jaxpr, performed_by_name, program_of, where
from .translated_policies import policy_of_jax

_extend: Any = LazyModule("jax.extend.core")


def reads(*names: str) -> Callable[[Any], Any]:
    """Decorator: the reader of the primitives of these names, a function of an equation and its operands."""

    def register(reader: Callable[..., Any]) -> Callable[..., Any]:
        READERS.update(dict.fromkeys(names, reader))
        return reader

    return register


def composed(name: str, function: Callable[..., Any]) -> None:
    """Make a function of the operands, and of the parameters by name, the reader of a primitive with one result."""
    reads(name)(lambda eqn, *xs: [function(*xs, **{key: our_parameter(x) for key, x in eqn.params.items()})])


# Compositions

composed("squeeze", squeeze)
composed("slice", lax_slice)
composed("tile", tile)
composed("stack", lambda *xs, axis: stack(xs, axis))
composed("copy", lambda x: x)
composed("log2", lambda x, accuracy=None: log2(x))
composed("one_minus_square", one_minus_square)
composed("polynomial", lambda x, *coefficients, unroll=None: polynomial(x, coefficients, unroll=unroll))
composed("rng_uniform", rng_uniform)
composed("cholesky_update", linalg.cholesky_update)
composed("random_clone", lambda keys: keys)
composed("random_fold_in", fold_keys)
composed("random_seed", lambda seeds, impl: seed_keys(seeds, impl))
composed("random_wrap", lambda data, impl: random_wrap(data, impl))
composed("random_unwrap", random_unwrap)
composed("symmetric_product", linalg.symmetric_product)
composed("ragged_dot_general", ragged_dot_general)
reads("unstack")(lambda eqn, x: unstack(x, eqn.params["axis"]))
reads("empty", "empty2")(lambda eqn: [zeros(v.aval.shape, v.aval.dtype) for v in eqn.outvars])


@reads("eigh")
def _(eqn: Any, x: Array) -> Sequence[Array]:
    params = eqn.params
    if params.get("subset_by_index") is not None:
        raise NotProvided(f"from_jax: eigh gives all eigenvalues, a subset is asked for {where(eqn)}.")
    return perform(Eigh(params["lower"], False, True, our_parameter(params.get("algorithm"))), x)


@reads("approx_top_k")
def _(eqn: Any, x: Array) -> Sequence[Array]:
    params = dict(eqn.params)
    return (approx_max_k if params.pop("is_max_k") else approx_min_k)(x, **params)


@reads("rng_bit_generator")
def _(eqn: Any, state: Array) -> Sequence[Array]:
    return rng_bit_generator(state, *[our_parameter(eqn.params[name]) for name in ("shape", "dtype", "algorithm")])


_OVER_DIMENSIONS = {"psum": reduce_sum, "pmax": reduce_max, "pmin": reduce_min}


@reads(*_OVER_DIMENSIONS)
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    """The axes that a ``vmap`` of JAX's has bound are dimensions, by their numbers."""
    axes = eqn.params["axes"]
    if not all([isinstance(axis, int) for axis in axes]):
        return performed_by_name(eqn, xs)
    return [_OVER_DIMENSIONS[eqn.primitive.name](x, axes) for x in xs]


def drawn(name: str, function: Callable[..., Any]) -> None:
    """``composed`` for a function of keys whose bits are JAX's only where each depends on its key and index alone."""

    @reads(name)
    def _(eqn: Any, *xs: Array) -> Sequence[Array]:
        if not jax.config.jax_threefry_partitionable:
            raise NotProvided(
                f"from_jax: jax_threefry_partitionable must be True, keys have no other bits {where(eqn)}.",
                hint="jax.config.update('jax_threefry_partitionable', True).",
            )
        return [function(*xs, **eqn.params)]


drawn("random_bits", lambda keys, bit_width, shape: key_bits(keys, bit_width, shape))
drawn("random_split", lambda keys, shape: split_keys(keys, shape))
drawn("random_gamma", lambda keys, a, log_space: (loggamma if log_space else gamma)(keys, a, dtype=a.dtype))


@reads("scatter")
def _(eqn: Any, x: Array, indices: Array, updates: Array) -> Sequence[Array]:
    """Updates replace elements, unless ``update_jaxpr`` is a function of these: ``x.at[indices].apply(f)``."""
    params = eqn.params
    if params["update_jaxpr"] is None:
        return performed_by_name(eqn, [x, indices, updates])
    body = _extend.ClosedJaxpr(params["update_jaxpr"], params["update_consts"])
    if _reads_update(body.jaxpr):
        raise NotProvided(f"from_jax: a function of scatter must be one of the elements alone {where(eqn)}.")
    return [scatter_apply(
        x, indices, _of_windows(lambda y: perform_jaxpr(body, [y, y])[0]), our_parameter(params["dimension_numbers"]),
        update_shape=updates.shape, mode=our_parameter(params["mode"]), unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"])]


def _reads_update(body: Any) -> bool:
    """Whether the body of a scatter, a function of an element and its update, depends on the latter."""
    _, update = body.invars
    return any([atom is update for atoms in (body.outvars, *[eqn.invars for eqn in body.eqns]) for atom in atoms])


def _of_windows(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of a scalar, on each element of an array."""
    return lambda y: reshape(vmap(f)(reshape(y, (-1,))), y.shape) if y.shape else f(y)


@reads("device_put")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    if any([device is not None for device in eqn.params["devices"]]):
        raise NotProvided(f"from_jax: no device may be named, got {eqn.params['devices']} {where(eqn)}.")
    return xs


def _extreme_of(params: Any) -> Callable[[Array], Array]:
    """The window reduction of which JAX's ``select_and_...`` are the derivatives."""
    ones = (1,) * len(params["window_dimensions"])
    dilations = [params.get(name, ones) for name in ("base_dilation", "window_dilation")]
    sizes = [params[name] for name in ("window_dimensions", "window_strides", "padding")]
    kind = _CHOSEN_BY[primitive_called(params["select_prim"].name)]
    return lambda x: perform(kind(Window(*sizes, *dilations)), x)


_CHOSEN_BY: dict[Any, Any] = {primitive_of(Ge): ReduceWindowMax, primitive_of(Le): ReduceWindowMin}


@reads("select_and_scatter_add")
def _(eqn: Any, ct: Array, x: Array) -> Sequence[Array]:
    return vjp(_extreme_of(eqn.params), x)[1](ct)


@reads("select_and_gather_add")
def _(eqn: Any, dx: Array, x: Array) -> Sequence[Array]:
    return [jvp(_extreme_of(eqn.params), (x,), (dx,))[1]]


# Bodies


@reads("eval_jaxpr", "closed_call", "core_call", "core_closed_call")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    return perform_jaxpr(eqn.params["call_jaxpr"], xs)


@reads("composite")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    params = eqn.params
    named = {name: jax.tree_util.tree_unflatten(tree, leaves) for name, leaves, tree in params["attributes"]}
    name, body = params["name"], params["call_jaxpr" if "call_jaxpr" in params else "jaxpr"]  # before JAX 0.11
    op = Composite((program_of(body),), name, params["version"], attributes(f"composite {name!r}", named))
    return perform(op, *xs)


@reads("call_exported")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    """What JAX exported, read by handlax as the same of flat arrays."""
    exported, structure = eqn.params["exported"], jax.tree_util.tree_structure
    flat = replace(exported, in_tree=structure(((0,) * len(xs), {})), out_tree=structure([0] * len(eqn.outvars)))
    return deserialize(flat.serialize()).call(*xs)


@reads("remat2", "checkpoint")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    params = eqn.params
    prevents = params["prevent_cse"]  # for each operand, or for all
    prevent_cse = any(prevents) if isinstance(prevents, tuple) else prevents
    policy = policy_of_jax(params["policy"])
    op = Checkpoint((program_of(params["jaxpr"]),), policy, prevent_cse, params["differentiated"])
    return perform(op, *xs)


@reads("scan")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    params = eqn.params
    if "ft_in" in params:  # the groups of operands, since JAX 0.11
        shared, carry = map(len, params["ft_in"].unpack()[:2])
    else:
        shared, carry = params["num_consts"], params["num_carry"]
    bodies = (program_of(params["jaxpr"]),)
    return perform(Scan(bodies, shared, carry, params["length"], params["reverse"], params["unroll"]), *xs)


@reads("while")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    op = While.from_params({name: our_parameter(value) for name, value in eqn.params.items()})
    numbers: dict[Any, int] = {}  # of the constants, which the test and the body may share
    places = [numbers.setdefault(atom, len(numbers)) for atom in map(id, eqn.invars[: op.shared])]
    shared = [xs[places.index(number)] for number in range(len(numbers))]
    operands = [*shared, *xs[op.shared :]]
    inputs = [*places, *range(len(shared), len(operands))]
    bodies = [body.rewired([x.type for x in operands], inputs) for body in op.bodies]
    lanes = op.bodies[0].out_types[0].shape
    bodies = _lanes_together(bodies, len(shared), lanes) if lanes else bodies
    return perform(op.with_bodies(bodies, shared=len(shared)), *operands)


def _lanes_together(bodies: Sequence[Program], shared: int, lanes: tuple[int, ...]) -> list[Program]:
    """The test and the body of one loop over lanes, from those of JAX's, of which the test gives a bool for each lane.

        while any(test(c)): c = where(test(c), body(c), c)

    The leading axes of each carry are those of the lanes.
    """
    test, body = bodies

    def more(*values: Array) -> list[Array]:
        going, = test(*values)
        return [reduce_or(going, range(len(lanes)))]

    def step(*values: Array) -> list[Array]:
        going, = test(*values)
        each = lambda y: broadcast_in_dim(going, y.shape, range(len(lanes)))
        return [select_n(each(y), c, y) for c, y in zip(values[shared:], body(*values), strict=True)]

    return [record_body(f, part.in_types, part.name) for f, part in ((more, test), (step, body))]


def _fold(eqn: Any, xs: Sequence[Array], function: Callable[..., Any], *sizes: Any) -> Sequence[Array]:
    count = len(xs) // 2
    body = program_of(eqn.params["jaxpr"])
    computation = lambda a, b: list(body(*a, *b))
    return function(list(xs[:count]), list(xs[count:]), computation, *sizes)


@reads("reduce")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    return _fold(eqn, xs, reduce, eqn.params["dimensions"])


@reads("reduce_window")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    names = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    return _fold(eqn, xs, reduce_window, *[eqn.params[name] for name in names])


@reads("custom_linear_solve")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    counts, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    consts, rest = {}, iter(xs)
    for name, count in zip(counts._fields, counts):
        consts[name] = [next(rest) for _ in range(count)]
    b = [*rest]

    def called(name: str) -> Callable[..., Any]:
        return lambda *ys: perform_jaxpr(getattr(jaxprs, name), [*consts[name], *ys])

    def solver(name: str) -> Callable[..., Any]:
        def solved(_: Any, ys: Any) -> Any:
            results = called(name)(*ys)
            return results[: len(b)], results[len(b) :]

        return solved

    adjoint = None if jaxprs.transpose_solve is None else solver("transpose_solve")
    x, aux = custom_linear_solve(lambda x: called("matvec")(*x), b, solver("solve"), adjoint, has_aux=True)
    return [*x, *aux]


# Functions with rules: a rule is what JAX makes of the equation, under its own transformation


def _again(eqn: Any) -> Callable[..., Any]:
    """An equation as a function of JAX's."""

    def function(*xs: Any) -> Any:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)
        return eqn.primitive.bind(*functions, *xs, **params)

    return function


def _inexact(xs: Sequence[Any]) -> list[int]:
    """The numbers of the values that have tangents."""
    return [i for i, x in enumerate(xs) if is_inexact(x.dtype)]


def _in_places(places: Sequence[int], some: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """``xs`` with ``some`` in these places."""
    chosen = dict(zip(places, some))
    return [chosen.get(i, x) for i, x in enumerate(xs)]


@reads("custom_jvp_call")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    again = _again(eqn)

    def rule(primals: Any, tangents: Any) -> Any:
        moving = [i for i in _inexact(xs) if not isinstance(tangents[i], SymbolicZero)]

        def pushed(ys: Any, dys: Any) -> Any:
            results, dresults = jax.jvp(lambda *some: again(*_in_places(moving, some, ys)),
                                        [ys[i] for i in moving], dys)
            return results, [dresults[i] for i in _inexact(results)]

        results, some = FromJax(pushed)(list(primals), [tangents[i] for i in moving])
        zeros = [np.zeros(y.shape, float0) for y in results]
        return results, _in_places(_inexact(results), some, zeros)

    f = custom_jvp(lambda *ys: perform_jaxpr(eqn.params["call_jaxpr"], ys))
    f.defjvp(rule, symbolic_zeros=True)
    return f(*xs)


@reads("custom_vjp_call")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    again, count = _again(eqn), len(eqn.outvars)

    def linearized(*wrt: bool) -> Converted:
        """For the arguments of which these are differentiated: the results, and the linear map in JAX."""
        moving = [i for i, yes in enumerate(wrt) if yes]

        def forward(*ys: Any) -> Any:
            def split(*some: Any) -> Any:
                results = again(*_in_places(moving, some, ys))
                return [results[i] for i in _inexact(results)], results

            _, push, results = jax.linearize(split, *[ys[i] for i in moving], has_aux=True)
            return results, push

        return FromJax(forward).convert(*xs)

    known: dict[tuple[bool, ...], Converted] = {}

    def fwd(*ys: Any) -> Any:
        wrt = tuple([y.perturbed and is_inexact(x.dtype) for x, y in zip(xs, ys)])
        known[wrt] = known.get(wrt) or linearized(*wrt)
        results = known[wrt].program(*[y.value for y in ys])
        return list(results[:count]), (wrt, list(results[count:]))

    def bwd(residuals: Any, cts: Any) -> Any:
        wrt, values = residuals
        moving = [i for i, yes in enumerate(wrt) if yes]
        some = [cts[i] for i in _inexact([v.aval for v in eqn.outvars])]
        live = [i for i, ct in enumerate(some) if not isinstance(ct, SymbolicZero)]

        def pull(values: Any, some: Any) -> Any:
            push = known[wrt].structure.unflatten([*[0.0] * count, *values])[1]
            mapped = lambda *dxs: [push(*dxs)[i] for i in live]
            return jax.linear_transpose(mapped, *[their_type(xs[i].type) for i in moving])(some)

        found = FromJax(pull)(values, [some[i] for i in live])
        return tuple(_in_places(moving, found, [None] * len(xs)))

    f = custom_vjp(lambda *ys: perform_jaxpr(eqn.params["call_jaxpr"], ys))
    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f(*xs)


@reads("custom_vmap_call")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    f = custom_vmap(lambda *ys: perform_jaxpr(eqn.params["call"], ys))

    @f.def_vmap
    def rule(size: int, mapped: Any, *ys: Any) -> Any:
        axes = [0 if yes else None for yes in mapped]
        results = FromJax(jax.vmap(_again(eqn), axes, axis_size=size))(*ys)
        return results, [True] * len(results)

    return f(*xs)


# Calls of the host


@reads("pure_callback")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    params = eqn.params
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in params["result_avals"]]
    return pure_callback(_host_function(eqn), types, *xs, vmap_method=params["vmap_method"])


@reads("io_callback")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in eqn.params["result_avals"]]
    return io_callback(_host_function(eqn), types, *xs, ordered=eqn.params["ordered"])


@reads("debug_callback")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    debug_callback(_host_function(eqn), *xs, ordered="Ordered" in type(eqn.params["effect"]).__name__)
    return []


@reads("debug_print")
def _(eqn: Any, *xs: Array) -> Sequence[Array]:
    params, leaves = eqn.params, list(xs)
    for place, value in sorted(dict(params["static_args"]).items()):
        leaves.insert(place, value)
    args, kwargs = jax.tree_util.tree_unflatten(params["in_tree"], leaves)
    debug_print(params["fmt"], *args, ordered=params["ordered"], **kwargs)
    return []


def _host_function(eqn: Any) -> Callable[..., Any]:
    """The function that an equation calls on the host, of NumPy's arrays."""
    function = eqn.params["callback"]
    return lambda *xs: function(*map(np.asarray, xs))
