"""Random matrices with orthonormal rows or columns."""

from __future__ import annotations

from typing import Any

from ..effects.core.arrays import Array
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.elementwise.arithmetic import abs as _abs
from ..effects.operations.elementwise.arithmetic import div, mul
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import broadcast_in_dim, canonical_shape, permute
from ..effects.operations.linalg.matrices import diagonal
from ..effects.operations.linalg.qr import qr
from ..effects.types.dtypes import canonical, default_float
from ..interpreters.core.eager_programs import programs
from .basic_samplers import normal

__all__ = ["orthogonal"]


def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Array:
    """Random orthogonal matrices, uniform in the Haar measure; unitary matrices if ``dtype`` is complex.

        q = orthogonal(key, n):  q @ q.mT.conj() == identity

    Shapes: ``[*shape, n, m]``, where m is n by default. The rows are orthonormal if ``n <= m``, the columns if
    ``n >= m``.

    Source: Mezzadri, How to generate random matrices from the classical compact groups (2007).

    >>> from handlax import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(abs(q @ q.mT - random.orthogonal(random.key(1), 3) @ random.orthogonal(random.key(1), 3).mT).max() < 1e-5)
    True
    """
    no_sharding("orthogonal", out_sharding)
    columns = n if m is None else m
    sizes = canonical_shape(shape, "orthogonal")
    rank = len(sizes)
    dtype = default_float() if dtype is None else canonical(dtype)
    q, r = qr(normal(key, (*sizes, max(n, columns), min(n, columns)), dtype), full_matrices=False)
    d = diagonal(r)
    phase = div(d, convert(_abs(d), d.type.dtype))
    x = mul(q, broadcast_in_dim(phase, q.type.shape, (*range(rank), rank + 1)))
    return x if n >= columns else permute(x, (*range(rank), rank + 1, rank))


programs(globals())
