"""Columns that a page or an example makes, for as long as it is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from handlax.effects.core.columns import COLUMNS
from handlax.effects.core.operation import Operation


def subclasses(kind: type[Operation]) -> Iterator[type[Operation]]:
    yield kind
    for below in kind.__subclasses__():
        yield from subclasses(below)


@contextmanager
def columns_apart() -> Iterator[None]:
    """The columns that are made inside are gone afterwards, with their cells: other tests count columns."""
    known = {*COLUMNS}
    try:
        yield
    finally:
        made = {*COLUMNS} - known
        for name in made:
            del COLUMNS[name]
        for kind in subclasses(Operation):
            for name in made:
                kind._cells.pop(name, None)
