"""Derivatives of functions: the public transformations over jvp, linearize and transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from ...effects.base import config
from ...effects.base.errors import (
    BadCall,
    DTypeMismatch,
    NotDifferentiable,
    ShapeMismatch,
    TreeMismatch,
    need_function,
)
from ...effects.base.source_locations import user_site
from ...effects.base.stack import STACK
from ...effects.base.tracebacks import boundary, unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.recorded_bodies import body_of
from ...effects.core.array_interface import ArrayLike
from ...effects.core.arrays import Array, Box, array_beside, as_array, concrete, is_shared, scalar, unaliased
from ...effects.core.escaped_boxes import check_leaks
from ...effects.core.signatures import A, FirstArgument, OfNumber, OfTree, P, R, X
from ...effects.functions.unsupported import must_be_empty
from ...effects.programs.closure_conversion import close
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.array_type import ArrayType, array_type, stated
from ..analysis.dependence import scattered
from ..differentiation.jvp import Jvp
from ..differentiation.linearize import linearize as linearize_flat
from ..differentiation.transpose import transpose_program
from ..references.arguments import positions_of
from .differentiated_arguments import differentiable, of_argnums
from .gradient_references import vjp_of_references
from .jacobian_blocks import basis, need_no_ragged, split, split_axis
from .linear_functions import (
    LinearSignature,
    Pullback,
    Pushforward,
    materialised,
    other_structure,
    tangent_of,
    tangent_type,
    zero_tangent,
)
from .saved_arguments import flags
from .vmap import directions, vmap_leaves

F = Callable[..., Any]
_REDUCE = "sum the derivative over named axes with lax.psum."


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[R, R, A]: ...
@overload
def jvp(fun: F, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any: ...
@boundary
def jvp(fun: F, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Value and directional derivative.

        jvp(f, (x,), (dx,)) = f(x), f'(x) dx

    Effects: forwards everything; an effect with a tangent as operand follows its ``diff``, or is refused.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: tangents differ from primals in structure, shape or dtype.

    >>> from handlax import numpy as hnp
    >>> jvp(hnp.sin, (0.0,), (1.0,))[1]
    Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise BadCall(
            "jvp: primals and tangents are tuples or lists, "
            f"got {type(primals).__name__} and {type(tangents).__name__}.",
            hint="one element for each argument: jvp(f, (x,), (dx,)).",
        )
    need_function("jvp", fun)
    xs, tree = pytrees.flatten(tuple(primals))
    dxs, tangent_tree = pytrees.flatten(tuple(tangents))
    if tree is not tangent_tree and tree != tangent_tree:
        raise other_structure("jvp: the tuple of tangents", "tuple of primals", tree, tangent_tree)
    xs = [x if isinstance(x, Array) else differentiable("jvp", x) for x in xs]
    run = Jvp(STACK.get(), "jvp", user_site(2))
    boxes = [run.pair(x, tangent_of("jvp", x.type, dx)) for x, dx in zip(xs, dxs)]
    around = STACK.get()  # ``with installed(run)``, which takes as long as an operation
    try:
        STACK.set(run)
        results, aux = _pair("jvp", fun(*tree.unflatten(boxes))) if has_aux else (fun(*tree.unflatten(boxes)), None)
        ys, out_tree = pytrees.flatten(results)
        ys = [as_array(y) for y in ys]
    finally:
        run.ended = True
        STACK.set(around)
    pairs = [run.unbox(y) for y in ys]
    out = out_tree.unflatten([y for y, _ in pairs])
    d_out = out_tree.unflatten(unaliased([zero_tangent(y.type) if dy is None else dy for y, dy in pairs], dxs))
    answer = (out, d_out, _unboxed(run, aux)) if has_aux else (out, d_out)
    if config.current().check_leaks:
        del boxes, results, aux, ys
        check_leaks(run)
    return answer


def _unshared(x: Array) -> Array:
    """``x``, as another array where it is a number's: an argument is a residual, a number that ``fun`` names is not."""
    return concrete(x.type, x.value) if not x.type.shape and is_shared(x) else x  # type: ignore[attr-defined]


def _pair(where: str, results: Any) -> tuple[Any, Any]:
    if isinstance(results, (tuple, list)) and len(results) == 2:
        return results[0], results[1]
    got = results.type if isinstance(results, Array) else type(results).__name__
    raise TreeMismatch(f"{where}: with has_aux=True the function gives (result, aux), got {got}.")


def _unboxed(run: Jvp, tree: Any) -> Any:
    return pytrees.map(lambda x: run.unbox(x)[0] if isinstance(x, Box) else x, tree)


class _LinearizedCall:
    """A function linearized at a point: results with their treedef, and the linear map from tangents or cotangents."""

    def __init__(self, where: str, fun: F, args: tuple[Any, ...], has_aux: bool, in_nzs: Any = None):
        xs, self.tree = pytrees.flatten(args)
        self.xs = [_unshared(differentiable(where, x)) for x in xs]
        self.types = [tangent_type(x.type) for x in self.xs]
        if in_nzs is not None:
            nonzero = flags(f"{where}: in_nzs", in_nzs, self.tree)
            self.types = [t if yes else None for t, yes in zip(self.types, nonzero)]
        self.aux: Any = None

        def flat(*boxes: Any) -> Sequence[Any]:
            results = fun(*pytrees.unflatten(self.tree, boxes))
            if has_aux:
                results, self.aux = _pair(where, results)
            ys, self.out_tree = pytrees.flatten(results)
            return [as_array(y) for y in ys]

        self.linear = linearize_flat(flat, self.xs, self.types, where)
        if has_aux:
            self.aux = _unboxed(self.linear.run, self.aux)
        if config.current().check_leaks:
            check_leaks(self.linear.run)
        self.outs = self.linear.outs

    def signature(self) -> LinearSignature:
        """The structures and types of the arguments and of the result."""
        types = tuple([x.type for x in self.xs]), tuple([y.type for y in self.outs])
        return LinearSignature(self.tree, types[0], self.out_tree, types[1], tuple(self.types))

    def result(self) -> Any:
        return pytrees.unflatten(self.out_tree, self.outs)

    def pullback(self, cts: Sequence[Any]) -> list[Any]:
        """The cotangent of every argument leaf, None being zero."""
        return scattered(self.linear.derivative.pullback(cts), [t is not None for t in self.types])


@overload
def vjp(
    fun: Callable[..., R], primal: Any, /, *primals: Any, has_aux: Literal[False] = False, reduce_axes: Any = (),
    saveable_args: Any = True, in_nzs: Any = None,
) -> tuple[R, Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], primal: Any, /, *primals: Any, has_aux: Literal[True], reduce_axes: Any = (),
    saveable_args: Any = True, in_nzs: Any = None,
) -> tuple[R, Pullback, A]: ...
@overload
def vjp(
    fun: F, primal: Any, /, *primals: Any, has_aux: bool, reduce_axes: Any = (), saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any: ...
@boundary
def vjp(
    fun: F, *primals: Any, has_aux: bool = False, reduce_axes: Any = (), saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """Value and pullback.

        y, pull = vjp(f, x);  pull(ct) = (f'(x)^T ct,)

    The function is called once; the pullback may be called any number of times. It is a tree of its residuals: it can
    leave ``jit``, be mapped and carried; ``pull.program`` is the program that it performs.

    Args:
        saveable_args: whether the pullback may keep an argument: a boolean, or a tree prefix of them for the arguments,
            in which tuples stand for any container. ``pull.args_res`` has ``NotSaveable()`` in place of the others that
            it reads, and they are put there before it is called.
        in_nzs: which arguments have a tangent that may differ from zero, as ``saveable_args``; by default all. The
            others get zero cotangents; ``pull.out_nzs`` says which results depend on those marked.

    >>> from handlax import numpy as hnp
    >>> y, pull = vjp(lambda x: x * x, 3.0)
    >>> pull(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    must_be_empty("vjp", "reduce_axes", reduce_axes, _REDUCE)
    return _vjp("vjp", fun, primals, has_aux, saveable_args, in_nzs)


def _vjp(
    where: str, fun: F, primals: tuple[Any, ...], has_aux: bool, saveable_args: Any = True, in_nzs: Any = None
) -> Any:
    """``vjp`` for the function ``where``, which errors name."""
    need_function(where, fun)
    try:
        traced = _LinearizedCall(where, fun, primals, has_aux, in_nzs)
    except NotDifferentiable:
        if not positions_of(pytrees.leaves(primals)):
            raise
        return vjp_of_references(vjp, fun, primals, has_aux)
    saveable = None if saveable_args is True else flags(f"{where}: saveable_args", saveable_args, traced.tree)
    pull = Pullback(traced.linear.derivative, traced.signature(), traced.xs, saveable)
    return (traced.result(), pull, traced.aux) if has_aux else (traced.result(), pull)


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Pushforward]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Pushforward, A]: ...
@overload
def linearize(fun: F, *primals: Any, has_aux: bool) -> Any: ...
@boundary
def linearize(fun: F, *primals: Any, has_aux: bool = False) -> Any:
    """Value and linear map.

        y, push = linearize(f, x);  push(dx) = f'(x) dx

    The function is called once. The linear map is a tree of its residuals, as the pullback of ``vjp`` is.
    """
    need_function("linearize", fun)
    traced = _LinearizedCall("linearize", fun, primals, has_aux)
    push = Pushforward(traced.linear.derivative, traced.signature())
    return (traced.result(), push, traced.aux) if has_aux else (traced.result(), push)


@boundary
def linear_transpose(fun: F, *primals: Any, reduce_axes: Any = ()) -> F:
    """The adjoint of a function that is linear: ``<u, f(x)> = <linear_transpose(f, x)(u), x>``.

    Of ``primals`` only the types are used; they may be ``ShapeDtypeStruct``.

    Raises: NotDifferentiable: the function is not linear. DTypeMismatch: arguments and results are neither all
        floating-point, real or complex, nor all integers.
    """
    need_function("linear_transpose", fun)
    must_be_empty("linear_transpose", "reduce_axes", reduce_axes, _REDUCE)
    leaves, tree = pytrees.flatten(primals)
    types = [abstract(x) for x in leaves]
    recorded = body_of(name_of(fun), lambda *boxes: fun(*pytrees.unflatten(tree, boxes)), types, "linear_transpose")
    program, captured = close(recorded.program)
    linear = [False] * len(captured) + [True] * len(types)
    kinds = {dtypes.is_inexact(t.dtype) for t in (*types, *program.out_types)}
    if len(kinds) > 1:
        raise DTypeMismatch(
            "linear_transpose: arguments and results must all be floating-point, or all integers, got "
            f"{', '.join(map(str, types))} -> {', '.join(map(str, program.out_types))}.",
            hint="close over integers, which are constants of the map.",
        )

    @unnamed_boundary
    def transposed(ct: Any) -> Any:
        cts, ct_tree = pytrees.flatten(ct)
        if ct_tree != recorded.structure:
            raise other_structure("linear_transpose: the cotangent", "result", recorded.structure, ct_tree)
        for leaf, t in zip(cts, program.out_types):
            if abstract(leaf).shape != t.shape:
                raise ShapeMismatch(
                    f"linear_transpose: the cotangent of {t} must have its shape, got {abstract(leaf).shape}."
                )
        adjoint, marks = transpose_program(program, linear, [True] * len(cts))
        in_cts = scattered(adjoint(*captured, *map(array_beside, cts, [t.dual for t in program.out_types])), marks)
        return pytrees.unflatten(tree, materialised(in_cts, [t.dual for t in types], cts))

    return transposed


def abstract(x: Any) -> ArrayType:
    """The type of an argument: of an array, a number, or anything with ``shape`` and ``dtype``."""
    if isinstance(x, ArrayType):
        return x
    if not isinstance(x, (Array, np.ndarray, np.generic)) and hasattr(x, "shape") and hasattr(x, "dtype"):
        weak, sharding = getattr(x, "weak_type", False), getattr(x, "sharding", None)
        return stated(array_type(tuple(x.shape), dtypes.canonical(x.dtype), bool(weak)), sharding)
    return as_array(x).type


@overload
def value_and_grad(
    fun: OfNumber[P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[ArrayLike, P, tuple[Array, Array]]: ...
@overload
def value_and_grad(
    fun: OfTree[X, P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[X, P, tuple[Array, X]]: ...
@overload
def value_and_grad(
    fun: OfNumber[P, tuple[ArrayLike, A]], argnums: Literal[0] = 0, *, has_aux: Literal[True],
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[ArrayLike, P, tuple[tuple[Array, A], Array]]: ...
@overload
def value_and_grad(
    fun: OfTree[X, P, tuple[ArrayLike, A]], argnums: Literal[0] = 0, *, has_aux: Literal[True],
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[X, P, tuple[tuple[Array, A], X]]: ...
@overload
def value_and_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool = ..., holomorphic: bool = ...,
    allow_int: bool = ..., reduce_axes: Any = ...,
) -> Callable[P, Any]: ...
def value_and_grad(
    fun: F, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Any = (),
) -> F:
    """The value and the gradient of a scalar function.

        value_and_grad(f)(x) = f(x), f'(x)^T 1

    Args:
        argnums: which positional arguments; a tuple gives a tuple of gradients.
        has_aux: the function gives ``(value, aux)``, and so does this: ``((value, aux), grad)``.
        holomorphic: arguments and value are complex, and the complex derivative is wanted.
        allow_int: integer arguments get gradients of ``float0``.

    Raises: NotDifferentiable: an argument is an integer, or complex where ``holomorphic`` is not set; the value is
        no real scalar.
    """
    both = _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return wraps(fun)(unnamed_boundary(both))


def _value_and_grad(
    where: str, fun: F, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, reduce_axes: Any
) -> F:
    """``value_and_grad`` for the function ``where``, without the name and documentation of ``fun``."""
    need_function(where, fun)
    must_be_empty(where, "reduce_axes", reduce_axes, _REDUCE)

    def both(*args: Any, **kwargs: Any) -> Any:
        chosen, of_chosen = of_argnums(where, fun, argnums, args, kwargs, holomorphic, allow_int)
        traced = _LinearizedCall(where, of_chosen, chosen, has_aux)
        value = traced.result()
        y = _check_output(where, value, traced.outs, holomorphic)
        one = scalar(1.0, y.type.dtype, y.type.weak)
        grads = materialised(traced.pullback([one]), [x.type.dual for x in traced.xs])
        tree = pytrees.unflatten(traced.tree, grads)
        grad = tree[0] if isinstance(argnums, int) else tree
        return ((value, traced.aux), grad) if has_aux else (value, grad)

    return both


def _check_output(where: str, value: Any, outs: Sequence[Any], holomorphic: bool) -> Any:
    if len(outs) != 1 or value is not outs[0]:
        several = "return (value, aux) and set has_aux=True for more than the value."
        raise NotDifferentiable(
            f"{where}: the function must give one scalar, got {'None' if value is None else type(value).__name__}.",
            hint="it returns nothing: a return statement is missing." if value is None else several,
        )
    (y,) = outs
    if y.type.shape:
        what = f"{where}: the function must give a scalar, got {y.type}."
        raise NotDifferentiable(what, hint="sum it, or use jacrev.")
    if holomorphic and not dtypes.is_complex(y.type.dtype):
        raise NotDifferentiable(f"{where}: with holomorphic=True the value is complex, got {y.type.dtype}.")
    if not holomorphic and not dtypes.is_floating(y.type.dtype):
        hint = "set holomorphic=True for a complex derivative." if dtypes.is_complex(y.type.dtype) else None
        raise NotDifferentiable(f"{where}: the value must be real, got {y.type.dtype}.", hint=hint)
    return y


@overload
def grad(
    fun: OfNumber[P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[ArrayLike, P, Array]: ...
@overload
def grad(
    fun: OfTree[X, P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[X, P, X]: ...
@overload
def grad(
    fun: OfNumber[P, tuple[ArrayLike, A]], argnums: Literal[0] = 0, *, has_aux: Literal[True],
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[ArrayLike, P, tuple[Array, A]]: ...
@overload
def grad(
    fun: OfTree[X, P, tuple[ArrayLike, A]], argnums: Literal[0] = 0, *, has_aux: Literal[True],
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Any = (),
) -> FirstArgument[X, P, tuple[X, A]]: ...
@overload
def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool = ..., holomorphic: bool = ...,
    allow_int: bool = ..., reduce_axes: Any = ...,
) -> Callable[P, Any]: ...
def grad(
    fun: F, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Any = (),
) -> F:
    """The gradient of a scalar function: ``grad(f)(x) = f'(x)^T 1``. Arguments as for ``value_and_grad``.

    >>> grad(lambda x: x * x)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps(fun)
    @unnamed_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


@overload
def jacfwd(
    fun: OfNumber[P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> FirstArgument[ArrayLike, P, Array]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...
def jacfwd(
    fun: F, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> F:
    """The Jacobian, column by column in forward mode: ``jacfwd(f)(x)[i, j] = d f_i / d x_j``.

    Shapes: ``f: a[*s] -> b[*t]`` gives ``b[*t, *s]``. Cheapest where inputs are fewer than outputs.
    """
    return _jacfwd("jacfwd", fun, argnums, has_aux, holomorphic)


def _jacfwd(where: str, fun: F, argnums: int | Sequence[int], has_aux: bool, holomorphic: bool) -> F:
    """``jacfwd``, called by the name ``where``."""
    need_function("jacfwd", fun)

    @wraps(fun)
    @unnamed_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen, of_chosen = of_argnums(where, fun, argnums, args, kwargs, holomorphic, None)
        need_no_ragged("jacfwd", chosen)
        leaves, tree = pytrees.flatten(chosen)
        xs = [differentiable(where, x) for x in leaves]
        if not holomorphic and any([dtypes.is_complex(x.type.dtype) for x in xs]):
            raise NotDifferentiable(
                f"{where}: without holomorphic=True arguments are real, got {', '.join([str(x.type) for x in xs])}.",
                hint="set holomorphic=True for a complex derivative, or use jacrev.",
            )

        def push(flat: Any) -> Any:
            return jvp(of_chosen, tuple(chosen), pytrees.unflatten(tree, split(flat, xs)), has_aux=has_aux)

        _, dy, *aux = directions(push, basis(xs), (None, -1, *((None,) if has_aux else ())))
        need_no_ragged("jacfwd", dy)
        single = isinstance(argnums, int)

        def columns(rows: Any) -> Any:
            blocks = pytrees.unflatten(tree, split_axis(rows, xs, rows.ndim - 1))
            return blocks[0] if single else blocks

        jac = pytrees.map(columns, dy)
        return (jac, aux[0]) if has_aux else jac

    return wrapped


@overload
def jacrev(
    fun: OfNumber[P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False,
) -> FirstArgument[ArrayLike, P, Array]: ...
@overload
def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    fun: F, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> F:
    """The Jacobian, row by row in reverse mode: ``jacrev(f)(x)[i, j] = d f_i / d x_j``.

    Shapes: as ``jacfwd``. Cheapest where outputs are fewer than inputs.
    """
    need_function("jacrev", fun)

    @wraps(fun)
    @unnamed_boundary
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen, of_chosen = of_argnums("jacrev", fun, argnums, args, kwargs, holomorphic, allow_int)
        need_no_ragged("jacrev", chosen)
        y, pull, *aux = _vjp("jacrev", of_chosen, chosen, has_aux)
        need_no_ragged("jacrev", y)
        ys, out_tree = pytrees.flatten(y)
        rows = vmap_leaves(lambda flat: pull(pytrees.unflatten(out_tree, split(flat, ys))))(basis(ys))
        leaves, tree = pytrees.flatten(rows)
        blocks = [split_axis(leaf, ys, 0) for leaf in leaves]
        per_output = [pytrees.unflatten(tree, [block[i] for block in blocks]) for i in range(len(ys))]
        if isinstance(argnums, int):
            per_output = [tree_of_args[0] for tree_of_args in per_output]
        jac = pytrees.unflatten(out_tree, per_output)
        return (jac, aux[0]) if has_aux else jac

    return wrapped


jacobian = jacrev


@overload
def hessian(
    fun: OfNumber[P, ArrayLike], argnums: Literal[0] = 0, has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> FirstArgument[ArrayLike, P, Array]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...
def hessian(
    fun: F, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> F:
    """Second derivatives: forward over reverse, ``jacfwd(jacrev(f))``."""
    return _jacfwd("hessian", jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
