"""What is stored of a leaf: a number or text in the table of contents, an array in chunks of its own."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadCheckpoint, DTypeMismatch
from ..effects.core.array_shards import Shard
from ..effects.core.arrays import ConcreteArray, as_array, without_subclass
from ..effects.sharding.named_sharding import Index
from ..effects.types import dtypes
from ..effects.types.array_type import ArrayType, Shape, array_type
from ..lowering.clients.agreement import digest
from ..lowering.clients.processes import connection
from ..lowering.xla.stablehlo_types import storage

_CHUNK_BYTES = 1 << 26
"""The most bytes of a chunk: what one that needs a part of it has to read."""


class StoredLeaf(NamedTuple):
    """A leaf as the table of contents has it.

    ``kind``: ``array``, ``numpy``, ``scalar`` (a NumPy scalar), or the name of a Python type, whose ``text`` it is.
    ``name``: the folder of the array. ``chunk``: the shape of its chunks, each of which one process writes. ``begin``:
    in a single file, where the bytes of the array begin.
    """

    path: str
    kind: str
    text: str = ""
    name: str = ""
    dtype: str = ""
    shape: Shape = ()
    weak: bool = False
    chunk: Shape = ()
    begin: int = 0

    @property
    def place(self) -> str:
        """The path, for messages."""
        return self.path or "the root"

    @property
    def type(self) -> ArrayType:
        """The type of an array. Raises: DTypeMismatch: of a dtype that this version does not have."""
        return array_type(self.shape, dtypes.named(self.dtype), self.weak)

    @property
    def stored(self) -> tuple[Shape, np.dtype[Any]]:
        """The shape and dtype of what is stored: of random keys their key data."""
        return storage(self.type)


_ARRAYS = ("array", "numpy", "scalar")
_NAME = re.compile(r"[0-9]+[A-Za-z0-9_.]*")  # of the folder of an array, as ``described`` gives it


class Piece(NamedTuple):
    """The elements ``x[at]`` of an array."""

    at: Index
    data: np.ndarray[Any, Any]


class NumberForm(NamedTuple):
    """How values of a Python type are written as text, and read."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _doubles(*xs: float) -> str:
    return struct.pack(f">{len(xs)}d", *xs).hex()


def _read_doubles(text: str) -> tuple[float, ...]:
    data = bytes.fromhex(text)
    return struct.unpack(f">{len(data) // 8}d", data)


# floats by their bits, which decimal digits do not have of NaN
NUMBERS: Mapping[str, NumberForm] = MappingProxyType({
    "bool": NumberForm(str, lambda text: text == "True"),
    "int": NumberForm(hex, lambda text: int(text, 16)),
    "float": NumberForm(_doubles, lambda text: _read_doubles(text)[0]),
    "complex": NumberForm(lambda z: _doubles(z.real, z.imag), lambda text: complex(*_read_doubles(text))),
    "str": NumberForm(str, str),
})
"""Python's types of leaves that the table of contents has, by name."""


def number_name(x: Any) -> str | None:
    """The name in ``NUMBERS`` of the type of ``x``; None: it is none of these, or of a subclass."""
    name = type(x).__name__
    return name if type(x).__module__ == "builtins" and name in NUMBERS else None


def known(path: str, x: Any) -> Any:
    """A leaf as it is stored: a number or text, an array of NumPy, or an array whose value is known.

    Raises: NotAnArray: it is none of these. DTypeMismatch: of a dtype that arrays cannot have.
    TracerArrayConversionError: it is only being traced.
    """
    if number_name(x) is not None:
        return x
    if not isinstance(x, np.ndarray | np.generic):
        y = as_array(x)
        return y if isinstance(y, ConcreteArray) else np.asarray(y)
    try:
        dtypes.named(x.dtype)
    except DTypeMismatch as error:
        raise DTypeMismatch(f"save: the leaf at {path or 'the root'}: {error.what}", hint=error.hint) from None
    return without_subclass(x) if isinstance(x, np.ndarray) else x


def described(number: int, path: str, x: Any) -> StoredLeaf:
    """What is stored of the leaf, which is one of ``known``, at a path."""
    kind = number_name(x)
    if kind is not None:
        return StoredLeaf(path, kind, NUMBERS[kind].write(x))
    name = f"{number}{re.sub('[^A-Za-z0-9_]+|__+', '.', f'.{path}').rstrip('.')[:100]}"  # no __lock, TensorStore's own
    if isinstance(x, ConcreteArray):
        part = x.sharding.shard_shape(x.type.shape) if _is_in_parts(x) else x.type.shape
        leaf = StoredLeaf(path, "array", "", name, _dtype_name(x.type.dtype), x.type.shape, x.type.weak)
    else:
        part, kind = x.shape, "numpy" if isinstance(x, np.ndarray) else "scalar"
        leaf = StoredLeaf(path, kind, "", name, _dtype_name(dtypes.named(x.dtype)), x.shape)
    shape, dtype = leaf.stored
    return leaf._replace(chunk=_chunk_shape(shape, (*part, *shape[len(part):]), dtype.itemsize))


def check_stored(leaf: StoredLeaf) -> None:
    """Check a leaf of a table of contents. Raises: any error: it is none that is stored."""
    if leaf.kind in NUMBERS:
        NUMBERS[leaf.kind].read(leaf.text)
        return
    sizes = (*leaf.shape, *leaf.chunk)
    if leaf.kind not in _ARRAYS or not _NAME.fullmatch(leaf.name) or any([type(n) is not int or n < 0 for n in sizes]):
        raise BadCheckpoint(f"{leaf}")
    shape, dtype = leaf.stored
    np.broadcast_to(np.zeros((), dtype), shape)  # ValueError: NumPy has no such shape
    if len(leaf.chunk) != len(shape) or 0 in leaf.chunk:
        raise BadCheckpoint(f"chunks of {leaf.chunk} of an array of {shape}")


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == dtypes.float0 else str(dtype.name)


def _chunk_shape(shape: Shape, part: Shape, itemsize: int) -> Shape:
    """Chunks of at most ``_CHUNK_BYTES``, as few as may be, each within one part of an array of this shape.

    Along a dimension that is cut into parts chunks divide a part evenly; where no few do, a part is one chunk.
    """
    chunk = [max(size, 1) for size in part]
    for d, size in enumerate(chunk):
        row = itemsize * prod(chunk[d + 1:])
        count = -(-size // max(_CHUNK_BYTES // row, 1))
        if size == shape[d]:
            chunk[d] = -(-size // count)
        else:
            chunk[d] = next((size // n for n in range(count, 8 * count) if size % n == 0), size)
        if row <= _CHUNK_BYTES:
            break
    return tuple(chunk)


def _is_in_parts(x: ConcreteArray) -> bool:
    """Whether an array is stored by its shards: it is over several devices, and not over those of one process of many.
    """
    if x._buffer is None or x.sharding.num_devices == 1:
        return False
    return connection() is None or not x.is_fully_addressable


def own_pieces(number: int, x: Any) -> list[Piece]:
    """Copies of the pieces of a leaf that this process writes; no two processes write the same one.

    A leaf that each process has for itself is written by process 0.
    """
    if isinstance(x, ConcreteArray) and _is_in_parts(x):
        return [Piece(shard.index, _elements(shard.data)) for shard in writers(number, x) if shard.data is not None]
    joined = connection()
    return [Piece((), _elements(x))] if joined is None or joined.index == 0 else []


def writers(number: int, x: ConcreteArray) -> list[Shard]:
    """The shards that are written of an array: of each part that several devices hold, one replica.

    It is the ``number``-th, modulo how many there are, so that over arrays with different numbers all devices write.
    """
    holders: dict[int, list[Shard]] = {}
    for shard, tile in zip(x.global_shards, x.sharding.tiles(len(x.type.shape)).of_device):
        holders.setdefault(tile, []).append(shard)
    return [held[number % len(held)] for held in holders.values()]


def agreed_fact(leaf: StoredLeaf, x: Any) -> tuple[str, str, str]:
    """What processes compare of a leaf, as ``check_same`` takes it: how it is cut, or what each has for itself."""
    if isinstance(x, ConcreteArray) and _is_in_parts(x):
        devices = [device.id for device in x.sharding._device_assignment]
        return leaf.path, f"{leaf} {x.sharding.tiles(len(x.type.shape))} {devices}", f"{x.type} by {x.sharding}"
    return leaf.path, f"{leaf} {digest(_elements(x).tobytes()) if leaf.name else ''}", repr(x)


def _elements(x: Any) -> np.ndarray[Any, Any]:
    """The elements of an array, of random keys their key data, in memory of its own: ``x`` may be changed or donated.
    """
    if not isinstance(x, ConcreteArray):
        return np.array(x, dtypes.named(x.dtype))
    from_device = x._buffer is not None and {device.platform for device in x.devices()} != {"cpu"}
    return x.value if from_device else x.value.copy()
