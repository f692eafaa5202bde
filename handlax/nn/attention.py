"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.operations.dot_general import DotAlgorithmPreset
from ..effects.operations.elementwise.arithmetic import add, stop_gradient
from ..effects.operations.elementwise.bitwise import bitwise_and
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.creation import broadcasted_iota, iota
from ..effects.operations.manipulation.operand_promotion import together
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of, choose, like
from ..numpy.mathematics.einstein_summation import einsum
from .normalization import logsumexp, softmax

__all__ = ["dot_product_attention"]

_PRECISION = {
    dtypes.bfloat16: DotAlgorithmPreset.BF16_BF16_F32,
    dtypes.float16: DotAlgorithmPreset.F16_F16_F32,
}


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: float | None = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: Any = None, implementation: str | None = None, return_residual: bool = False,
) -> Any:
    """``softmax(scale * query @ key.T + bias) @ value`` for each head, with masks.

    Shapes: ``query: [B, T, N, H]``, ``key, value: [B, S, K, H]``, N a multiple of K; B may be left out. ``bias``
    and ``mask`` broadcast to ``[B, N, T, S]``. The result has the shape of ``query``.

    Args:
        scale: by default ``1 / sqrt(H)``.
        is_causal: position t of the queries sees positions up to t.
        query_seq_lengths, key_value_seq_lengths: ``[B]``: positions beyond take no part.
        local_window_size: how far back and forth a query sees, a number or a pair.
        return_residual: give ``logsumexp`` of the weights' exponents, ``[B, T, N]``, too.
    Raises: ShapeMismatch, DTypeMismatch: operands do not fit. Source: Vaswani et al., 2017.

    >>> from handlax.numpy import ones
    >>> dot_product_attention(*[ones((2, 5, 3, 4))] * 3).shape
    (2, 5, 3, 4)
    """
    if implementation not in (None, "xla"):
        raise BadArgument(f"dot_product_attention: implementation must be None or 'xla', got {implementation!r}.")
    q, k, v = map(_of_rank_4, (query, key, value))
    shift, keep = (None if x is None else _of_rank_4(x) for x in (bias, mask))
    _check(q, k, v, keep)
    batch, length, heads, width = q.type.shape
    groups = k.type.shape[2]
    per = heads // groups
    wide = dtypes.promote_types(q.type.dtype, dtypes.float32)
    q = shapes.reshape(q, (batch, length, groups, per, width))
    logits = einsum("btkgh,bskh->bkgts", q, k, precision=_PRECISION.get(q.type.dtype), preferred_element_type=wide)
    logits = logits * like(logits, 1 / math.sqrt(width) if scale is None else scale)
    shape = (batch, heads, length, k.type.shape[1])
    logits = shapes.reshape(logits, shape)
    if shift is not None:
        logits = convert(add(*together("dot_product_attention", logits, shift)), wide)
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
    seen = _seen(shape, keep, is_causal, query_seq_lengths, key_value_seq_lengths, window)
    if seen is not None:
        logits = choose(seen, logits, like(logits, -0.7 * float(dtypes.finfo(wide).max)))
    weights = shapes.reshape(convert(softmax(logits), k.type.dtype), (batch, groups, per, *shape[2:]))
    attended = shapes.reshape(einsum("bkgts,bskh->btkgh", weights, v), (batch, length, heads, width))
    if query_seq_lengths is not None:
        inside = _within(query_seq_lengths, (batch, length, 1, 1), 1)
        attended = choose(shapes.broadcast(inside, attended.type.shape), attended, like(attended, 0))
    given = array_of(query).type.shape
    attended = shapes.reshape(attended, given)
    if not return_residual:
        return attended
    rest = shapes.permute(convert(logsumexp(logits, -1), k.type.dtype), (0, 2, 1))
    return attended, stop_gradient(shapes.reshape(rest, given[:-1]))


def _of_rank_4(x: Any) -> Any:
    x = array_of(x)
    return shapes.reshape(x, ((1,) * (4 - len(x.type.shape)) + x.type.shape)) if len(x.type.shape) < 4 else x


def _check(q: Any, k: Any, v: Any, mask: Any) -> None:
    batch, _, heads, width = q.type.shape
    if k.type.shape != v.type.shape or k.type.shape[0] != batch or k.type.shape[3] != width:
        raise ShapeMismatch(
            "dot_product_attention: key and value must be [B, S, K, H] for a query [B, T, N, H],"
            f" got {k.type}, {v.type}, {q.type}."
        )
    if heads % k.type.shape[2]:
        raise ShapeMismatch(
            f"dot_product_attention: {heads} query heads must be a multiple of {k.type.shape[2]} key heads."
        )
    if not q.type.dtype == k.type.dtype == v.type.dtype:
        raise DTypeMismatch(f"dot_product_attention: operands must have one dtype, got {q.type}, {k.type}, {v.type}.")
    if mask is not None and not dtypes.is_bool(mask.type.dtype):
        raise DTypeMismatch(f"dot_product_attention: the mask must be boolean, got {mask.type}.")


def _within(lengths: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The mask of positions along an axis that are below the sequence length of their batch element."""
    n = convert(lengths, dtypes.int32)
    where = shapes.broadcast_in_dim(iota("int32", shape[axis]), shape, (axis,))
    return where < shapes.broadcast_in_dim(n, shape, (0,))


def _seen(shape: Any, mask: Any, is_causal: bool, q_lengths: Any, kv_lengths: Any, window: Any) -> Any:
    """The conjunction of all attention masks; None if there is none."""
    batch, _, length, size = shape
    parts = [] if mask is None else [mask]
    plane = (1, 1, length, size)
    if is_causal or window is not None:
        rows, columns = broadcasted_iota("int32", plane, 2), broadcasted_iota("int32", plane, 3)
        if is_causal:
            parts.append(rows >= columns)
        if window is not None:
            back, forth = window
            parts += [rows <= columns + like(columns, int(back)), rows + like(rows, int(forth)) >= columns]
    if q_lengths is not None:
        parts.append(_within(q_lengths, (batch, 1, length, 1), 2))
    if kv_lengths is not None:
        parts.append(_within(kv_lengths, (batch, 1, 1, size), 3))
    seen: Any = None
    for part in parts:
        seen = part if seen is None else bitwise_and(*together("dot_product_attention", seen, part))
    return None if seen is None else shapes.broadcast(seen, shape)


programs(globals())
