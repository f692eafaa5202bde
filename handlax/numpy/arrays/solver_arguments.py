"""Checks of what solvers are given: results of users' functions, bounds of steps, and tolerances."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, TreeMismatch
from ...effects.core.arrays import as_array
from ...effects.operations.elementwise.conversion import convert
from ...effects.trees import pytrees
from ...effects.types.dtypes import is_complex
from .index_arrays import known


def result_like(where: str, result: Any, like: Any) -> Any:
    """What the function ``where`` of a user returned, in the dtypes of ``like``, whose structure and shapes it has.

    Raises: TreeMismatch, ShapeMismatch: it has others. DTypeMismatch: it is complex, and ``like`` is real.
    """
    (leaves, tree), (wanted, structure) = pytrees.flatten(result), pytrees.flatten(like)
    if tree != structure:
        raise TreeMismatch(f"{where} must return the structure {structure}, got {tree}.")
    xs, types = [as_array(x) for x in leaves], [as_array(y).type for y in wanted]
    for x, t in zip(xs, types):
        if x.type.shape != t.shape:
            raise ShapeMismatch(f"{where} must return {t}, got {x.type}.")
        if is_complex(x.type.dtype) and not is_complex(t.dtype):
            hint = "take the real part, or begin with complex numbers."
            raise DTypeMismatch(f"{where} must return {t}, got {x.type}.", hint=hint)
    return pytrees.unflatten(tree, [convert(x, t.dtype, t.weak) for x, t in zip(xs, types)])


def need_at_least(least: int, where: str, **arguments: Any) -> None:
    """Raises BadArgument if one of the arguments, as far as its value is known, is less, or NaN; None is not checked.

    >>> need_at_least(0, "cg", tol=1e-5, maxiter=None)
    """
    for name, value in arguments.items():
        if value is not None and known(x := as_array(value)) and not np.all(np.asarray(x) >= least):
            raise BadArgument(f"{where}: {name} must be at least {least}, got {value!r}.")
