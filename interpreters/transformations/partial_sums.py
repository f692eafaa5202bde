"""Partial sums: programs in which an unreduced value is the array of its parts, one for each device along its axes.

    f32[8@b,4]{U:a}  is  f32[8@b,4,2@a],  the sum over its last dimension

A hidden value of which partial sums alone are used, such as the product ``dot(x, y, out_sharding=P(unreduced={"a"}))``
or the cotangent of a value that is reduced, is made as partial sums. So no rule of a derivative or of lanes knows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ...effects.base.errors import ShardingTypeError
from ...effects.base.stack import BASE, Binding, inside, perform
from ...effects.core.arrays import concrete
from ...effects.core.columns import JVP, componentwise, linear_together
from ...effects.core.named_axes import under
from ...effects.core.operation import Operation, result_type
from ...effects.operations.elementwise.arithmetic import div, rem
from ...effects.operations.elementwise.comparison import eq, select_n
from ...effects.operations.foundations.shapes import (
    broadcast_in_dim,
    full,
    move_axis,
    permute,
    reduce_sum,
    reshape,
)
from ...effects.operations.foundations.sharding_constraint import ShardingConstraint, hide, reveal
from ...effects.operations.foundations.to_memory import in_memory
from ...effects.operations.manipulation.creation import iota
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.named_sharding import cut_over
from ...effects.sharding.partition_spec import UNCONSTRAINED, PartitionSpec, entry_axes
from ...effects.sharding.sharding_rules import entries_of
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ..batching.batch import by_batch_rule
from ..core.record import Record
from .shard_map import relabelled

SummedAxes = tuple[Any, ...]  # along which a value is unreduced, in the order of the mesh; () for a whole sum


class PartialValue(NamedTuple):
    """A value of the new program: a whole sum, or with ``axes`` its parts along the last dimension."""

    x: Any
    axes: SummedAxes


@derived_once
def with_parts(program: Program) -> Program:
    """The program without unreduced types between its inputs and results, which each device has as parts of its own.

        with_parts(p)(*xs) == p(*xs)
    """
    return _Walk(program, ()).of_devices() if _has_parts(program) else program


@derived_once
def _has_parts(program: Program) -> bool:
    """Whether a value is unreduced, in the program or in one that is part of it."""
    bodies = [body for op in program.ops if op.bodied for body in op.bodies]  # type: ignore[attr-defined]
    values = [*program.numbered_types(), *[const.type for const in program.consts]]
    return any(map(_axes, values)) or any(map(_has_parts, bodies))


def _axes(t: ArrayType) -> SummedAxes:
    """The axes along which values of this type are unreduced, but for those along which devices have summands."""
    if t.cut is None or not t.cut.unreduced:
        return ()
    return tuple([name for name in t.cut.mesh.axis_names if name in t.cut.unreduced - t.manual])


def _is_hidden(t: ArrayType) -> bool:
    return t.cut is not None and t.cut.hides


def _cut(t: ArrayType, axes: SummedAxes = ()) -> Any:
    """How a value of this type is cut, or its parts along these axes, which cut nothing else."""
    if t.cut is None:
        return None
    entries = tuple(PartitionSpec(*entries_of(t)).restricted({*t.cut.mesh.axis_names}.difference(axes)))
    spec = t.cut.spec.without_sums({*axes} | (t.cut.unreduced - t.manual))
    return cut_over(t.cut.mesh, (*entries, axes) if axes else entries, spec.unreduced, spec.reduced)


def _type_of_parts(t: ArrayType) -> ArrayType:
    axes = _axes(t)
    if not axes:
        return t
    plain = t.cut_by(None)
    return plain.with_dimension(len(t.shape), _count(t.cut.mesh, axes)).cut_by(_cut(t, axes))


def _count(mesh: Any, axes: SummedAxes) -> int:
    return prod([dict(mesh.shape_tuple)[name] for name in axes])


class _Walk:
    """The walk that makes the new program from one whose equations are within the axes of ``scope``."""

    def __init__(self, program: Program, scope: tuple[Binding, ...]):
        self.program, self.scope = program, scope
        self.types = program.numbered_types()
        self.mesh = next((t.cut.mesh for t in [*self.types, *[x.type for x in program.consts]] if _axes(t)), None)
        self.stated: list[ArrayType | None] = []  # of values: their types if nothing were hidden, where these are known
        self.supplied: list[frozenset[Any]] = []  # the axes along which their parts are there before they are summed
        self.asked: dict[int, frozenset[Any]] = {}  # those along which all that reads a hidden value asks for parts
        self.values: list[PartialValue] = []

    def type(self, n: int) -> ArrayType:
        return self.program.consts[-1 - n].type if n < 0 else self.types[n]

    def value(self, n: int) -> PartialValue:
        if n >= 0:
            return self.values[n]
        const = self.program.consts[-1 - n]
        axes = _axes(const.type)
        return PartialValue(concrete(const.type.cut_by(_cut(const.type)), const.value) if axes else const, ())

    def form(self, n: int) -> SummedAxes:
        """The axes along which a value is in parts."""
        t = self.type(n)
        return _axes(t) or tuple([name for name in t.cut.mesh.axis_names if name in self.asked[n]]) if (
            n in self.asked and _is_hidden(t)) else _axes(t)

    def of_devices(self) -> Program:
        """The new program, whose inputs and results are as the devices have them."""
        run = Record(under(BASE, self.scope), "")
        with inside(run):
            xs = [run.input(t.cut_by(_cut(t))) if _axes(t) else run.input(t) for t in self.program.in_types]
            ys = self.results(run, [PartialValue(_taken(x, t), _axes(t)) for x, t in zip(xs, self.program.in_types)])
            outs = [in_memory(_given(y, t), t.memory_space) for y, t in zip(ys, self.program.out_types)]
        return run.freeze(outs, self.program.name)

    def of_parts(self) -> Program:
        """The new program, whose inputs and results are parts."""
        run = Record(under(BASE, self.scope), "")
        with inside(run):
            xs = run.inputs([*map(_type_of_parts, self.program.in_types)])
            ys = self.results(run, [PartialValue(x, _axes(t)) for x, t in zip(xs, self.program.in_types)])
            outs = [in_memory(y, t.memory_space) for y, t in zip(ys, self.program.out_types)]
        return run.freeze(outs, self.program.name)

    def results(self, run: Record, inputs: Sequence[PartialValue]) -> list[Any]:
        """The results of the program on these inputs, each in the form of its type."""
        program = self.program
        self.supply()
        self.ask()
        self.values = [*inputs]
        for (op, args, results, _), run.cell.site in zip(program.steps(), program.sites):
            ys = op.as_results(self.performed(op, args, results))
            self.values += [PartialValue(y, self.form(n)) for n, y in zip(results, ys)]
        return [self.in_form(n, _axes(self.type(n))) for n in program.outs]

    # What is asked for, and what is there

    def supply(self) -> None:
        """Find the axes along which the parts of each value are there."""
        for t in self.program.in_types:
            self._add(t, t, frozenset())
        for op, args, _, outs in self.program.steps():
            if op.states_cut:
                self._add(outs[0], self._stated(args[0]), self._supplied(args[0]))
                continue
            made = self._would_be(op, args, outs)
            given = frozenset() if op.bodied or op.effectful else self._given(op, args)
            for t, stated in zip(outs, made):
                self._add(t, stated, given)

    def _add(self, t: ArrayType, stated: ArrayType | None, supplied: frozenset[Any]) -> None:
        hidden = _is_hidden(t)
        self.stated.append(stated if hidden else t.cut_by(t.cut and t.cut.whole))
        self.supplied.append(supplied if hidden else frozenset(_axes(t)))

    def _stated(self, n: int) -> ArrayType | None:
        return self.type(n) if n < 0 else self.stated[n]

    def _supplied(self, n: int) -> frozenset[Any]:
        return frozenset(_axes(self.type(n))) if n < 0 else self.supplied[n]

    def _would_be(self, op: Operation, args: Sequence[int], outs: Sequence[ArrayType]) -> Sequence[ArrayType | None]:
        """The types of the results if no operand were hidden; None where that is ambiguous."""
        stated = [self._stated(n) for n in args]
        if op.bodied or op.effectful or not any(map(_is_hidden, outs)) or None in stated:
            return [None] * len(outs)
        try:
            return op.as_results(result_type(op, tuple(stated)))
        except ShardingTypeError:
            return [None] * len(outs)

    def _given(self, op: Operation, args: Sequence[int]) -> frozenset[Any]:
        """The axes along which the parts of the results are there, by a sum that the operation makes or before it."""
        made = frozenset([name for names in self.summed(op, args).values() for name in names])
        if made:
            return made
        if JVP.cell(type(op)) is componentwise:
            return frozenset.union(*[self._supplied(n) for n in args])
        before = [i for i, n in enumerate(args) if self._supplied(n)]
        if not before or not self.together(op, args, before):
            return frozenset()
        return frozenset.intersection(*[self._supplied(args[i]) for i in before])

    def together(self, op: Operation, args: Sequence[int], positions: Sequence[int]) -> Sequence[int]:
        """The operands in which the operation is linear, those at ``positions`` and numbers; empty: it is not."""
        return linear_together(op, positions, [len(self.type(n).shape) for n in args])

    def summed(self, op: Operation, args: Sequence[int]) -> Mapping[int, SummedAxes]:
        """The axes that cut each dimension over which the operation sums, by the dimension in its first operand."""
        stated = [self._stated(n) for n in args]
        if None in stated:
            return {}
        axes = [[entry_axes(entries_of(t)[d]) for d in dims] for t, dims in zip(stated, op.summed_dims)]  # type: ignore[arg-type]
        return {d: next(filter(None, each), ()) for d, *each in zip(op.summed_dims[0], *axes)} if axes else {}

    def ask(self) -> None:
        """Find the axes along which each hidden value is asked for in parts."""
        for n in self.program.outs:
            self._ask(n, frozenset())
        for op, args, results, _ in reversed([*self.program.steps()]):
            axes = frozenset(self.form(results[0])) if results else frozenset()
            if JVP.cell(type(op)) is componentwise:
                for n, k in zip(args, results):
                    self._ask(n, frozenset(self.form(k)))
                continue
            if not axes or op.bodied:
                linear: Sequence[int] = ()
            elif op.states_cut:
                linear = (0,)
            else:
                linear = [] if self.makes(op, args, axes) else [i for i, n in enumerate(args) if self._supplied(n)]
            for i, n in enumerate(args):
                self._ask(n, axes if i in linear else frozenset())

    def _ask(self, n: int, axes: frozenset[Any]) -> None:
        if n >= 0:
            fits = axes <= self.supplied[n] and self.asked.get(n, axes) == axes
            self.asked[n] = axes if fits else frozenset()

    def makes(self, op: Operation, args: Sequence[int], axes: Any) -> bool:
        """Whether an operation sums over dimensions that all these mesh axes cut, so that it can make partial sums."""
        return {*axes} <= {name for names in self.summed(op, args).values() for name in names}

    # The new program

    def performed(self, op: Any, args: Sequence[int], results: Sequence[int]) -> Any:
        """The results of an equation, each in its form."""
        if op.bodied:
            if any(map(_has_parts, op.bodies)):
                scope = (*([op.binds] if getattr(op, "binds", None) else []), *self.scope)
                op = op.map_bodies(lambda body: _Walk(body, scope).of_parts())
            return perform(op, *[self.in_form(n, _axes(self.type(n))) for n in args])
        if JVP.cell(type(op)) is componentwise:
            return perform(op, *[self.in_form(n, self.form(k)) for n, k in zip(args, results)])
        axes = self.form(results[0]) if results else ()
        if op.states_cut:
            spec = [*op.sharding.spec, *[None] * (len(self.type(args[0]).shape) - len(op.sharding.spec))]
            sharding = op.sharding.with_spec(op.sharding.spec.update([*spec, axes] if axes else spec, unreduced=()))
            return perform(ShardingConstraint(sharding), self.in_form(args[0], axes))
        if not axes:
            return perform(op, *[self.in_form(n, ()) for n in args])
        if self.makes(op, args, axes):
            cut = [*self.summed(op, args).values()]
            operands = [self.apart(n, dict(zip(dims, cut)), axes) for n, dims in zip(args, op.summed_dims)]
            return self._revealed(results, (_lanes_last(*op.of_parts(*operands)),))[0]
        linear = self.together(op, args, [i for i, n in enumerate(args) if self._supplied(n)])
        xs = [hide(self.in_form(n, axes if i in linear else ())) for i, n in enumerate(args)]
        dims = [len(x.type.shape) - 1 if i in linear else None for i, x in enumerate(xs)]
        y, dim = by_batch_rule(op, dims, xs, None, _count(self.mesh, axes))
        ys = op.as_results(y)
        each = dim if isinstance(dim, (tuple, list)) else [dim] * len(ys)
        return op.from_results(self._revealed(
            results, [move_axis(y, d, len(y.type.shape) - 1) for y, d in zip(ys, each)]))

    def _revealed(self, results: Sequence[int], ys: Sequence[Any]) -> list[Any]:
        """The parts of results, cut as their types state."""
        return [reveal(y, _cut(self.type(n), self.form(n))) for n, y in zip(results, ys)]

    def in_form(self, n: int, axes: SummedAxes) -> Any:
        """A value in parts along these axes, of those that it has, or made of the whole sum."""
        x, have = self.value(n)
        if have == axes:
            return x
        t = self.type(n)
        if {*axes} < {*have} or not axes:
            return reveal(self._summed(hide(x), have, axes), _cut(t, axes))
        whole, rank = hide(self.in_form(n, ())), len(t.shape)
        shape = (*t.shape, *[_count(self.mesh, (name,)) for name in axes])
        parts = broadcast_in_dim(whole, shape, (*range(rank),))
        for k, name in enumerate(axes):
            owner = self._owner(n, name, shape)
            lane = broadcast_in_dim(iota("int32", shape[rank + k]), shape, (rank + k,))
            parts = select_n(eq(lane, owner), full(array_type(shape, t.dtype, t.weak), 0), parts)
        return reveal(reshape(parts, (*t.shape, _count(self.mesh, axes))), _cut(t, axes))

    def _owner(self, n: int, name: Any, shape: tuple[Any, ...]) -> Any:
        """For each element of a value the position along an axis of the devices that have it; the first ones where all
        do.
        """
        entries = () if self._stated(n) is None else entries_of(self._stated(n))  # type: ignore[arg-type]
        for d, entry in enumerate(entries):
            names = entry_axes(entry)
            if name in names:
                inner = shape[d] // _count(self.mesh, names[: names.index(name) + 1])
                places = rem(div(iota("int32", shape[d]), inner), _count(self.mesh, (name,)))
                return broadcast_in_dim(places, shape, (d,))
        return full(array_type(shape, int32), 0)

    def _summed(self, x: Any, have: SummedAxes, axes: SummedAxes) -> Any:
        """The parts along ``have`` summed to those along ``axes``."""
        sizes, rank = [_count(self.mesh, (name,)) for name in have], len(x.type.shape) - 1
        apart = reshape(x, (*x.type.shape[:-1], *sizes))
        y = reduce_sum(apart, tuple([rank + k for k, name in enumerate(have) if name not in axes]))
        return reshape(y, (*x.type.shape[:-1], _count(self.mesh, axes))) if axes else y

    def apart(self, n: int, cut: Mapping[int, SummedAxes], axes: SummedAxes) -> _Apart:
        """An operand whose dimensions are divided by the axes that cut them, of which ``axes`` become lanes."""
        x = hide(self.in_form(n, ()))
        shape: list[Any] = []
        entries: list[Any] = []
        lanes: dict[Any, int] = {}
        inner: dict[int, list[int]] = {}
        for d, size in enumerate(x.type.shape):
            names = cut.get(d, ())
            kept = []
            for name in names:
                if name in axes:
                    lanes[name] = len(shape)
                else:
                    kept.append(len(shape))
                shape.append(_count(self.mesh, (name,)))
            inner[d] = [*kept, len(shape)]
            shape.append(size // _count(self.mesh, names))
            entries += [*names, None if names else UNCONSTRAINED]
        divided = reveal(reshape(x, tuple(shape)), cut_over(self.mesh, entries))  # type: ignore[arg-type]
        return _Apart(hide(divided), [lanes[name] for name in axes], inner)


class _Apart(NamedTuple):
    """An operand with a dimension for each axis that cuts one over which is summed.

    ``lanes``: those of the axes that become lanes. ``inner[d]``: those that are summed over for dimension ``d`` of the
    operand, of which the last is what remains of it.
    """

    array: Any
    lanes: list[int]
    inner: dict[int, list[int]]


def _lanes_last(y: Any, lanes: Sequence[int]) -> Any:
    """The array with these dimensions as one, the last."""
    kept = [k for k in range(len(y.type.shape)) if k not in lanes]
    z = permute(y, (*kept, *lanes))
    return reshape(z, (*[y.type.shape[k] for k in kept], prod([y.type.shape[k] for k in lanes])))


def _taken(x: Any, t: ArrayType) -> Any:
    """The parts that the devices have of a value of this type."""
    axes = _axes(t)
    if not axes:
        return x
    sized = tuple([axis for axis in t.cut.mesh.shape_tuple if axis[0] in axes])
    y = relabelled(hide(x), frozenset(), frozenset(sized), t.cut.mesh, sized)
    return reveal(move_axis(y, 0, len(t.shape)), _cut(t, axes))


def _given(y: Any, t: ArrayType) -> Any:
    """The value of which each device has a part of its own, from its parts."""
    axes = _axes(t)
    if not axes:
        return y
    sized = tuple([axis for axis in t.cut.mesh.shape_tuple if axis[0] in axes])
    rows = move_axis(hide(y), len(t.shape), 0)
    return reveal(relabelled(rows, frozenset(sized), frozenset(), t.cut.mesh, sized), _cut(t))
