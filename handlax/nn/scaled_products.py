"""Products of matrices in small formats, of which each block has a scale."""

from __future__ import annotations

from typing import Any

from ..effects.base.errors import ShapeMismatch
from ..effects.core.arrays import Array, as_arrays
from ..effects.operations.elementwise.conversion import convert
from ..effects.types.dtypes import canonical, float32
from ..interpreters.core.eager_programs import programs
from ..lax import scaled_dot

__all__ = ["scaled_matmul"]


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = float32
) -> Array:
    """For each batch the product of a matrix with the transpose of another, whose blocks have scales.

        scaled_matmul(x, y, s, t)[b] == (x[b] * s[b]) @ (y[b] * t[b]).T,  each element of s and t for a block of a row

    Shapes: ``[b, m, k], [b, n, k], [b, m, k // p], [b, n, k // q]`` gives ``[b, m, n]``.
    The product is computed in ``float32``.

    Raises: ShapeMismatch: other ranks or sizes, or scales whose number does not divide ``k``.

    Source: Rouhani et al., Microscaling data formats for deep learning (2023).

    >>> from handlax import numpy as hnp
    >>> x, y = hnp.array([[[1.0, 2, 3]]]), hnp.array([[[4.0, 5, 6]]])
    >>> scaled_matmul(x, y, hnp.full((1, 1, 1), 0.5), hnp.full((1, 1, 1), 0.5))
    Array([[[8.]]], dtype=float32)
    """
    x, y = as_arrays(lhs, rhs)
    if len(x.type.shape) != 3 or len(y.type.shape) != 3:
        raise ShapeMismatch(f"scaled_matmul: batches of matrices are needed, got {x.type} and {y.type}.")
    numbers = ((2,), (2,)), ((0,), (0,))
    z = scaled_dot(
        x, y, lhs_scale=lhs_scales, rhs_scale=rhs_scales, dimension_numbers=numbers, preferred_element_type=float32
    )
    return convert(z, canonical(preferred_element_type))


programs(globals())
