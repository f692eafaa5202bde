"""Convolutions with the names and arguments of ``jax.lax``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...base import config
from ...base.caches import cached
from ...base.errors import BadArgument, whole_number
from ...base.stack import perform
from ...core.arrays import Array, as_array, as_arrays, concrete
from ...core.operation import shared
from ...functions.out_shardings import cuts_result
from ...types.array_type import array_type
from ...types.dtypes import canonical
from ..dot_general import Precision, canonical_precision, dot_general
from ..foundations.shapes import move_axis
from ..manipulation.slicing import rev, spread
from .convolution import ConvGeneralDilated
from .dimension_numbers import (
    canonical_specs,
    conv_dimension_numbers,
    transposed_padding,
)
from .geometry import integers, padtype_to_pads, pairs


@cuts_result
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The convolution of a batch of images of any rank with weights, without reversing these.

        z[n, o, s] = sum over c, k of lhs[n, c, strides s + rhs_dilation k - low] * rhs[o, c, k]

    Shapes: (batch, features, *spatial) and (output features, input features, *window) give (batch, output features,
        *spatial), where ``dimension_numbers`` do not say another order.
    Dtypes: the operands have one; the result has it too, or ``preferred_element_type``, in which sums are computed.

    Args:
        padding: pairs (low, high) of zeros around each spatial dimension, negative ones remove elements; or "SAME",
            "SAME_LOWER", "VALID".
        lhs_dilation: ``lhs_dilation - 1`` zeros are put between elements of ``lhs``.
        rhs_dilation: ``rhs_dilation - 1`` zeros are put between elements of ``rhs``.
        dimension_numbers: three words for lhs, rhs and the result, such as ("NHWC", "HWIO", "NHWC"): N is the batch, C
            are features, I and O those of rhs, all other letters spatial. Strides are in the order of ``rhs``.
        feature_group_count: the number of groups of features, which are convolved separately.
        batch_group_count: the number of groups of the batch and the output features; one of the two counts is 1.
        precision: a ``Precision``, its name, a pair, or None for ``config.default_matmul_precision``.
    Raises: ShapeMismatch, BadArgument: sizes and groups do not fit. DTypeMismatch: the dtypes differ.
    Source: the StableHLO specification, ``convolution``.

    >>> image, weights = np.arange(16.0).reshape(1, 1, 4, 4), np.ones((1, 1, 2, 2))
    >>> conv_general_dilated(image, weights, (2, 2), "VALID")
    Array([[[[10., 18.],
             [42., 50.]]]], dtype=float64)
    """
    x, y = as_arrays(lhs, rhs)
    known = (
        x.type.shape, y.type.shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        feature_group_count, batch_group_count, precision, preferred_element_type,
        config.current().default_matmul_precision,
    )
    try:
        op = _known(*known)
    except TypeError:  # lists cannot be hashed
        op = _known.__wrapped__(*known)  # type: ignore[attr-defined]
    return perform(op, x, y)


@cached("convolutions")
def _known(
    lhs: Any, rhs: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, dimension_numbers: Any,
    features: Any, batches: Any, precision: Any, preferred: Any, default: Any,
) -> ConvGeneralDilated:
    """The cached operation for shapes and arguments of ``conv_general_dilated``; ``default``: the configured precision.
    """
    name, ones = "conv_general_dilated", (1,) * (len(lhs) - 2)
    numbers = canonical_specs(conv_dimension_numbers(lhs, rhs, dimension_numbers), len(lhs))
    strides = integers(name, "window_strides", window_strides, 1)
    spread_lhs = ones if lhs_dilation is None else integers(name, "lhs_dilation", lhs_dilation, 1)
    spread_rhs = ones if rhs_dilation is None else integers(name, "rhs_dilation", rhs_dilation, 1)
    if isinstance(padding, str):
        if spread_lhs != ones:
            raise BadArgument(
                f"{name}: padding must be pairs where lhs_dilation is not 1, got {padding!r}.",
                hint="lax.conv_transpose finds the padding of a transposed convolution.",
            )
        sizes = [lhs[d] for d in numbers.lhs_spec[2:]]
        windows = [spread(rhs[d], dilation) for d, dilation in zip(numbers.rhs_spec[2:], spread_rhs)]
        padding = padtype_to_pads(sizes, windows, strides, padding)
    return shared(
        ConvGeneralDilated, strides, pairs(name, padding), spread_lhs, spread_rhs, numbers,
        whole_number(f"{name}: feature_group_count", features), whole_number(f"{name}: batch_group_count", batches),
        _precision(precision, default), None if preferred is None else canonical(preferred),
    )


def _precision(precision: Any, default: Any) -> Any:
    """``precision`` as a field of ``ConvGeneralDilated``. Raises BadArgument: it is an algorithm of ``dot_general``."""
    canonical = canonical_precision(precision, default)
    if canonical is not None and not isinstance(canonical[0] if isinstance(canonical, tuple) else canonical, Precision):
        if precision is None:  # the setting is for products of matrices
            return None
        raise BadArgument(f"conv_general_dilated: precision must be a lax.Precision or a pair, got {precision!r}.")
    return canonical


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """``conv_general_dilated`` without dilation, groups and dimension numbers.

    >>> conv(np.ones((1, 1, 3)), np.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 2.]]], dtype=float64)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """``conv_general_dilated`` without groups and dimension numbers.

    >>> conv_with_general_padding(np.ones((1, 1, 3)), np.ones((1, 1, 2)), (1,), [(0, 1)], None, (2,))
    Array([[[2., 1.]]], dtype=float64)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )


_BY_RANK = {
    2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The transposed convolution: ``lhs``, dilated by the strides, convolved with ``rhs``.

    Args:
        padding: "SAME" or "VALID" is the padding of the convolution that it transposes; so are pairs with
            ``use_consistent_padding``, else they pad ``lhs``.
        dimension_numbers: None is features last, ("NHWC", "HWIO", "NHWC") for images.
        transpose_kernel: ``rhs`` is the kernel of the convolution that is transposed: its spatial dimensions are
            reversed, and input and output features exchanged. The result is then the cotangent of that convolution's
            left operand.
    Raises: BadArgument: there are no default dimension numbers for the rank; as ``conv_general_dilated``.
    Source: Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), section 4.

    >>> conv_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), (2,), "VALID")[0, :, 0]
    Array([1., 1., 2., 1., 1.], dtype=float64)
    """
    x, y = as_arrays(lhs, rhs)
    rank = len(x.type.shape)
    if dimension_numbers is None:
        if rank not in _BY_RANK:
            raise BadArgument(
                f"conv_transpose: dimension_numbers must be given unless the rank is one of "
                f"{', '.join(map(str, sorted(_BY_RANK)))}, got {x.type}."
            )
        dimension_numbers = _BY_RANK[rank]
    numbers = canonical_specs(conv_dimension_numbers(x.type.shape, y.type.shape, dimension_numbers), rank)
    strides = integers("conv_transpose", "strides", strides, 1)
    output, input, *spatial = numbers.rhs_spec
    dilation = (1,) * (rank - 2) if rhs_dilation is None else tuple(rhs_dilation)
    if use_consistent_padding or (isinstance(padding, str) and padding in ("SAME", "VALID")):
        each = [padding] * len(strides) if isinstance(padding, str) else padding
        windows = [spread(y.type.shape[d], step) for d, step in zip(spatial, dilation)]
        padding = [transposed_padding(k, s, p) for k, s, p in zip(windows, strides, each)]
    if transpose_kernel:
        y = rev(y, tuple(spatial))
        specs = numbers._replace(rhs_spec=(input, output, *spatial))
    else:
        specs = numbers
    return conv_general_dilated(
        x, y, (1,) * (rank - 2), padding, strides, dilation, specs, precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The elements that each window of a convolution reads, as features of the result.

    Shapes: (batch, features, *spatial) gives (batch, features * prod(filter_shape), *spatial): of each feature the
        window in row-major order, ``filter_shape`` in the order of the letters of ``rhs``.

    >>> conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float64)
    """
    x, window = as_array(lhs), integers("conv_general_dilated_patches", "filter_shape", filter_shape, 0)
    numbers = conv_dimension_numbers(x.type.shape, (1, 1, *window), dimension_numbers)
    numbers = canonical_specs(numbers, len(x.type.shape))
    features, size = x.type.shape[numbers.lhs_spec[1]], prod(window)
    ones = np.tile(np.eye(size, dtype=x.type.dtype), (features, 1)).reshape(features * size, 1, *window)
    order = sorted(range(len(numbers.rhs_spec)), key=numbers.rhs_spec.__getitem__)
    weights = np.ascontiguousarray(ones.transpose(order))
    return conv_general_dilated(
        x, concrete(array_type(weights.shape, x.type.dtype, x.type.weak), weights), window_strides, padding,
        lhs_dilation, rhs_dilation, numbers, features,
        precision=None if precision is None else (precision, Precision.DEFAULT),
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution with separate weights for each window (locally connected).

        z[n, o, s] = sum over i of conv_general_dilated_patches(lhs, filter_shape, ...)[n, i, s] * rhs[o, i, s]

    Shapes: ``rhs`` is (output features, input features * prod(filter_shape), *spatial), the spatial dimensions as those
        of the result.

    >>> conv_general_dilated_local(np.ones((1, 1, 4)), np.arange(6.0).reshape(1, 2, 3), (1,), "VALID", (2,))
    Array([[[3., 5., 7.]]], dtype=float64)
    """
    pair = _precision(precision, config.current().default_matmul_precision)
    x, y = as_arrays(lhs, rhs)
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        None if pair is None else pair[0],
    )
    numbers = conv_dimension_numbers(x.type.shape, (1, 1, *filter_shape), dimension_numbers)
    _, rhs_spec, out_spec = canonical_specs(numbers, len(x.type.shape))
    spatial = sorted(zip(out_spec[2:], rhs_spec[2:]))
    batch = tuple([a for a, _ in spatial]), tuple([b for _, b in spatial])
    z = dot_general(patches, y, (((out_spec[1],), (rhs_spec[1],)), batch), pair)  # spatial, batch, features
    rank = len(out_spec)
    first, second = sorted([(out_spec[0], rank - 2), (out_spec[1], rank - 1)])
    return move_axis(move_axis(z, first[1], first[0]), rank - 1, second[0])
