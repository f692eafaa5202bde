"""batch: one more axis. A box pairs a value with the dimension that is mapped.

    vmap(f)(xs)[i] = f(xs[i])
"""

from __future__ import annotations

from typing import Any

from ..effects.arrays import Box
from ..effects.columns import BATCH, COLLECTIVE
from ..effects.operations import Operation
from ..effects.sources import Site, user_site
from ..effects.stack import STACK, Run
from ..effects.types import array_type


class BatchBox(Box):
    """A value of all lanes at once, and the dimension along which they stand."""

    __slots__ = ("value", "dim", "at")

    def __init__(self, run: Run, value: Any, dim: int):
        whole = value.type
        shape = whole.shape
        self.type = array_type(shape[:dim] + shape[dim + 1 :], whole.dtype, whole.weak)
        self.run = run
        self.value = value
        self.dim = dim
        self.at = run.cell.site

    @property
    def made_at(self) -> Site:
        return Site(*self.at) if self.at is not None else self.run.installed_at


class Batch(Run):
    """Answers by ownership: operations on its boxes, those that name its axis, and every effect."""

    __slots__ = ("size", "axis_name")
    name = "vmap"

    def __init__(self, outer: Run, size: int, axis_name: Any = None, site: tuple[Any, int] | None = None):
        super().__init__(outer, site)
        self.size = size
        self.axis_name = axis_name

    def describe(self) -> str:
        return "vmap" if self.axis_name is None else f"vmap({self.axis_name!r})"

    def box(self, value: Any, dim: int | None) -> Any:
        return value if dim is None else BatchBox(self, value, dim)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                break
        else:
            if not op.effectful and not (op.named and self.axis_name in op.axis_names):  # type: ignore[attr-defined]
                return self.outer.answer(op, operands)
        values = []
        dims = []
        for x in operands:
            if x.run is self:
                values.append(x.value)
                dims.append(x.dim)
            else:
                values.append(x)
                dims.append(None)
        cell = self.cell
        site = cell.site
        if site is None:
            cell.site = user_site(2)
        token = STACK.set(self.outer)
        try:
            if op.named and self.axis_name in op.axis_names:  # type: ignore[attr-defined]
                y, dim = COLLECTIVE.find(type(op))(op, self.axis_name, self.size, tuple(dims), *values)
            else:
                y, dim = BATCH.find(type(op))(op, tuple(dims), *values)
            if not op.multiple:
                return y if dim is None else BatchBox(self, y, dim)
            spread = dim if isinstance(dim, (tuple, list)) else (dim,) * len(y)
            return tuple([self.box(value, d) for value, d in zip(y, spread)])
        finally:
            STACK.reset(token)
            cell.site = site
