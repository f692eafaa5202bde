"""Random sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import numpy as hnp
from ... import random
from ...effects.base.errors import BadArgument, whole_number, whole_numbers
from ...interpreters.transformations.vmap import vmap
from .bcoo import BCOO


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None, nse: float = 0.2,
    n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """A sparse array of random entries at random coordinates.

    Args:
        nse: the number of entries, in each batch position; if less than 1, as a fraction of all.
        unique_indices: no coordinate occurs twice.
        sorted_indices: the entries are in lexicographic order.
        generator: ``generator(key, shape=, dtype=, **kwds)`` returns the data.

    Raises: BadArgument: ``nse`` or a number of dimensions is out of range.

    >>> random_bcoo(random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    shape = whole_numbers("random_bcoo: a size", shape)
    n_batch, n_dense = whole_number("random_bcoo: n_batch", n_batch), whole_number("random_bcoo: n_dense", n_dense)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise BadArgument(f"random_bcoo: shape {shape} has not {n_batch=} and {n_dense=}.")
    batch, sizes, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    count = math.prod(sizes)
    if not 0 <= nse < count:
        raise BadArgument(f"random_bcoo: nse must be at least 0 and less than {count}, got {nse}.")
    number = math.ceil(nse * count) if 0 < nse < 1 else int(nse)
    int_dtype = hnp.asarray(0).dtype if indices_dtype is None else np.dtype(indices_dtype)
    if count > np.iinfo(int_dtype).max:
        raise BadArgument(f"random_bcoo: {int_dtype} cannot count the {count} elements of {sizes}.")

    def places(key: Any) -> Any:
        if not sizes:
            return hnp.zeros((number, 0), int_dtype)
        flat = random.choice(key, count, shape=(number,), replace=not unique_indices).astype(int_dtype)
        return hnp.stack(hnp.unravel_index(flat, sizes), -1).astype(int_dtype)

    keys = random.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, number, *dense), dtype=dtype, **kwds)
    indices = vmap(places)(keys[1:]).reshape(*batch, number, n_sparse)
    drawn = BCOO((data, indices), shape=shape)
    return drawn.sort_indices() if sorted_indices else drawn
