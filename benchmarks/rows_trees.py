"""Pytrees: flattening trees of 100 leaves, with the paths of the leaves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from .sides import Side
from .timing import Measure, Prepare, Row, timed

PAIRS = range(50)


@functools.cache
def layer(side: Side) -> Any:
    """A dataclass that is a node of one side."""

    @side.lib.tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: int
        b: int

    return Layer


TREES: dict[str, Callable[[Side], Any]] = {
    "dicts": lambda side: {f"layer{i}": {"w": i, "b": i} for i in PAIRS},
    "lists": lambda side: [[i, i] for i in PAIRS],
    "dataclasses": lambda side: [layer(side)(i, i) for i in PAIRS],
}


def flattened(name: str, with_path: bool) -> Measure:
    def make(side: Side) -> Prepare:
        flatten = side.lib.tree_util.tree_flatten_with_path if with_path else side.lib.tree_util.tree_flatten
        tree = TREES[name](side)
        return lambda: lambda: flatten(tree)

    def agree(ours: Any, theirs: Any) -> None:
        assert ours[0] == theirs[0] and ours[1].num_nodes == theirs[1].num_nodes

    return timed(make, check=agree)


ROWS = [
    *[Row(f"flatten with paths, 50 {name} of 2 leaves", 1.00, flattened(name, True)) for name in TREES],
    Row("flatten, 50 dataclasses of 2 leaves", 1.00, flattened("dataclasses", False)),
]
