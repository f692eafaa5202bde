"""Pictures of numbers: a square for each, blue below 0, clear at 0, orange above, as opaque as it is large.

The squares are a PNG of a few colours within an SVG, whose lines have the colour of the text.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...interpreters.inspection.outline import escape

LEVELS = 15             # of opacity, on either side of 0
NOT_FINITE = 2 * LEVELS + 1
LONGEST_SIDE = 384      # pixels
BELOW, ABOVE, MISSING = (37, 99, 235), (234, 88, 12), (192, 38, 211)
_COLOURS = bytes([*BELOW * LEVELS, 0, 0, 0, *ABOVE * LEVELS, *MISSING])
_OPACITIES = bytes([255 * abs(k) // LEVELS for k in range(-LEVELS, LEVELS + 1)] + [255])


def picture(values: np.ndarray[Any, Any], label: str, lines: Sequence[str] = (), shape: Any = None) -> str:
    """The picture of a matrix of float64 numbers, with lines on it: SVG paths in the units of rows and columns.

    ``shape``: that of the matrix of which ``values`` are a sample, whose units the lines have.
    """
    rows, columns = values.shape
    scale = max(1, min(16, LONGEST_SIDE // max(rows, columns, 1)))
    width, height = scale * columns, scale * rows
    tall, wide = shape or values.shape
    path = "".join(lines) or f"M0 0H{wide}V{tall}H0Z"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="values" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {wide} {tall}" preserveAspectRatio="none">'
        f"<title>{escape(label)}</title>"
        f'<image href="data:image/png;base64,{base64.b64encode(_png(_levels(values))).decode()}" '
        f'width="{wide}" height="{tall}" preserveAspectRatio="none" style="image-rendering: pixelated"/>'
        f'<path d="{path}" fill="none" stroke="currentColor" vector-effect="non-scaling-stroke"/></svg>'
    )


def _levels(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each number its colour, which is relative to the largest magnitude."""
    finite = np.isfinite(values)
    sizes = np.where(finite, values, 0.0)
    largest = np.abs(sizes).max(initial=0.0) or 1.0
    return np.where(finite, np.rint(sizes / largest * LEVELS) + LEVELS, NOT_FINITE).astype(np.uint8)


def _png(levels: np.ndarray[Any, Any]) -> bytes:
    """The file of a picture by indices of colours (W3C, Portable Network Graphics, 11.2 and 11.3.2).

    It is not compressed: what compressors write differs from version to version, and outputs are compared.
    """
    rows, columns = levels.shape
    data = np.pad(levels, ((0, 0), (1, 0))).tobytes()  # a 0 before each row: no filter
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
        (b"PLTE", _COLOURS), (b"tRNS", _OPACITIES), (b"IDAT", zlib.compress(data, 0)), (b"IEND", b""),
    ]
    framed = [struct.pack(">I", len(x)) + name + x + struct.pack(">I", zlib.crc32(name + x)) for name, x in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
