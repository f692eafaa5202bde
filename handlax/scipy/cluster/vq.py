"""``handlax.scipy.cluster.vq``: vector quantisation."""

from __future__ import annotations

from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import ShapeMismatch
from ...effects.core.arrays import Array
from ...interpreters.core.eager_programs import programs
from ...numpy.arrays.argument_conversion import inexact

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation the index of the nearest vector of the code book, and its distance.

    Shapes: ``obs: f[m, n], code_book: f[k, n]`` gives ``i[m], f[m]``; both may be vectors, of numbers.

    Args:
        check_finite: ignored.

    >>> vq([[0.0, 1.0], [5.0, 5.0]], [[0.0, 0.0], [5.0, 4.0]])[0].tolist()
    [0, 1]
    """
    x, book = inexact(hnp.asarray(obs)), inexact(hnp.asarray(code_book))
    dtype = hnp.result_type(x, book)
    x, book = x.astype(dtype), book.astype(dtype)
    if x.ndim != book.ndim or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] != book.shape[1]):
        raise ShapeMismatch(f"vq: two matrices with equal rows, or vectors, are needed, got {x.type}, {book.type}.")
    if x.ndim == 1:
        x, book = x[:, None], book[:, None]
    squares = ((x[:, None, :] - book[None, :, :]) ** 2).sum(-1)
    code = squares.argmin(-1)
    return code, hnp.sqrt(hnp.take_along_axis(squares, code[:, None], -1)[:, 0])


programs(globals())
