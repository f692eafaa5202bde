"""Arrays of Zarr's third format, by TensorStore: chunks with checksums, each in a file of its own.

Source: Zarr core specification, version 3; its codecs ``bytes`` and ``crc32c``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from ..effects.base.errors import BadCheckpoint, DamagedCheckpoint, NotSaved
from ..effects.base.lazy_module import optional_module
from ..effects.sharding.named_sharding import Bounds, Index, bounds
from ..effects.types.dtypes import float0
from .stored_leaves import Piece, StoredLeaf

_AS_BYTES = frozenset(("uint2", "uint4", "float8_e4m3"))
"""The dtypes that TensorStore does not know, one element of which is a byte of NumPy's."""


_CHECKSUM_BYTES = 4  # of crc32c
_DAMAGE = ("DATA_LOSS", "FAILED_PRECONDITION", "NOT_FOUND")
"""TensorStore's statuses of chunks with another checksum, that end too early, and that are missing."""


def _to_stored(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Elements of an array as TensorStore takes them; those of float0, which have no bytes, as booleans."""
    if data.dtype.itemsize == 0:
        return np.zeros(data.shape, bool)
    return data.view(np.uint8) if data.dtype.name in _AS_BYTES else data


def _from_stored(data: np.ndarray[Any, Any], leaf: StoredLeaf) -> np.ndarray[Any, Any]:
    """The inverse of ``_to_stored``."""
    if leaf.dtype == "float0":
        return np.zeros(data.shape, float0)
    return data.view(leaf.type.dtype) if leaf.dtype in _AS_BYTES else data


def _store(folder: Path, leaf: StoredLeaf, **how: Any) -> Any:
    """TensorStore's promise of the array in ``folder``, whose metadata are known from the leaf."""
    shape, dtype = leaf.stored
    metadata = {
        "shape": shape,
        "data_type": "uint8" if dtype.name in _AS_BYTES else dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": leaf.chunk}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }
    spec = {
        "driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder / leaf.name}/"}, "metadata": metadata,
        "store_data_equal_to_fill_value": True, "fill_missing_data_reads": False,  # a chunk that is missing is an error
    }
    return optional_module("tensorstore", "save").open(spec, **how)


def write_arrays(folder: Path, pieces: Sequence[tuple[StoredLeaf, Sequence[Piece]]], create: bool) -> None:
    """Write pieces of arrays to their stores in ``folder``, and return when all bytes are on the disk.

    ``create``: write the metadata of each array too, which one process does for all.

    Raises: NotSaved: a file cannot be written.
    """
    how = {"create": True} if create else {"open": True, "assume_metadata": True}
    stores = [(leaf, _store(folder, leaf, **how), own) for leaf, own in pieces if create or own]
    writes = []
    for leaf, store, own in stores:
        for index, data in own:
            if data.size:
                target = _result(store, leaf)[index]
                writes.append((leaf, target.write(_to_stored(data), can_reference_source_data_indefinitely=True)))
    for leaf, promise in [*[(leaf, store) for leaf, store, _ in stores], *writes]:
        _result(promise, leaf)


def _result(promise: Any, leaf: StoredLeaf) -> Any:
    try:
        return promise.result()
    except Exception as error:
        raise NotSaved(
            f"save: the leaf at {leaf.place} must be written, got {str(error).partition('[')[0]}"
        ) from error


class StoredArray:
    """A stored array, of which parts are read."""

    def __init__(self, folder: Path, leaf: StoredLeaf):
        self.leaf, self.folder = leaf, folder / leaf.name
        self.shape, dtype = leaf.stored
        self.empty = np.empty(self.shape, dtype) if 0 in self.shape else None
        self._store = _store(folder, leaf, open=True, assume_metadata=True) if self.empty is None else None
        self._reads: dict[Bounds, Any] = {}

    def ask(self, indices: Iterable[Index]) -> None:
        """Begin to read the parts at these indices. Raises: as ``wait``."""
        for index in indices:
            key = bounds(index, self.shape)
            if self._store is not None and key not in self._reads:
                self._check_sizes(key)
                self._reads[key] = self._store.result()[index].read()

    def wait(self) -> None:
        """Wait until all that was asked for is read.

        Raises: DamagedCheckpoint: a chunk is missing, or is not as it was saved. BadCheckpoint: it cannot be read.
        """
        for reading in self._reads.values():
            try:
                reading.result()
            except Exception as error:
                said = str(error).partition("[")[0]
                raise (self._damage if said.startswith(_DAMAGE) else self._refusal)(said) from error

    def read(self, index: Index) -> np.ndarray[Any, Any]:
        """The elements at an index that was asked for, and waited for."""
        found = self.empty[index] if self.empty is not None else self._reads[bounds(index, self.shape)].result()
        return _from_stored(np.asarray(found), self.leaf)

    def _check_sizes(self, part: Bounds) -> None:
        """Check the files of the chunks of a part: no memory is needed but for what is there."""
        size = prod(self.leaf.chunk) * self.leaf.stored[1].itemsize + _CHECKSUM_BYTES
        spans = (*part, *[(0, size) for size in self.shape[len(part):]])
        firsts = [start // chunk for (start, _), chunk in zip(spans, self.leaf.chunk)]
        counts = [-(-stop // chunk) - first for (_, stop), chunk, first in zip(spans, self.leaf.chunk, firsts)]
        for number in range(prod(counts)):  # one at a time: there may be as many as a damaged table says
            offsets = np.unravel_index(number, counts)
            file = self.folder.joinpath("c", *[str(first + offset) for first, offset in zip(firsts, offsets)])
            try:
                found = file.stat()
            except (FileNotFoundError, NotADirectoryError) as error:
                raise self._damage(f"{error.strerror}: {file}") from error
            except OSError as error:
                raise self._refusal(f"{error.strerror}: {file}") from error
            if not S_ISREG(found.st_mode) or found.st_size != size:
                raise self._damage(f"{found.st_size} bytes, and not {size}, in {file}")

    def _damage(self, found: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(f"restore: the leaf at {self.leaf.place} must be as it was saved, got {found}",
                                 hint="an earlier checkpoint is not damaged by this one.")

    def _refusal(self, found: str) -> BadCheckpoint:
        return BadCheckpoint(f"restore: the leaf at {self.leaf.place} must be readable, got {found}")
