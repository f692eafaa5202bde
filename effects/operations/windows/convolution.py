"""Convolution: sums of products over windows that slide along the spatial dimensions.

    z[n, o, s] = sum over c, k of x[n, c, stride s + dilation k - low] y[o, c, k]

``x`` is padded with zeros, and dilated by ``lhs_dilation - 1`` zeros between neighbouring elements. With feature
groups, output features read only the input features of their group; with batch groups, only the batch elements of their
group. Source: the StableHLO specification, ``convolution``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, MissingRule, ShapeMismatch
from ...base.stack import perform
from ...core.operation import operation, shared
from ...sharding.sharding_rules import ShardingRule, numbered
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import ANY, DType, float32, is_complex, to_real
from ...types.sized import extents_in, surely_at_most
from ..dot_general import SHARED_BY_BLAS, accumulator, common_dtype, multilinear_or_zero, need_represented
from ..elementwise.conversion import convert
from ..foundations.shapes import full, inverse_permutation, move_axis, reshape
from ..manipulation.slicing import lane_count, places_in_padding, rev, spread
from .dimension_numbers import ConvDimensionNumbers, layout
from .geometry import need_each


# z[n, o, s] = sum over c, k of x[n, c, strides s + dilation k - low] y[o, c, k]
@operation
class ConvGeneralDilated:
    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int = 1
    batch_group_count: int = 1
    precision: Any = None
    preferred_element_type: DType | None = None
    fixed_params = {"out_sharding": None}
    dtypes = ANY
    contracts = True

    def result_type(op, x, y):
        return convolution_type(op, x, y)

    def sharding_rule(op, operands, results):  # images and places are cut, kernels and features are whole
        lhs, _, out = op.dimension_numbers
        factors = dict(zip(lhs, ("image", "features", *lhs[2:]))), dict(zip(out, ("image", None, *lhs[2:])))
        x, kernel = ([factors[0][d] for d in numbered(operands[0])], [("kernel", d) for d in numbered(operands[1])])
        return ShardingRule([x, kernel], [[factors[1][d] for d in numbered(results[0])]], {"features", *kernel})

    def evaluate(op, x, y):
        return convolver(op, x, y)(x, y)

    def numpy_function(op, types):
        return convolver(op, *types)

    def batch(op, dims, x, y):
        return batch_convolution(op, dims, x, y)

    jvp = multilinear_or_zero

    def transpose(op, ct, x, y, *, wrt):
        return lhs_adjoint(op, ct, x, y) if wrt == 0 else rhs_adjoint(op, ct, x, y)

    def lower(op, emit, x, y):
        return lower_convolution(op, emit, x, y)

    def flops(op, operands, results):
        return 2 * results[0].size * prod([operands[1].shape[d] for d in op.dimension_numbers[1][1:]])

    def workload_size(op, x, y):
        """The number of multiplications; 0 for vectors, whose convolution NumPy computes as fast as XLA.

        Infinite from ``SHARED_BY_BLAS`` multiplications on, as that of ``DotGeneral``.
        """
        if of_vectors(op, x, y):
            return 0
        count = op.result_type(x, y).size * prod([y.shape[d] for d in op.dimension_numbers[1][1:]])
        return count if count < SHARED_BY_BLAS else inf


def convolution_type(op: Any, x: ArrayType, y: ArrayType) -> ArrayType:
    """The result type, after checks of dimension numbers, groups, sizes and dtypes."""
    rank = len(x.shape)
    if rank != len(y.shape) or rank < 2:
        raise ShapeMismatch(f"conv_general_dilated: operands must have one rank, at least 2, got {x} and {y}.")
    need_each("conv_general_dilated", x.shape[2:], {
        "window_strides": op.window_strides, "padding": op.padding, "lhs_dilation": op.lhs_dilation,
        "rhs_dilation": op.rhs_dilation,
    })
    sizes = layout(op, x.shape, y.shape)
    features, batches = op.feature_group_count, op.batch_group_count
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        raise BadArgument(
            "conv_general_dilated: feature_group_count and batch_group_count must be positive, and one of them 1, "
            f"got {features} and {batches}."
        )
    for what, size, groups in (
        ("the feature dimension of lhs", sizes.lhs[1], features), ("the batch dimension of lhs", sizes.lhs[0], batches),
        ("the output features of rhs", sizes.rhs[0], features * batches),
    ):
        if groups > 1 and size % groups:
            raise BadArgument(
                f"conv_general_dilated: the number of groups must divide {what}, got {groups} groups of {size} ({x} "
                f"and {y})."
            )
    if sizes.lhs[1] != sizes.rhs[1] * features:
        raise ShapeMismatch(
            f"conv_general_dilated: lhs must have as many features as rhs in each of {features} feature groups, "
            f"got {sizes.lhs[1]} ({x}) and {sizes.rhs[1]} ({y})."
        )
    shape = tuple([sizes.out[role] for role in inverse_permutation(op.dimension_numbers[2])])
    return array_type(shape, _result_dtype(op, x, y), x.weak and y.weak and op.preferred_element_type is None)


def _result_dtype(op: Any, x: ArrayType, y: ArrayType) -> Any:
    """The dtype of the result. Raises DTypeMismatch: the operands' differ, or it does not represent them."""
    if x.dtype != y.dtype or x.dtype not in op.dtypes:
        raise DTypeMismatch(
            f"conv_general_dilated: operands must have one dtype, got {x} and {y}.",
            hint="lax is strict: convert with lax.convert_element_type.",
        )
    dtype = op.preferred_element_type
    if dtype is None:
        return x.dtype
    need_represented("conv_general_dilated", x, dtype, ANY)
    return dtype


def convolver(op: Any, x: Any, y: Any) -> Callable[[Any, Any], Any]:
    """A NumPy function for convolutions of these shapes and dtype: for each group a matrix product of windows and
    weights.
    """
    (batch, features, *inside), (outputs, inputs, *window), (_, _, *spatial) = layout(op, x.shape, y.shape)
    dtype = op.preferred_element_type or x.dtype
    wide = accumulator(common_dtype(x.dtype, dtype))
    by_batch, by_feature = op.batch_group_count, op.feature_group_count
    groups = by_batch * by_feature
    rows, columns, inner = batch // by_batch, outputs // groups, inputs * prod(window)
    around = [(low, high, d - 1) for (low, high), d in zip(op.padding, op.lhs_dilation)]
    sizes, source, target = places_in_padding((batch, features, *inside), [(0, 0, 0), (0, 0, 0), *around])
    per_sample, per_feature, *steps = [wide.itemsize * prod(sizes[d + 1 :]) for d in range(len(sizes))]
    shape = (by_batch, by_feature, rows, *spatial, inputs, *window)
    strides = (
        rows * per_sample, inputs * per_feature, per_sample,
        *[step * stride for step, stride in zip(steps, op.window_strides)], per_feature,
        *[step * dilation for step, dilation in zip(steps, op.rhs_dilation)],
    )
    lhs, rhs, out = op.dimension_numbers
    if of_vectors(op, x, y):
        shape = tuple([spatial[0] if d == out[2] else 1 for d in range(3)])
        return vector_convolver((*inside, *window), op.padding[0], op.lhs_dilation[0], shape, wide, dtype)
    axes = range(2, len(spatial) + 2)
    by_role, back = (1, 0, axes.stop, *axes), inverse_permutation(out)

    def convolve(x: Any, y: Any) -> Any:
        base = np.zeros(sizes, wide)
        base[target] = x.transpose(lhs)[source]
        windows = np.ndarray(shape, wide, base, 0, strides) if base.size else np.zeros(shape, wide)
        weights = y.transpose(rhs).astype(wide, copy=False).reshape(groups, columns, inner)
        z = np.matmul(windows.reshape(groups, rows * prod(spatial), inner), weights.swapaxes(1, 2))
        z = z.reshape(groups, rows, *spatial, columns).transpose(by_role).reshape(rows, outputs, *spatial)
        return np.ascontiguousarray(z.transpose(back)).astype(dtype, copy=False)

    return convolve


def of_vectors(op: Any, x: Any, y: Any) -> bool:
    """Whether a convolution is one of vectors with stride 1, which ``np.convolve`` computes."""
    if op.window_strides != (1,) or op.rhs_dilation != (1,) or op.batch_group_count * op.feature_group_count != 1:
        return False
    (batch, features, size), (outputs, _, window), (_, _, spatial) = layout(op, x.shape, y.shape)
    return batch == features == outputs == 1 and size > 0 and window > 0 and spatial > 0


def vector_convolver(
    sizes: tuple[int, int], padding: tuple[int, int], dilation: int, shape: Sequence[int], wide: Any, dtype: Any
) -> Callable[[Any, Any], Any]:
    """A NumPy function that convolves two vectors by ``np.convolve``.

    As there, an element reaches no other sums than those that hold it: zeros of the padding, which infinite weights
    would turn to NaN, are multiplied by finite weights only.
    """
    size, window = sizes
    pad = padder(size, padding, dilation, wide)
    cut = padder(spread(size, dilation) + window - 1, [n - window + 1 for n in padding], 1, wide)
    unpadded = dilation == 1 and max(padding) <= 0
    fewer = dilation == 1 and sum(padding) >= window - 1  # products without the zeros than with them
    finite = unpadded or wide.kind not in "fc"

    def convolve(x: Any, y: Any) -> Any:
        x, y = x.ravel(), y.ravel()[::-1].astype(wide, copy=False)
        if fewer or not (finite or np.isfinite(y).all()):
            z = cut(all_sums(x.astype(wide, copy=False), y, dilation))
        else:
            z = np.convolve(pad(x), y, "valid")
        return z.astype(dtype, copy=False).reshape(shape)

    return convolve


def padder(size: int, padding: Sequence[int], dilation: int, dtype: Any) -> Callable[[Any], Any]:
    """A function that puts ``dilation - 1`` zeros between the elements of a vector of this size, and zeros at its ends,
    or removes elements there.
    """
    low, high = padding
    total, (source,), (target,) = places_in_padding((size,), [(low, high, dilation - 1)])

    def pad(x: Any) -> Any:
        y = np.zeros(total, dtype)
        y[target] = x[source]
        return y

    return pad


def all_sums(x: Any, y: Any, dilation: int) -> Any:
    """The convolution of ``x``, dilated, with ``y`` at all places where they meet; no zero is multiplied.

    z[d j + r] = sum over i of x[i] y[d (j - i) + r]: for each r an undilated convolution.
    """
    if dilation == 1:
        return np.convolve(x, y)
    z = np.zeros(spread(x.size, dilation) + y.size - 1, y.dtype)
    for r in range(min(dilation, y.size)):
        z[r::dilation] = np.convolve(x, y[r::dilation])
    return z


def regrouped(x: Any, source: int, target: int, groups: int) -> Any:
    """The array with the major factor ``groups`` of dimension ``source`` moved to be the major factor of ``target``."""
    shape = x.type.shape
    return merged(reshape(x, (*shape[:source], groups, shape[source] // groups, *shape[source + 1 :])), source, target)


def merged(x: Any, source: int, target: int, groups: int = 1) -> Any:
    """The array with dimension ``source`` merged into ``target`` (counted without it), inside its major factor
    ``groups``.

        merged(x, 0, 0, groups)[(g * n + i) * m + j] == x[i, g * m + j]
    """
    x = move_axis(x, source, target)
    n, size = x.type.shape[target : target + 2]
    head, tail = x.type.shape[:target], x.type.shape[target + 2 :]
    if groups > 1:
        x = move_axis(reshape(x, (*head, n, groups, size // groups, *tail)), target, target + 1)
    return reshape(x, (*head, n * size, *tail))


def parted(x: Any, dim: int, lanes: int, groups: int = 1) -> Any:
    """The inverse of ``merged``: the factor ``lanes`` of dimension ``dim`` becomes a dimension in front of it."""
    head, size, tail = x.type.shape[:dim], x.type.shape[dim] // lanes, x.type.shape[dim + 1 :]
    if groups > 1:
        x = move_axis(reshape(x, (*head, groups, lanes, size // groups, *tail)), dim + 1, dim)
    return reshape(x, (*head, lanes, size, *tail))


def batch_convolution(op: Any, dims: Any, x: Any, y: Any) -> tuple[Any, int]:
    """The batch rule: lanes of ``x`` join its batch, lanes of ``y`` its output features; lanes of both are feature
    groups.
    """
    (p, q), lanes = dims, lane_count((x, y), dims)
    lhs, rhs, out = op.dimension_numbers
    features, batches = op.feature_group_count, op.batch_group_count
    if not lanes:
        kinds = [_without(v.type, d) for v, d in zip((x, y), dims)]
        result = op.result_type(*kinds)
        return full(result.update(shape=(0, *result.shape)), 0), 0
    if q is None:
        return parted(perform(op, merged(x, p, lhs[0], batches), y), out[0], lanes), out[0]
    if p is None:
        groups = features * batches
        return parted(perform(op, x, merged(y, q, rhs[0], groups)), out[1], lanes, groups), out[1]
    into = lhs[0] if batches > 1 else lhs[1]
    counts = (features, batches * lanes) if batches > 1 else (features * lanes, batches)
    wide = shared(ConvGeneralDilated, *op.fields[:5], *counts, *op.fields[7:])
    return parted(perform(wide, merged(x, p, into), merged(y, q, rhs[0])), out[1], lanes), out[1]


def _without(t: ArrayType, dim: int | None) -> ArrayType:
    """The type without dimension ``dim``; unchanged for None."""
    return t if dim is None else t.update(shape=(*t.shape[:dim], *t.shape[dim + 1 :]))


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    """Dimension numbers with the first two roles exchanged."""
    return (spec[1], spec[0], *spec[2:])


def _adjoint(op: Any, numbers: Any, strides: Any, padding: Any, dilations: Any, groups: tuple[int, int]) -> Any:
    """The convolution that computes an adjoint of ``op``."""
    specs = ConvDimensionNumbers(*numbers)
    return shared(ConvGeneralDilated, strides, tuple(padding), *dilations, specs, *groups, op.precision)


def _dilated(op: Any, x: ArrayType, y: ArrayType, ct: ArrayType) -> list[tuple[int, int, int, int]]:
    """For each spatial dimension: the dilated sizes of the operands and the strided result, and the low padding."""
    lhs, rhs, out = op.dimension_numbers
    rows = zip(lhs[2:], rhs[2:], out[2:], op.lhs_dilation, op.rhs_dilation, op.window_strides, op.padding)
    return [
        (spread(x.shape[i], a), spread(y.shape[j], b), spread(ct.shape[k], stride), low)
        for i, j, k, a, b, stride, (low, _) in rows
    ]


def lhs_adjoint(op: Any, ct: Any, x: ArrayType, y: Any) -> Any:
    """The left operand's cotangent: the result's, dilated by the strides, convolved with the reversed weights."""
    lhs, rhs, out = op.dimension_numbers
    groups = op.feature_group_count * op.batch_group_count
    if not ct.type.size or not x.size:
        return full(x, 0)
    padding = [
        (window - low - 1, size + low - step) for size, window, step, low in _dilated(op, x, y.type, ct.type)
    ]
    weights = rev(convert(y, ct.type.dtype, ct.type.weak), rhs[2:])
    if groups > 1:
        weights = regrouped(weights, rhs[0], rhs[1], groups)
    back = _adjoint(
        op, (out, _swapped(rhs), lhs), op.lhs_dilation, padding, (op.window_strides, op.rhs_dilation), (groups, 1)
    )
    z = perform(back, ct, weights)
    if op.batch_group_count > 1:
        z = regrouped(z, lhs[1], lhs[0], groups)
    return convert(z, x.dtype, x.weak)


def rhs_adjoint(op: Any, ct: Any, x: Any, y: ArrayType) -> Any:
    """The right operand's cotangent: the left operand convolved with the result's cotangent, dilated by the strides."""
    lhs, rhs, out = op.dimension_numbers
    if not ct.type.size or not y.size:
        return full(y, 0)
    padding = [
        (low, step - size + window - low - 1) for size, window, step, low in _dilated(op, x.type, y, ct.type)
    ]
    back = _adjoint(
        op, [_swapped(spec) for spec in (lhs, out, rhs)], op.rhs_dilation, padding,
        (op.lhs_dilation, op.window_strides), (op.batch_group_count, op.feature_group_count),
    )
    return convert(perform(back, convert(x, ct.type.dtype, ct.type.weak), ct), y.dtype, y.weak)


def lower_convolution(op: Any, emit: Any, x: Any, y: Any) -> Any:
    """The lowering: zero for an empty sum; four real convolutions for complex numbers.

    Three real convolutions (Karatsuba) would cancel catastrophically where real and imaginary part differ in size.
    """
    out = emit.made
    if not x.type.size or not y.type.size or not out.size:
        return emit.full(0, out)
    if emit.platform == "cuda" and out.dtype.kind in "biu":
        raise MissingRule(
            f"conv_general_dilated: cuDNN has no convolution to {out.dtype} on the platform 'cuda', got {x.type}.",
            hint="convert to float64, or compute it on the host: jit(f, device=devices('cpu')[0]).",
        )
    if extents_in(op.padding):
        x, op = _padded(op, emit, x)
    if not is_complex(out.dtype):
        return _emit(op, emit, x, y, out)
    if not is_complex(x.type.dtype):
        x, y = emit.convert(x, out.dtype), emit.convert(y, out.dtype)
    (a, b), (c, d) = emit.parts(x), emit.parts(y)
    part = out.update(dtype=to_real(out.dtype))
    real = emit.binary("subtract", _emit(op, emit, a, c, part), _emit(op, emit, b, d, part))
    imaginary = emit.binary("add", _emit(op, emit, a, d, part), _emit(op, emit, b, c, part))
    return emit.op("complex", real, imaginary)


def _padded(op: Any, emit: Any, x: Any) -> tuple[Any, Any]:
    """The left operand with its padding, and the convolution that adds none."""
    config = [(0, 0, 0)] * len(x.type.shape)
    for d, (low, high), step in zip(op.dimension_numbers[0][2:], op.padding, op.lhs_dilation):
        config[d] = (low, high, step - 1)
    sizes = tuple([low + high + spread(n, step + 1) for n, (low, high, step) in zip(x.type.shape, config)])
    zero = emit.constant(0, x.type.update(shape=()))
    wide = emit.making(x.type.update(shape=sizes), lambda: emit.pad(x, zero, config))
    return wide, replace(op, padding=((0, 0),) * len(op.padding), lhs_dilation=(1,) * len(op.padding))


def _emit(op: Any, emit: Any, x: Any, y: Any, out: ArrayType) -> Any:
    """The convolution of real arrays; for CPUs with features last, as their kernels take it.

    XLA brings convolutions into that order by itself in the entry function alone: in the body of a loop those of other
    orders, such as derivatives, are computed element by element.
    """
    lhs, rhs, made = op.dimension_numbers
    if emit.platform != "cpu":
        return _convolution(op, op.dimension_numbers, emit, x, y, out)
    last, order = len(made) - 1, (made[0], *made[2:], made[1])
    image, window = (0, last, *range(1, last)), range(last - 1)
    numbers = ConvDimensionNumbers(image, (last, last - 1, *window), image)
    reverse = gains_by_loops(op, y.type)
    x = emit.transpose(x, (lhs[0], *lhs[2:], lhs[1]))
    y = emit.transpose(y, (*rhs[2:], rhs[1], rhs[0]))
    if reverse:
        y = emit.inline("reverse", f"{y.name}, dims = {list(window)}", type=y.type)
    z = _convolution(op, numbers, emit, x, y, out.update(shape=tuple([out.shape[d] for d in order])), reverse)
    return emit.transpose(z, inverse_permutation(order))


FEW_WEIGHTS, FEW_FEATURES = 150, 32  # of a group: for more, a convolution with feature or batch groups takes kernels


def gains_by_loops(op: Any, y: ArrayType) -> bool:
    """Whether XLA's loops over elements are faster on CPUs than its kernels, Eigen's, which no reversed window takes.

    A kernel costs at each place and group as much as about 150 multiplications in a loop; with batch groups, as the
    adjoints of weights have them, it costs so much for each element of a window that up to 32 features do not pay for
    it. Those with one feature a group XLA computes by other means; dtypes other than float32 have no such choice.
    """
    rhs = op.dimension_numbers[1]
    if y.dtype != float32 or len(rhs) == 2:
        return False
    if op.batch_group_count > 1:
        features = y.shape[rhs[0]] // op.batch_group_count
        return surely_at_most(2, features) and surely_at_most(features, FEW_FEATURES)
    return surely_at_most(y.size, FEW_WEIGHTS * op.feature_group_count)


def _convolution(
    op: Any, numbers: ConvDimensionNumbers, emit: Any, x: Any, y: Any, out: ArrayType, reverse: bool = False
) -> Any:
    """StableHLO's convolution of arrays whose dimensions have the roles ``numbers``; with ``reverse`` by the reversed
    weights.
    """
    dims = [_spec_text(spec, roles) for spec, roles in zip(numbers, ("bf", "oi", "bf"))]
    pads = [list(pair) for pair in op.padding]
    window = f"stride = {list(op.window_strides)}, pad = {pads}, lhs_dilate = {list(op.lhs_dilation)}, "
    window += f"rhs_dilate = {list(op.rhs_dilation)}"
    if reverse:
        window += f", reverse = [{', '.join(['true'] * len(pads))}]"
    precision = ", ".join([f"#stablehlo<precision {p.name}>" for p in op.precision]) if op.precision else ""
    attributes = f"batch_group_count = {op.batch_group_count} : i64, feature_group_count = {op.feature_group_count}"
    attributes += f" : i64{precision and f', precision_config = [{precision}]'}"
    text = f"({x.name}, {y.name}) dim_numbers = [{dims[0]}]x[{dims[1]}]->[{dims[2]}], "
    text += f"window = {{{window if pads else ''}}} {{{attributes}}}"
    return emit.inline("convolution", text, x, y, type=out)


def _spec_text(spec: Sequence[int], roles: str) -> str:
    """A spec in StableHLO's syntax: for each dimension its role, a letter of ``roles``, or its number if spatial."""
    names = [""] * len(spec)
    for name, d in zip((*roles, *range(len(spec) - 2)), spec):
        names[d] = str(name)
    return ", ".join(names)
