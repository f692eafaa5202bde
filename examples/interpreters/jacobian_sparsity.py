"""The sparsity of Jacobians: which element of the result depends on which element of the argument.

    python examples/interpreters/jacobian_sparsity.py

A value is interpreted as a matrix of booleans: for each of its elements, the elements of the argument that it may
depend on. Nothing of the function is computed, so the pattern holds at every point. A derivative of the user's own is
trusted to read no other elements than its function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import handlax as hx
from handlax import numpy as hnp
from handlax import operations as o
from handlax.extend import STACK, BodyTransformer, Box, Elementwise, as_array, cross, inside, installed, interpret


def moved(op: Any, operands: Any, rows: Any) -> Any:
    """The rows of the results of a linear operation without negative coefficients, of operands with rows."""
    axes = [None if row is None else -1 for row in rows]
    numbers = [x if row is None else row.astype(x.dtype) for x, row in zip(operands, rows)]
    return [y != 0 for y in hx.vmap(lambda *xs: op.as_results(hx.perform(op, *xs)), axes, -1)(*numbers)]


def rows_of(op: Any, operands: Any, rows: Any, types: Any) -> Any:
    """The rows of each result; None where nothing is known but that they are functions of the operands.

    ``rows``: those of each operand, None of one that does not depend on the argument. ``types``: of the results.
    """
    cell, size = hx.columns.JVP.cell(type(op)), next(row.shape[-1] for row in rows if row is not None)
    if isinstance(op, Elementwise):
        own = [hnp.broadcast_to(row, (*types[0].shape, size)) for row in rows if row is not None]
        return [hnp.stack(own).any(0)]
    if isinstance(op, o.ReduceMax | o.ReduceMin | o.ReduceProd):
        return [rows[0].any(op.axes)]
    if isinstance(op, o.Fft):
        lines = rows[0].any([*range(len(types[0].shape))[-len(op.lengths) :]], keepdims=True)
        return [hnp.broadcast_to(lines, (*types[0].shape, size))]
    if isinstance(op, o.ScatterSub):  # what is subtracted does not cancel
        op = o.ScatterAdd(*op.fields)
    if not all([hnp.issubdtype(t.dtype, hnp.floating) or t.dtype == bool for t in types]):
        return None  # sums of integers may wrap around to 0, those of complex numbers cancel
    if isinstance(op, o.DotGeneral | o.ConvGeneralDilated):
        sizes = [abs(x) if row is None else hnp.ones(x.shape, x.dtype) for x, row in zip(operands, rows)]
        terms = [(row, None) if i == 0 else (None, row) for i, row in enumerate(rows) if row is not None]
        return [hnp.stack([moved(op, sizes, term)[0] for term in terms]).any(0)]
    places = getattr(cell, "positions", range(len(rows)))  # in these operands together it is linear
    if hx.columns.is_linear(cell) and all([row is None or i in places for i, row in enumerate(rows)]):
        zero = [row is None and i in places for i, row in enumerate(rows)]
        return moved(op, [hnp.zeros_like(x) if yes else x for x, yes in zip(operands, zero)], rows)
    return None


class Dependent(Box):
    __slots__ = ("rows",)

    def __init__(self, run: Any, type: Any, rows: Any):
        self.run, self.type, self.rows = run, type, rows


class Dependence(BodyTransformer):
    """Its boxes are all values that depend on the argument, also those that have no derivative, such as masks."""

    __slots__ = ("size",)

    def fresh(self, outer: Any) -> Any:
        return _dependence(outer, self.label, self.size)

    def key(self) -> Any:
        return "dependence", self.size

    def split(self, x: Any) -> Any:
        return ((x.type.dtype, x.type.weak), (x.rows,)) if x.run is self else (None, (x,))

    def box(self, mark: Any, parts: Any) -> Any:
        if mark is None:
            return parts[0]
        type = parts[0].type
        return Dependent(self, type.update(shape=type.shape[:-1], dtype=mark[0], weak=mark[1]), parts[0])

    def part_types(self, mark: Any, type: Any) -> Any:
        return (type.update(shape=(*type.shape, self.size), dtype=np.dtype(bool), weak=False) if mark else type,)

    def force(self, x: Any, mark: Any) -> Any:
        return (hnp.zeros((*x.shape, self.size), bool),) if mark and x.run is not self else self.split(x)[1]

    def mark_of_type(self, mark: Any, type: Any) -> Any:
        return mark and (type.dtype, type.weak)

    def answer(self, op: Any, operands: Any) -> Any:
        if all([x.run is not self for x in operands]):
            return self.outer.answer(op, operands)
        with inside(self.outer):
            if op.bodied:
                return cross(self, op, operands)
            rows = [x.rows if x.run is self else None for x in operands]
            types = op.as_results(op.result_type(*[x.type for x in operands]))
            found = rows_of(op, operands, rows, types)
            if found is None and (op.effects or hx.columns.DECOMPOSE.has(type(op))):
                return self.decompose(op, operands)
            if found is None:
                every = hnp.stack([row.reshape(-1, self.size).any(0) for row in rows if row is not None]).any(0)
                found = [hnp.broadcast_to(every, (*t.shape, self.size)) for t in types]
            return op.from_results([Dependent(self, t, row) for t, row in zip(types, found)])

    def choose(self, op: Any, operands: Any) -> Any:
        """Where the argument chooses the branch, the rows of all."""
        if op.runs != "one" or op.effects:
            return super().choose(op, operands)
        with inside(self):
            results = [interpret(body, operands[op.selects :]) for body in op.bodies]
        with inside(self.outer):
            marks = [(t.dtype, t.weak) for t in op.bodies[0].out_types]
            rows = [[self.force(y, mark)[0] for y in ys] for mark, *ys in zip(marks, *results)]
            return tuple([self.box(mark, (hnp.stack(row).any(0),)) for mark, row in zip(marks, rows)])


def _dependence(outer: Any, label: str, size: int) -> Any:
    run = Dependence(outer, label)
    run.size = size
    return run


def pattern(f: Callable[[Any], Any], x: Any) -> np.ndarray[Any, Any]:
    """``pattern(f, x)[i, j]``: whether element i of ``f(x)`` may depend on element j of ``x``; no element is read."""
    x = as_array(x)
    run = _dependence(STACK.get(), "pattern", x.size)
    rows = hnp.eye(x.size, dtype=bool).reshape(*x.shape, x.size)
    with installed(run):
        y = as_array(f(Dependent(run, x.type, rows)))
    return np.asarray(run.force(y, (y.dtype, False))[0]).reshape(y.size, x.size)


def main() -> None:
    def smoothed(x: Any) -> Any:
        once = lambda i, x: hnp.where(x > 0, (hnp.roll(x, 1) + x) / 2, x)
        return hx.lax.fori_loop(0, 2, once, x).reshape(4, 2).max(1)

    found = pattern(smoothed, hnp.zeros(8))
    print("\n".join(["".join([".x"[on] for on in row]) for row in found.astype(int)]))
    assert found.sum(1).tolist() == [4] * 4


if __name__ == "__main__":
    main()
