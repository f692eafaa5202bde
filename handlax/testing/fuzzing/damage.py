"""Bytes changed at random: the mutations of a fuzzer; and smaller ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

# a text in quotes, a name with brackets, parentheses around plain words, a name, a number, anything else, blanks
_WORD = re.compile(rb"'[^'\n]*'|\w+\[[^\]\n]*\]|\([\w, -]*\)|[A-Za-z_]\w*|-?[0-9.]+(?:e[+-]?[0-9]+)?|[^\w\s]|\s+")
_LIMITS = (b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0")
MOST = 1 << 16  # bytes


def damaged(data: bytes, rng: Random, others: Sequence[bytes] = (), words: Sequence[bytes] = ()) -> bytes:
    """``data`` after one or several changes: of bits, bytes, words and pieces.

    Args:
        others: bytes of which pieces are taken.
        words: what means something to the function that is given the bytes: it replaces words, or stands beside them.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        data = rng.choice(_CHANGES)(data, rng, others or (data,), words or _LIMITS)
    return data[:MOST]


def _piece(data: bytes, rng: Random) -> tuple[int, int]:
    """The ends of a piece, short ones above all."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((0, 1, 1, 2, 4, 8, rng.randrange(len(data) + 1))))


def _bit(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _byte(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _piece(data, rng)
    return data[:start] + rng.choice((rng.choice(_LIMITS), bytes([rng.randrange(256)]))) + data[end:]


def _removed(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _piece(data, rng)
    return data[:start] + data[end:]


def _repeated(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _piece(data, rng)
    return data[:start] + data[start:end] * rng.choice((2, 2, 3, 50)) + data[end:]


def _spliced(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    (start, end), (first, last) = _piece(data, rng), _piece(other, rng)
    return data[:start] + other[first:last] + data[end:]


def reworded(data: bytes, rng: Random, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """``data`` with a word removed, or replaced or followed by another one: of ``words``, or of its own."""
    there = list(_WORD.finditer(data))
    if not there:
        return rng.choice(words)
    old = rng.choice(there)
    new = rng.choice((rng.choice(words), rng.choice(there).group(), old.group() + b" " + rng.choice(words), b""))
    return data[: old.start()] + new + data[old.end() :]


_CHANGES = (_bit, _byte, _removed, _repeated, _spliced, reworded, reworded)


def smaller_bytes(data: bytes) -> Iterator[bytes]:
    """Bytes without a piece, large ones first, or with a byte that is 0.

    >>> from handlax.testing import reduced
    >>> reduced(b"a text with an x in it", lambda data: b"x i" in data, smaller_bytes)
    b'x i'
    """
    size = len(data)
    while size:
        for at in range(len(data) - size, -1, -size):
            yield data[:at] + data[at + size :]
        size //= 2
    for at in range(len(data)):
        yield data[:at] + b"\0" + data[at + 1 :]
