"""Dimension numbers: the dimensions of the operands and the result of a convolution, by role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.errors import BadArgument, ShapeMismatch
from ..foundations.shapes import inverse_permutation
from ..manipulation.slicing import spread
from .geometry import integers, need_each, padtype_to_pads, windows_along


class ConvDimensionNumbers(NamedTuple):
    """The dimensions of ``lhs``, ``rhs`` and the result of a convolution, each in the same order of roles.

    ``lhs_spec`` and ``out_spec``: (batch, feature, spatial ...). ``rhs_spec``: (output feature, input feature,
    spatial ...).
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
"""The layouts of images, kernels and results of a convolution; None is ``('NCHW', 'OIHW', 'NCHW')``, with more or
fewer spatial letters.
"""
Spec = tuple[int, ...]


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Spec, Spec, Spec]:
    """The three specs of a convolution whose dimensions are named by letters; spatial ones in the order of ``rhs``.

    Raises: BadArgument: these are not three words, a letter occurs twice, one of "NC", "OI", "NC" is missing, or the
        spatial ones differ.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    words = isinstance(dimension_numbers, (tuple, list)) and [isinstance(names, str) for names in dimension_numbers]
    if words != [True] * 3:
        raise BadArgument(f"conv: dimension_numbers must be three words, got {dimension_numbers!r}.")
    spatial = [name for name in dimension_numbers[1] if name not in "OI"]
    specs = []
    for i, (names, roles) in enumerate(zip(dimension_numbers, ("NC", "OI", "NC"))):
        if len(set(names)) != len(names) or not set(roles) <= set(names):
            raise BadArgument(
                f"conv: dimension_numbers[{i}] must contain each of {roles[0]!r} and {roles[1]!r} exactly once, and "
                f"other letters once, got {names!r}."
            )
        if set(names) - set(roles) != set(spatial):
            raise BadArgument(
                f"conv: dimension_numbers must have the same set of spatial letters, got {tuple(dimension_numbers)}."
            )
        specs.append(tuple([names.index(name) for name in (*roles, *spatial)]))
    return specs[0], specs[1], specs[2]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Dimension numbers in their general form; None is (batch, feature, spatial ...), (output, input, spatial ...).

    Raises: BadArgument: they are neither three words with one letter for each dimension nor ``ConvDimensionNumbers``.
        ShapeMismatch: the operands have different ranks.

    >>> conv_dimension_numbers((1, 9, 3), (5, 3, 4), ("NWC", "WIO", "NWC"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise ShapeMismatch(
            f"conv: lhs and rhs must have one rank, got shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise BadArgument(f"conv: dimension_numbers must be None or three words, got {dimension_numbers!r}.")
    for i, names in enumerate(dimension_numbers):
        if not isinstance(names, str) or len(names) != rank:
            raise BadArgument(
                f"conv: dimension_numbers[{i}] must have one letter for each of {rank} dimensions, got {names!r}.",
                hint="for images lax.conv has ('NCHW', 'OIHW', 'NCHW').",
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def canonical_specs(dimension_numbers: ConvDimensionNumbers, rank: int) -> ConvDimensionNumbers:
    """The dimension numbers as tuples of integers. Raises BadArgument: a spec is no permutation of the dimensions."""
    specs = [integers("conv", "a spec", spec, 0) for spec in dimension_numbers]
    for spec in specs:
        if sorted(spec) != list(range(rank)):
            raise BadArgument(f"conv: a spec must be a permutation of {rank} dimensions, got {spec}.")
    return ConvDimensionNumbers(*specs)


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The result shape of a convolution; all shapes are in the order of roles, and dilated already.

    Raises: ShapeMismatch: there is not one pair for each spatial dimension. BadArgument: padding removes more than
        there is.

    >>> conv_shape_tuple((2, 3, 9, 9), (5, 3, 3, 3), (1, 2), "VALID")
    (2, 5, 7, 4)
    """
    sizes, windows = lhs_shape[2:], rhs_shape[2:]
    pads = padtype_to_pads(sizes, windows, strides, pads) if isinstance(pads, str) else pads
    need_each("conv", sizes, {"padding": pads, "window_strides": strides})
    padded = [low + n + high for n, (low, high) in zip(sizes, pads)]
    if any([size < 0 for size in padded]):
        raise BadArgument(f"conv: negative padding must not remove more than there is, got {pads} for {sizes}.")
    spatial = [windows_along(size, window, stride) for size, window, stride in zip(padded, windows, strides)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The result shape of a convolution without dilation, its dimensions named by letters.

    >>> conv_general_shape_tuple((2, 9, 9, 3), (3, 3, 3, 5), (1, 2), "VALID", ("NHWC", "HWIO", "NHWC"))
    (2, 7, 4, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(_taken(lhs_shape, lhs), _taken(rhs_shape, rhs), window_strides, padding)
    return _taken(shape, inverse_permutation(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The result shape of ``conv_transpose``, its dimensions named by letters.

    >>> conv_transpose_shape_tuple((2, 4, 3), (3, 3, 5), (2,), "SAME", ("NWC", "WIO", "NWC"))
    (2, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    sizes, windows = _taken(lhs_shape, lhs), _taken(rhs_shape, rhs)
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(windows[2:], window_strides)]
    steps = zip(sizes[2:], windows[2:], window_strides, padding)
    spatial = [(n - 1) * s - k + 2 + low + high for n, k, s, (low, high) in steps]
    return _taken((sizes[0], windows[0], *spatial), inverse_permutation(out))


def transposed_padding(window: int, stride: int, padding: Any) -> tuple[int, int]:
    """The padding of a transposed convolution along one axis, from that of the convolution, a name or a pair.

    Raises: BadArgument: there is no padding of that name.
    """
    if isinstance(padding, tuple):
        return window - padding[0] - 1, window - padding[1] - 1
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise BadArgument(f"conv_transpose: padding must be 'SAME', 'VALID' or pairs, got {padding!r}.")
    return low, total - low


def _taken(shape: Sequence[Any], order: Sequence[int]) -> tuple[Any, ...]:
    """``y[i] == shape[order[i]]``."""
    return tuple([shape[d] for d in order])


class RoleSizes(NamedTuple):
    """The sizes of a convolution's operands and result, in the order of roles."""

    lhs: tuple[Any, ...]
    rhs: tuple[Any, ...]
    out: tuple[Any, ...]


def layout(op: Any, lhs_shape: Sequence[Any], rhs_shape: Sequence[Any]) -> RoleSizes:
    """The sizes by role of an operation with the fields of ``ConvGeneralDilated``, on operands of these shapes."""
    lhs_spec, rhs_spec, _ = op.dimension_numbers
    lhs, rhs = _taken(lhs_shape, lhs_spec), _taken(rhs_shape, rhs_spec)
    sizes = [spread(n, d) for n, d in zip(lhs[2:], op.lhs_dilation)]
    windows = [spread(n, d) for n, d in zip(rhs[2:], op.rhs_dilation)]
    out = conv_shape_tuple(
        (*lhs[:2], *sizes), (*rhs[:2], *windows), op.window_strides, op.padding, op.batch_group_count
    )
    return RoleSizes(lhs, rhs, out)

