"""``vmap_method``: how a function that is not made of operations is called where ``vmap`` asks for many lanes.

``sequential``: on each lane, in a loop; ``sequential_unrolled``: without a loop. The others call it once, with the
lanes along the first axis; operands that are not mapped get a leading axis of size 1 (``expand_dims``), are broadcast
(``broadcast_all``), or stay as they are (``legacy_vectorized``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import BadArgument, CannotCross
from ..base.stack import perform
from ..core.operation import Operation
from ..operations.foundations.shapes import broadcast_in_dim
from ..operations.manipulation.slicing import axis_at, lane_count
from ..programs.closure_conversion import close_all
from ..programs.higher_order import record_body
from ..programs.program import Program
from .loops import Scan

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def need_vmap_method(where: str, method: Any) -> None:
    """Raises BadArgument unless ``method`` is one of ``VMAP_METHODS``, or None."""
    if method is not None and method not in VMAP_METHODS:
        raise BadArgument(f"{where}: vmap_method must be one of {', '.join(VMAP_METHODS)}, got {method!r}.")


def by_vmap_method(op: Any, dims: Sequence[int | None], *xs: Any) -> tuple[Any, Any] | None:
    """The batch rule of an operation with a field ``vmap_method``; without a mapped operand it is performed once.

    None for an effect that is performed for each lane.

    ``op.batched(size, mapped)`` is the operation on all lanes at once; ``mapped[i]``: its operand i has a leading axis
    more. ``op.aliases``: pairs (operand, result) of operands that results are written over, which are always broadcast.

    Raises: CannotCross: there is no method.
    """
    if all([d is None for d in dims]):
        return perform(op, *xs), None
    size, method = lane_count(xs, dims), op.vmap_method
    if method is None:
        raise CannotCross(
            f"{op.name}: vmap needs a method to call the function on all lanes, got vmap_method=None.",
            hint=f"choose one of {', '.join(VMAP_METHODS)}.",
        )
    if method.startswith("sequential"):
        if op.effectful:  # performed as effects are: lane by lane, and nested lanes row by row
            return None
        program, shared, each = _lane_body(op, dims, xs, size)
        loop = Scan((program,), len(shared), 0, size, False, size if method == "sequential_unrolled" else 1)
        return perform(loop, *shared, *each), 0
    written = {i for i, _ in op.aliases}
    methods = ["broadcast_all" if i in written else method for i in range(len(xs))]
    mapped = [d is not None or how != "legacy_vectorized" for d, how in zip(dims, methods)]
    operands = [_lanes_first(x, d, size, how) for x, d, how in zip(xs, dims, methods)]
    return perform(op.batched(size, mapped), *operands), 0


def _lanes_first(x: Any, dim: int | None, size: int, method: str) -> Any:
    """An operand of the batched operation with its lanes along axis 0, as ``vmap_method`` asks."""
    if dim is not None or method == "broadcast_all":
        return axis_at(x, dim, 0, size)
    if method == "legacy_vectorized":
        return x
    return broadcast_in_dim(x, (1, *x.shape), tuple(range(1, x.ndim + 1)))


def _lane_body(op: Operation, dims: Sequence[int | None], xs: Sequence[Any], size: int) -> tuple[Program, Any, Any]:
    """A body that performs the operation on one lane, from shared operands and those with lanes along axis 0."""
    shared = [x for x, d in zip(xs, dims) if d is None]
    each = [axis_at(x, d, 0, size) for x, d in zip(xs, dims) if d is not None]

    def body(*values: Any) -> Any:
        fixed, rows = iter(values[: len(shared)]), iter(values[len(shared) :])
        return perform(op, *[next(fixed) if d is None else next(rows) for d in dims])

    types = [*[x.type for x in shared], *[x.type.without_dimension(0) for x in each]]
    (program,), captured = close_all([record_body(body, types, op.name)])
    return program, [*captured, *shared], each
