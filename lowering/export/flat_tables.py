"""FlatBuffers, by a schema that is a value: records of fields to bytes and back, with every offset checked.

    decode(schema, root, encode(schema, root, record)) == record

A table is a dictionary from its fields to numbers, strings, bytes, lists and other tables. A field that is missing in
the bytes is None, an empty list, or the number 0; None and fields that are left out are not written. References point
forwards, so that no bytes, however they were damaged, make the reader run in a circle.

What is written has a file identifier, and a checksum behind the tables, where other readers do not look. MLIR's reader
of programs, which may end the process on damaged ones, is so given what was written.

Source: the FlatBuffers specification, internals.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadArtifact, NotExportable

Fields = dict[str, Any]
DEEPEST = 200  # tables in tables


class Number(NamedTuple):
    """A number in place, by its format in ``struct``."""

    format: str


class Text(NamedTuple):
    """A string: its length, UTF-8, and a zero byte."""


class Bytes(NamedTuple):
    """A vector of bytes."""


class Many(NamedTuple):
    """A vector: its length, then numbers or offsets."""

    of: Any


class Table(NamedTuple):
    """Another table, by the name of its kind in the schema."""

    kind: str


Field = Number | Text | Bytes | Many | Table
Schema = Mapping[str, Mapping[str, Field]]
"""For each kind of table its fields in the order of their slots."""
_WIDTH = 4  # of an offset; everything begins at a multiple of it
_IDENTIFIER = b"hlax"  # behind the reference to the root; bytes that have it end in their checksum


def encode(schema: Schema, kind: str, record: Fields) -> bytes:
    """The bytes of a table of this kind as the root. Raises: NotExportable: the tables are too deep in each other."""
    writer = _Writer(schema)
    on_deep_stack(writer.put, Table(kind), record, 0, 0)
    return bytes(writer.out + _checksum(writer.out))


class _Writer:
    """Appends tables and vectors to ``out``, which begins with the reference to the root and the identifier."""

    def __init__(self, schema: Schema):
        self.schema, self.out = schema, bytearray(_WIDTH) + _IDENTIFIER

    def put(self, field: Field, value: Any, place: int, depth: int) -> None:
        """Write a number to ``place``; append any other value, and write there how far away it is."""
        match field:
            case Number(format):
                struct.pack_into(f"<{format}", self.out, place, value)
                return
            case Text():
                position = self.vector(value.encode() + b"\0", len(value.encode()))
            case Bytes():
                position = self.vector(value, len(value))
            case Many(of):
                position = self.vector(bytes(_size(of) * len(value)), len(value))
                for i, item in enumerate(value):
                    self.put(of, item, position + _WIDTH + i * _size(of), depth)
            case _:
                position = self.table(self.schema[field.kind], value, depth + 1)
        struct.pack_into("<I", self.out, place, position - place)

    def vector(self, data: bytes, count: int) -> int:
        """Append a vector; gives its position."""
        self.pad()
        position = len(self.out)
        self.out += struct.pack("<I", count) + data
        return position

    def table(self, fields: Mapping[str, Field], record: Fields, depth: int) -> int:
        """Append a table, its fields first and then what they refer to; gives its position."""
        if depth > DEEPEST:
            raise NotExportable(f"serialize: trees must have at most {DEEPEST} levels, got more.")
        written = {name: field for name, field in fields.items() if record.get(name) is not None}
        places, size = {}, _WIDTH  # the widest fields first, so that each lies at a multiple of its width
        for name in sorted(written, key=lambda name: -_size(written[name])):
            places[name] = size
            size += _size(written[name])
        slots = [places.get(name, 0) for name in fields]
        self.pad()
        vtable = len(self.out)
        self.out += struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), size, *slots)
        self.pad()
        position = len(self.out)
        self.out += struct.pack("<i", position - vtable).ljust(size, b"\0")
        for name, field in written.items():
            self.put(field, record[name], position + places[name], depth)
        return position

    def pad(self) -> None:
        self.out += bytes(-len(self.out) % _WIDTH)


def _checksum(data: bytes | bytearray) -> bytes:
    return struct.pack("<I", zlib.crc32(data))


def _size(field: Field) -> int:
    return struct.calcsize(f"<{field.format}") if isinstance(field, Number) else _WIDTH


def decode(schema: Schema, kind: str, data: bytes) -> Fields:
    """The table of this kind that is the root of ``data``. Raises: BadArtifact: the bytes are not such a table."""
    if data[_WIDTH : _WIDTH + len(_IDENTIFIER)] == _IDENTIFIER and data[-4:] != _checksum(data[:-4]):
        raise damaged("bytes that do not have their checksum")
    reader = _Reader(schema, data)
    return on_deep_stack(reader.table, kind, reader.target(0), 1)


class _Reader:
    """Reads tables out of bytes that may be anything. ``rest``: how many more values fit into so many bytes."""

    def __init__(self, schema: Schema, data: bytes):
        self.schema, self.data, self.rest = schema, data, len(data) // 2

    def table(self, kind: str, position: int, depth: int) -> Fields:
        self.count(1)
        if depth > DEEPEST:
            raise damaged(f"more than {DEEPEST} tables inside of each other")
        vtable = position - self.number("i", position)
        length, size = self.number("H", vtable), self.number("H", vtable + 2)
        self.number("B", position + size - 1)  # the last one
        record: Fields = {}
        for slot, (name, field) in enumerate(self.schema[kind].items()):
            place = self.number("H", vtable + 4 + 2 * slot) if 6 + 2 * slot <= length else 0
            if place + _size(field) > size:
                raise damaged(f"a field {name} outside of its table")
            record[name] = self.value(field, position + place, depth + 1) if place else _absent(field)
        return record

    def value(self, field: Field, place: int, depth: int) -> Any:
        match field:
            case Number(format):
                return self.number(format, place)
            case Table(kind):
                return self.table(kind, self.target(place), depth)
            case Many(of):
                start, count = self.vector(place, _size(of))
                self.count(count)
                return [self.value(of, start + i * _size(of), depth) for i in range(count)]
        start, count = self.vector(place, 1)
        found = self.data[start : start + count]
        if isinstance(field, Bytes):
            return found
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise damaged("a string that is not UTF-8") from None

    def vector(self, place: int, width: int) -> tuple[int, int]:
        """The position of the first item of the vector that is referred to, and the number of items."""
        position = self.target(place)
        count = self.number("I", position)
        if position + _WIDTH + count * width > len(self.data):
            raise damaged(f"{count} items at byte {position}")
        return position + _WIDTH, count

    def target(self, place: int) -> int:
        """The position that the offset at ``place`` refers to, which is behind it."""
        offset = self.number("I", place)
        if not offset:
            raise damaged(f"an empty reference at byte {place}")
        return place + offset

    def number(self, format: str, place: int) -> Any:
        size = struct.calcsize(f"<{format}")
        if not 0 <= place <= len(self.data) - size:
            raise damaged(f"a reference to byte {place}")
        return struct.unpack_from(f"<{format}", self.data, place)[0]

    def count(self, values: int) -> None:
        """Tables and items each take bytes of their own: more of them than bytes are one piece, read many times."""
        self.rest -= values
        if self.rest < 0:
            raise damaged("more values than bytes")


def _absent(field: Field) -> Any:
    return [] if isinstance(field, Many) else 0 if isinstance(field, Number) else None


def damaged(found: str) -> BadArtifact:
    """The error that bytes are no exported function."""
    return BadArtifact(
        f"deserialize: the bytes must be those of an exported function, got {found}.",
        hint="give the bytes that serialize() returned, all of them and nothing else.",
    )
