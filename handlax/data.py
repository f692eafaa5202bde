"""``handlax.data``: the batches of a data set, by number, so that a run goes on after any of them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from . import random
from .effects.base.errors import BadArgument, BadIndex, ShapeMismatch, need_count, text_of, whole_number
from .effects.base.immutables import ImmutableObject
from .effects.base.stack import BASE, inside
from .effects.core.arrays import Array, ConcreteArray, concrete
from .effects.trees import pytrees
from .effects.trees.paths import keystr

__all__ = ["Batches"]


class Batches(ImmutableObject):
    """The batches of a data set, epoch after epoch, each a tree of NumPy arrays; with a key, every epoch is shuffled.

        Batches(data, n, epochs=k)[i]           == tree.map(lambda x: x[rows], data), n rows, the same in every run
        [*Batches(data, n, epochs=k)[step:]]    == [*Batches(data, n, epochs=k)][step:]

    How many batches a run has used is all that it must save of them: ``batches[step:]`` goes on. Iteration draws the
    order of an epoch once, and reads the rows of a batch when it is asked for.

    Args:
        data: a tree of NumPy arrays of one length; a ``numpy.memmap`` stays on the disk.
        size: the rows of a batch.
        key: a random key; the order of epoch ``e`` is that of ``fold_in(key, e)``. None: the order of the data.
        epochs: how often each row comes.
        drop_remainder: whether rows of an epoch that fill no batch are left out; else they are a smaller one.
        part: ``(i, n)``: part ``i`` of ``n`` equal parts of each batch, in order, for process ``i`` of ``n``.

    Raises: BadArgument: a leaf is no array of NumPy, there is no whole batch, or no such part. ShapeMismatch: lengths
    differ, or a batch has no ``n`` equal parts.

    >>> [batch.tolist() for batch in Batches(np.arange(5), 2, epochs=2)[1:]]
    [[2, 3], [0, 1], [2, 3]]
    """

    data: Any
    size: int
    key: Array | None
    part: tuple[int, int]
    _rows: int
    _starts: range  # the place of the first row of each batch in the order of its epoch
    _numbers: range  # of all batches, those that these are
    _guard = ("batches", "Batches(data, size) makes others, and a slice others of these.")

    def __init__(
        self, data: Any, size: int, *, key: Array | None = None, epochs: int = 1, drop_remainder: bool = True,
        part: tuple[int, int] = (0, 1),
    ):
        rows = _length(data)
        size, epochs = need_count("Batches: size", size, 1), need_count("Batches: epochs", epochs)
        index, parts = [whole_number("Batches: part", n) for n in part]
        if not 0 <= index < parts:
            raise BadArgument(f"Batches: part must be (i, n) with 0 <= i < n, got {part}.")
        if size > rows:
            raise BadArgument(f"Batches: the data must have a batch of {size} rows, got {rows}.")
        starts = range(0, rows - size + 1 if drop_remainder else rows, size)
        for count in {size, min(size, rows - starts[-1])}:
            if count % parts:
                raise ShapeMismatch(f"Batches: each batch must have {parts} equal parts, got one of {count} rows.")
        if isinstance(key, ConcreteArray):  # on no device: each process draws the order by itself, in any thread
            key = concrete(key.type.cut_by(None), key.value)
        self._fill(data=data, size=size, key=key, part=(index, parts), _rows=rows, _starts=starts,
                   _numbers=range(epochs * len(starts)))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, at: Any) -> Any:
        """The batch of a number, or the batches of a slice. Raises: BadIndex: there is none of this number."""
        if isinstance(at, slice):
            some = copy(self)
            some._fill(_numbers=self._numbers[at])
            return some
        number = whole_number("Batches: the number of a batch", at)
        if not -len(self) <= number < len(self):
            raise BadIndex(f"Batches: the number must be one of {len(self)} batches, got {number}.")
        epoch, place = divmod(self._numbers[number], len(self._starts))
        return self._batch(self._order(epoch), self._starts[place])

    def __iter__(self) -> Iterator[Any]:
        last, order = -1, None
        for number in self._numbers:
            epoch, place = divmod(number, len(self._starts))
            if epoch != last:
                last, order = epoch, self._order(epoch)
            yield self._batch(order, self._starts[place])

    def _order(self, epoch: int) -> np.ndarray[Any, Any] | None:
        """The rows of the data in the order of an epoch; None: as they are."""
        if self.key is None:
            return None
        with inside(BASE):  # the order is known, also while a program is traced
            return np.asarray(random.permutation(random.fold_in(self.key, epoch), self._rows))

    def _batch(self, order: np.ndarray[Any, Any] | None, start: int) -> Any:
        """This part of the batch whose first row has the place ``start`` in the order of its epoch."""
        index, parts = self.part
        width = min(self.size, self._rows - start) // parts
        rows: Any = slice(start + index * width, start + (index + 1) * width)
        return pytrees.map(lambda x: x[rows if order is None else order[rows]], self.data)


def _length(data: Any) -> int:
    """The length of the arrays of a tree. Raises: BadArgument: a leaf is none, or there is none. ShapeMismatch: lengths
    differ.
    """
    leaves = pytrees.leaves_with_path(data)
    for path, x in leaves:
        if not isinstance(x, np.ndarray) or not x.ndim:
            raise BadArgument(f"Batches: data must be arrays of NumPy with rows, got {text_of(x)} at {keystr(path)}.")
    lengths = {len(x): keystr(path) for path, x in leaves}
    if len(lengths) != 1:
        shown = ", ".join([f"{length} at {path}" for length, path in lengths.items()])
        raise ShapeMismatch(f"Batches: data must be arrays of one length, got {shown or 'none'}.")
    return next(iter(lengths))
