"""A tree of arrays in one file of the format safetensors, which the libraries of other frameworks read and write.

    8 bytes      the length of the header, little-endian
    the header   {"a.b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} in JSON, filled up with spaces
    the rest     the elements of the arrays, row-major and little-endian, without a gap between arrays

A file is written under another name, and renamed when it is whole. The format has neither containers nor checksums.
Source: huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from stat import S_ISREG
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from ..effects.base.errors import (
    BadArgument,
    BadCheckpoint,
    DTypeMismatch,
    HandlaxError,
    MissingCheckpoint,
    NotAnArray,
    NotSaved,
)
from ..effects.sharding.named_sharding import Bounds, Index, bounds
from ..effects.trees.paths import KeyPath, keystr
from ..effects.types import dtypes
from ..effects.types.array_type import Shape
from ..lowering.clients.agreement import digest
from .contents import Contents, data_in
from .folder_lock import FolderLock, refusals, sync_folder
from .stored_leaves import Piece, StoredLeaf

_NAMES: Mapping[str, str] = MappingProxyType({
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn": "F4",
})
"""The format's names of dtypes, by ours."""
_DTYPES: Mapping[str, str] = MappingProxyType({name: dtype for dtype, name in _NAMES.items()})
_METADATA = "__metadata__"  # texts of other programs, in the place of an array's name
_LONGEST_HEADER = 100_000_000  # bytes, of every reader of the format


def is_single_file(path: Path) -> bool:
    """Whether a tree at this path is one file, and not a folder."""
    return path.suffix == ".safetensors"


def name_in_file(path: KeyPath) -> str:
    """The name of the leaf at a path: its keys, joined by dots."""
    return keystr(path, simple=True, separator=".")


def _bits(leaf: StoredLeaf) -> int:
    return dtypes.itemsize_bits(leaf.dtype)


def _count_bytes(leaf: StoredLeaf) -> int:
    """The bytes of an array in a file, where elements of 4 bits are two to a byte. Raises: DTypeMismatch: half a byte.
    """
    count, rest = divmod(prod(leaf.shape) * _bits(leaf), 8)
    if rest:
        raise DTypeMismatch(f"an array of {leaf.dtype} must have an even number of elements, got {[*leaf.shape]} at "
                            f"{leaf.place}.")
    return count


# Writing


class FileTarget:
    """The file in which a tree is saved. Raises: NotAnArray, DTypeMismatch, BadArgument: the format has not its leaves.
    """

    def __init__(self, path: Path, contents: Contents):
        for leaf in contents.leaves:
            _check_leaf(leaf)
        # wide elements first: all arrays are aligned then
        leaves = sorted(contents.leaves, key=lambda leaf: (-_bits(leaf), leaf.path))
        ends = [0, *accumulate(map(_count_bytes, leaves))]
        places = {leaf.path: place for leaf, place in zip(leaves, pairwise(ends))}
        if len(places) < len(leaves):
            raise BadArgument("save: leaves must have different names in one file, got two with the keys "
                              f"{_twice([leaf.path for leaf in leaves])!r}, joined by dots.")
        text = json.dumps({
            leaf.path: {"dtype": _NAMES[leaf.dtype], "shape": leaf.shape, "data_offsets": places[leaf.path]}
            for leaf in leaves
        }).encode()
        text += b" " * (-len(text) % 8)
        self._head = len(text).to_bytes(8, "little") + text
        self._size = len(self._head) + ends[-1]
        self.leaves = [leaf._replace(begin=len(self._head) + places[leaf.path][0]) for leaf in contents.leaves]
        self.path, self.new = path, path.with_name(f"{path.name}.{contents.data}")
        self.lock = FolderLock(path.parent, f"{path.name}.lock")

    def begin(self) -> None:
        with refusals(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.lock.acquire()
            with open(self.new, "xb") as file:
                file.write(self._head)
                file.truncate(self._size)

    def write(self, pieces: Sequence[Sequence[Piece]]) -> None:
        if not self.new.exists():
            raise NotSaved(
                f"save: all processes must have one folder, got none with {self.new}.", hint="a shared disk.")
        with refusals(self.path), open(self.new, "r+b", 0) as file:
            for leaf, own in zip(self.leaves, pieces):
                for at, data in _joined(leaf, own):
                    for place, row in _rows(leaf, at, data):
                        _write_at(file.fileno(), place, row.data)
            os.fsync(file.fileno())

    def commit(self) -> None:
        with refusals(self.path):
            os.replace(self.new, self.path)
            sync_folder(self.path.parent)

    def clean(self) -> None:
        with suppress(OSError):  # what remains is removed by the next save
            for left in data_in(self.path.parent, f"{self.path.name}."):
                left.unlink()
            self.lock.remove()


def _check_leaf(leaf: StoredLeaf) -> None:
    if not leaf.name:
        raise NotAnArray(f"save: the leaves of a tree in one file must be arrays, got {leaf.kind} at {leaf.place}.",
                         hint="a folder, any path without .safetensors, has numbers and texts too.")
    if leaf.dtype not in _NAMES:
        raise DTypeMismatch(f"save: safetensors must have the dtype of an array, got {leaf.dtype} at {leaf.place}.",
                            hint="a folder, any path without .safetensors, has arrays of every dtype.")
    if leaf.path == _METADATA:
        raise BadArgument(f"save: a leaf must not have the key {_METADATA!r}, which safetensors has for itself.")


def _twice(names: Iterable[str]) -> str:
    """A name that occurs twice."""
    return next(name for name, following in pairwise(sorted(names)) if name == following)


def _joined(leaf: StoredLeaf, own: Sequence[Piece]) -> Sequence[Piece]:
    """Parts of an array that fill a box as one part, which has fewer and longer rows in the file."""
    parts = [bounds(at, leaf.shape) for at, _ in own]
    box = _filled_box(parts)
    if box is None or len(_runs(parts[0], leaf.shape)[0]) == 1:
        return own
    data = np.empty([stop - start for start, stop in box], own[0].data.dtype)
    for part, piece in zip(parts, own):
        data[_within(part, box)] = piece.data
    return [Piece(tuple([slice(*span) for span in box]), data)]


def _filled_box(parts: Sequence[Bounds]) -> Bounds | None:
    """The box that several parts, which do not overlap, fill; None: they fill none."""
    box = tuple([(min(span)[0], max([stop for _, stop in span])) for span in zip(*parts)])
    size = lambda part: prod([stop - start for start, stop in part])
    return box if len(parts) > 1 and size(box) == sum(map(size, parts)) else None


def _within(part: Bounds, box: Bounds) -> Index:
    """The index of a part in the elements of a box."""
    return tuple([slice(start - first, stop - first) for (start, stop), (first, _) in zip(part, box)])


def _write_at(file: int, place: int, data: memoryview) -> None:
    while data:
        count = os.pwrite(file, data, place)  # of very many bytes it writes a part
        place, data = place + count, data[count:]


def _rows(leaf: StoredLeaf, at: Index, data: np.ndarray[Any, Any]) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """The bytes of a part, in pieces that are contiguous in the whole array, each with its place in the file.

    Raises: NotSaved: a piece ends within a byte.
    """
    if not data.size:
        return
    (firsts, count), bits = _runs(bounds(at, leaf.shape), leaf.shape), _bits(leaf)
    if count * bits % 8 or np.any(firsts * bits % 8):
        raise NotSaved(f"save: parts of an array of {leaf.dtype} must have an even number of elements along the last "
                       f"dimension, got {[*data.shape]} of {[*leaf.shape]} at {leaf.place}.")
    little = data.astype(data.dtype.newbyteorder("<"), copy=False)
    flat: np.ndarray[Any, Any] = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
    if bits == 4:
        flat = flat[::2] | flat[1::2] << 4
    yield from zip((leaf.begin + firsts * bits // 8).tolist(), flat.reshape(len(firsts), -1))


def _runs(part: Bounds, shape: Shape) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """The runs of elements of a row-major array that a part of it consists of: their first elements, by their numbers
    in the array, and their length.
    """
    cut = max([d for d, span in enumerate(part) if span != (0, shape[d])], default=-1)  # the last such dimension
    if cut < 0:
        return np.zeros(1, np.int64), prod(shape)
    firsts, row = np.zeros(1, np.int64), prod(shape[cut + 1:])
    for size, (start, stop) in zip(shape[:cut], part):
        firsts = np.add.outer(firsts * size, np.arange(start, stop)).reshape(-1)
    start, stop = part[cut]
    return (firsts * shape[cut] + start) * row, (stop - start) * row


# Reading


class FileArray:
    """An array in a file, of which parts are read."""

    def __init__(self, file: BinaryIO, leaf: StoredLeaf):
        self.file, self.leaf = file, leaf
        self._read: dict[Bounds, np.ndarray[Any, Any]] = {}

    def ask(self, indices: Iterable[Index]) -> None:
        """Read the parts at these indices. Raises: BadCheckpoint: the file is shorter than it was, or is damaged."""
        parts = [*{bounds(index, self.leaf.shape) for index in indices}]
        box = _filled_box(parts)
        if box is None:
            self._read.update({part: self._part(part) for part in parts})
        else:
            whole = self._part(box)
            self._read.update({part: whole[_within(part, box)] for part in parts})

    def wait(self) -> None:
        """Nothing: what is asked for is read."""

    def read(self, index: Index) -> np.ndarray[Any, Any]:
        """The elements at an index that was asked for."""
        return self._read[bounds(index, self.leaf.shape)]

    def _part(self, part: Bounds) -> np.ndarray[Any, Any]:
        leaf, dtype = self.leaf, self.leaf.type.dtype
        shape = (*[stop - start for start, stop in part], *leaf.shape[len(part):])
        if 0 in shape:
            return np.empty(shape, dtype)
        firsts, count = _runs(part, leaf.shape)
        data = np.empty((len(firsts), count * dtype.itemsize), np.uint8)
        for first, row in zip(firsts.tolist(), data):
            if _bits(leaf) == 4:
                pairs = self._filled(first // 2, np.empty((first + count + 1) // 2 - first // 2, np.uint8))
                row[:] = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[first % 2:][:count]
            else:
                self._filled(first * dtype.itemsize, row)
        if leaf.dtype == "bool" and data.max() > 1:
            raise BadCheckpoint(f"restore: the array {leaf.place} must have booleans, got the byte {data.max()}.")
        little = data.reshape(-1).view(dtype.newbyteorder("<"))
        return little.astype(dtype, copy=False).reshape(shape)

    def _filled(self, place: int, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.file.seek(self.leaf.begin + place)
        if self.file.readinto(row) < row.size:  # type: ignore[attr-defined]  # of files that open() gives
            raise BadCheckpoint(f"restore: the array {self.leaf.place} must be whole, got the end of {self.file.name}.")
        return row


def read_file(path: Path, closing: ExitStack) -> tuple[Contents, Callable[[StoredLeaf], FileArray]]:
    """The contents of a file, all of whose leaves are arrays, and how one is read until ``closing`` ends.

    Raises: MissingCheckpoint: it is not there. BadCheckpoint: it is no whole file of this format.
    """
    try:
        if not S_ISREG(path.stat().st_mode):  # of a pipe open() would wait for a writer
            raise BadCheckpoint("no regular file")
        file = closing.enter_context(path.open("rb"))
        text, leaves = _header(file, os.fstat(file.fileno()).st_size)
        outline = {"dict": [[leaf.path, 0] for leaf in leaves]}
        return Contents(digest(text), outline, leaves, {}), partial(FileArray, file)
    except FileNotFoundError:
        raise MissingCheckpoint.at("restore", path) from None
    except OSError as error:
        found = error.strerror or str(error)
    except RecursionError:
        found = "a header of deeply nested lists"
    except (ValueError, HandlaxError) as error:
        found = str(getattr(error, "what", error)).rstrip(".")
    raise BadCheckpoint(f"restore: {path} must be a file of the format safetensors, got {found}.")


def _header(file: BinaryIO, size: int) -> tuple[bytes, tuple[StoredLeaf, ...]]:
    """The text of the header of a file of this size, and the leaves in the order of their names.

    Raises: ValueError, HandlaxError: it does not describe arrays that are the rest of the file.
    """
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, _LONGEST_HEADER):
        raise BadCheckpoint(f"a header of {length} bytes in a file of {size}")
    text, end = file.read(length), 8 + length
    said = json.loads(text.decode(), object_pairs_hook=_once)
    if type(said) is not dict:
        raise BadCheckpoint(f"a header that is no object of JSON, but {_short(said)}")
    leaves = [_described(name, facts, end) for name, facts in sorted(said.items()) if name != _METADATA]
    for leaf in sorted(leaves, key=lambda leaf: (leaf.begin, _count_bytes(leaf))):
        if leaf.begin != end:
            name = _short(leaf.path)
            raise BadCheckpoint(f"the array {name} from byte {leaf.begin} on, where the one before ends at {end}")
        end += _count_bytes(leaf)
    if end != size:
        raise BadCheckpoint(f"{size} bytes, where the last array ends at {end}")
    return text, tuple(leaves)


def _described(name: str, facts: Any, start: int) -> StoredLeaf:
    """The array of an entry of the header, where the first one begins at ``start``. Raises: as ``_header``."""
    match facts:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [begin, end]} if all(
            [type(number) is int and number >= 0 for number in (*shape, begin, end)]
        ) and dtype in _DTYPES:
            leaf = StoredLeaf(name, "array", dtype=_DTYPES[dtype], shape=tuple(shape), begin=start + begin)
            np.broadcast_to(np.zeros((), leaf.type.dtype), shape)  # ValueError: NumPy has no such shape
            if end - begin == _count_bytes(leaf):
                return leaf
    raise BadCheckpoint(f"{_short(facts)} as the array {_short(name)}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadCheckpoint(f"the name {_twice([name for name, _ in pairs])!r} twice")
    return found


def _short(value: Any) -> str:
    return re.sub(r"(?s)(.{60}).+", r"\1...", repr(value))
