"""Containers of a user's own, and their elements: named arrays, block-sparse matrices, and containers of containers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import handlax as hx
from handlax import numpy as hnp

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Any:
    """A program of examples/ as a module."""
    spec: Any = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


block_sparse = example("block_sparse")


@hx.tree_util.register_dataclass
@dataclass(frozen=True)
class NamedArray:
    data: Any
    names: tuple[str, ...] = field(metadata={"static": True})


@dataclass(frozen=True)
class Axis:
    name: str


def named_element(cont: Any, get_idx: Any, x: NamedArray, axis: Axis) -> NamedArray:
    k = x.names.index(axis.name)
    return NamedArray(cont(x.data, k), x.names[:k] + x.names[k + 1 :])


def named_result(cont: Any, axis_size: Any, y: NamedArray, axis: Axis) -> NamedArray:
    return NamedArray(cont(axis_size, y.data, 0), (axis.name, *y.names))


hx.register_vmappable(NamedArray, Axis, int, named_element, named_result)


@hx.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """Columns with the axis "row", and for each row words of its own."""

    columns: Any
    words: Any


class ByRow:
    pass


by_row = ByRow()
hx.register_vmappable(
    Table, ByRow, int,
    lambda cont, get_idx, x, spec: Table(cont(x.columns, Axis("row")), cont(x.words, hx.ragged_axis)),
    lambda cont, n, y, spec: Table(cont(n, y.columns, Axis("row")), cont(n, y.words, hx.ragged_axis)),
)


@dataclass(frozen=True)
class Mapped:
    """A container, the spec that maps it, and its elements in a list."""

    container: Any
    spec: Any
    elements: Callable[[Any], Sequence[Any]]


def _normal(*shape: int) -> Any:
    return hnp.array(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))


def _named(x: NamedArray, name: str) -> list[Any]:
    k = x.names.index(name)
    return [NamedArray(v, x.names[:k] + x.names[k + 1 :]) for v in hnp.moveaxis(x.data, k, 0)]


def _blocks(x: Any) -> list[Any]:
    return [type(x)(r, c, b, x.grid) for r, c, b in zip(x.rows, x.columns, x.blocks)]


def _rows_of_blocks(x: Any) -> list[Any]:
    found = []
    for row in range(x.grid[0]):
        first, last = np.searchsorted(np.asarray(x.rows), [row, row + 1])
        found.append(type(x)(np.int32(row), x.columns[first:last], x.blocks[first:last], x.grid))
    return found


def _rows_of_table(x: Table) -> list[Any]:
    return [Table(c, w) for c, w in zip(_named(x.columns, "row"), x.words.to_list(), strict=True)]


CONTAINERS = {
    "named, first axis": Mapped(NamedArray(_normal(3, 2), ("a", "b")), Axis("a"), lambda x: _named(x, "a")),
    "named, last axis": Mapped(NamedArray(_normal(3, 2), ("a", "b")), Axis("b"), lambda x: _named(x, "b")),
    "blocks": Mapped(block_sparse.example(), block_sparse.by_block, _blocks),
    "rows of blocks": Mapped(block_sparse.example(), block_sparse.by_row, _rows_of_blocks),
    "containers in a container": Mapped(
        Table(NamedArray(_normal(2, 3), ("c", "row")), hx.Ragged(_normal(6), (3, 0, 2), 3)), by_row, _rows_of_table
    ),
}
