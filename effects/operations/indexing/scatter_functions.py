"""The functions of scatter: windows replaced, added to, multiplied or mapped by a function; and index_take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import BadArgument, CannotCross, DTypeMismatch, NotDifferentiable
from ...base.later_layers import LaterLayers
from ...base.stack import BASE, inside, perform
from ...base.wrapping import renamed
from ...core.arrays import Array, as_array, as_arrays, concrete, scalar
from ...core.columns import zero
from ...core.operation import effects_text, operation
from ...programs.higher_order import record_body
from ...programs.program import Program, interpret
from ...types.array_type import array_type
from ...types.dtypes import is_unsigned
from ..elementwise.arithmetic import add, rem
from ..elementwise.comparison import lt, select
from ..foundations.shapes import canonical_axis, canonical_shape, zeros
from ..manipulation.operand_promotion import together
from ..manipulation.rearranging import expand_dims
from ..manipulation.slicing import concatenate
from .dynamic_slicing import index_holding
from .gather_scatter import (
    CLIP,
    Scatter,
    ScatterAdd,
    ScatterFamily,
    ScatterMax,
    ScatterMin,
    ScatterSub,
    gather,
    region,
)
from .gather_windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    evaluate_scatter,
    gathering,
    window_sizes,
)


# y = x, then y[i[o] + w] = f(y[i[o] + w]) for o in order; u gives the shape of the windows
@operation
class ScatterApply(ScatterFamily):
    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool
    unique_indices: bool
    mode: GatherScatterMode
    body: Program
    exempt = {"jvp": "there is no rule for a function applied repeatedly", "transpose": "it is not linear"}

    def evaluate(op, x, i, u):
        counts, ones = np.zeros(x.shape, np.int64), np.ones(u.shape, np.int64)
        counts = evaluate_scatter(op.dimension_numbers, counts, i, ones, np.add, op.mode is not CLIP).reshape(-1)
        y = np.array(x).reshape(-1)
        for times in range(int(counts.max(initial=0))):
            index = np.flatnonzero(counts > times)
            elements = concrete(array_type(index.shape, op.body.in_types[0].dtype), y[index])
            batched, dims = LaterLayers.batch_program(op.body, (0,), index.size)
            with inside(BASE):
                (result,) = interpret(batched, (elements,))
            y[index] = result.value if dims[0] is not None else np.broadcast_to(result.value, index.shape)
        return y.reshape(x.shape)

    def jvp(op, primals, tangents):
        if any(d is not None for d in tangents):
            raise NotDifferentiable(
                "scatter_apply: there is no derivative where an element may be updated several times.",
                hint="pass unique_indices=True if no element is.",
            )
        return zero(op, primals, tangents)

    def lower(op, emit, x, i, u):
        return region(lambda element, _: interpret(op.body, (element,))[0])(op, emit, x, i, u)


def scatter_function(kind: Any, doc: str, example: str = "") -> Callable[..., Array]:
    """The public function of a class of scatters.

    ``doc``: its docstring; with an ``example``, arguments and result, the end of its first sentence alone.
    """

    def function(
        operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
        indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    ) -> Array:
        x, u = as_arrays(operand, updates)
        numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        op = kind(numbers, bool(indices_are_sorted), bool(unique_indices), GatherScatterMode.from_any(mode))
        return perform(op, x, as_array(scatter_indices), u)

    renamed(function, kind.name)
    function.__doc__ = f"""``y = operand``, then ``y[scatter_indices[o] + w]{doc}

    Arguments are those of ``scatter``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> {kind.name}{example}
    """ if example else doc
    return function


scatter = scatter_function(
    Scatter,
    """``y = operand``, then ``y[scatter_indices[o] + w] = updates[o, w]``: windows replaced.

    Of several updates of one element the last one in row-major order of ``o`` wins (on a GPU: any one of them).

    Args:
        scatter_indices: integers; the last dimension is that of index vectors.
        updates: a window for each index vector, dimensions as ``dimension_numbers`` defines them.
        indices_are_sorted, unique_indices: promises; with unique indices derivatives are cheaper.
        mode: how a window that is partly outside is treated: ``drop`` (the default) or ``clip``.
    Raises: ShapeMismatch, BadArgument, DTypeMismatch: dimension numbers, shapes and dtypes do not agree.
    Source: StableHLO specification, scatter.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(np.zeros(3), np.array([[2], [0]]), np.array([5.0, 6.0]), single)
    Array([6., 0., 5.], dtype=float64)
    """,
)

_SHARED_TANGENT = "The derivative is shared equally by all that attain the"
scatter_add = scatter_function(
    ScatterAdd, " += updates[o, w]``: the adjoint of ``gather``.",
    "(np.zeros(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)\n    Array([ 0.,  0., 11.], dtype=float64)",
)
scatter_sub = scatter_function(
    ScatterSub, " -= updates[o, w]``.",
    "(np.zeros(3), np.array([[2], [2]]), np.array([5.0, 6.0]), single)\n    Array([  0.,   0., -11.], dtype=float64)",
)
scatter_min = scatter_function(
    ScatterMin, f"`` is the smaller of itself and ``updates[o, w]``.\n\n    {_SHARED_TANGENT} minimum.",
    "(np.ones(3), np.array([[2], [2]]), np.array([5.0, -6.0]), single)\n    Array([ 1.,  1., -6.], dtype=float64)",
)
scatter_max = scatter_function(
    ScatterMax, f"`` is the larger of itself and ``updates[o, w]``.\n\n    {_SHARED_TANGENT} maximum.",
    "(np.ones(3), np.array([[2], [2]]), np.array([5.0, -6.0]), single)\n    Array([1., 1., 5.], dtype=float64)",
)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Array:
    """``y = operand``, then ``y[scatter_indices[o] + w] = func(y[scatter_indices[o] + w])``, once for every ``o``.

    ``func`` is a function of a scalar; an element in two windows is replaced twice. ``update_shape`` is the shape that
    updates would have; the other arguments are those of ``scatter``.
    Raises: NotDifferentiable: a derivative without ``unique_indices``.

    >>> single = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.ones(3), np.array([[2], [2], [0]]), lambda x: x + x, single, update_shape=(3,))
    Array([2., 1., 4.], dtype=float64)
    """
    x, i = as_array(operand), as_array(scatter_indices)
    numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
    shape = canonical_shape(update_shape, "scatter_apply")
    flags = (bool(indices_are_sorted), bool(unique_indices), GatherScatterMode.from_any(mode))
    if unique_indices:
        window = window_sizes(numbers, x.type.shape, shape)
        return perform(Scatter(numbers, *flags), x, i, func(gather(x, i, gathering(numbers), window, mode=flags[2])))
    element = array_type((), x.type.dtype, x.type.weak)
    body = record_body(lambda y: [as_array(func(y))], [element], "scatter_apply")
    if body.effects:
        raise CannotCross(f"scatter_apply: the function must be pure, it performs {effects_text(body.effects)}.")
    if body.out_types[0].strong() is not element.strong():
        raise DTypeMismatch(f"scatter_apply: the function must give an element of {x.type}, got {body.out_types[0]}.")
    return perform(ScatterApply(numbers, *flags, body), x, i, zeros(array_type(shape, x.type.dtype)))


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """``y[o] = src[idxs[0][o], idxs[1][o], ...]`` along ``axes``; an index is used modulo the size of its axis.

    >>> index_take(np.arange(6).reshape(3, 2), [np.array([-1, 0])], (0,))
    Array([[4, 5],
           [0, 1]], dtype=int64)
    """
    x = as_array(src)
    axes = tuple([canonical_axis(axis, x.ndim, "index_take") for axis in axes])
    parts = [as_array(part) for part in idxs]
    if len(parts) != len(axes) or any(part.ndim != 1 for part in parts) or not parts:
        types = ", ".join([str(part.type) for part in parts])
        raise BadArgument(f"index_take: needs one array of rank 1 for each axis, got {types} for {axes}.")
    parts = together("index_take", *[index_modulo(i, x.type.shape[axis]) for i, axis in zip(parts, axes)])
    vectors = concatenate([expand_dims(i, (1,)) for i in parts], 1)
    window = tuple([1 if d in axes else n for d, n in enumerate(x.type.shape)])
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(x, vectors, numbers, window)


def index_modulo(index: Any, size: int) -> Any:
    """``index`` modulo ``size``, not negative; in a wider dtype where its own does not hold ``size``."""
    index = index_holding(index, size)
    n = scalar(size, index.type.dtype)
    rest = rem(index, n)
    zero = scalar(0, index.type.dtype)
    return rest if is_unsigned(index.type.dtype) else select(lt(rest, zero), add(rest, n), rest)
