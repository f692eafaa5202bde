"""batch, the handler of vmap: every operation over one more axis. A box pairs an array with its mapped dimension.

    vmap(f)(xs)[i] = f(xs[i])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, STACK, Binding, Run, inside
from ...effects.control.lanes import Lanes
from ...effects.core.arrays import ConcreteArray
from ...effects.core.columns import BATCH, COLLECTIVE, AxisRule
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation, effects_text, result_type
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.sharding_constraint import cut_of, hide, reveal, states
from ...effects.operations.manipulation.slicing import axis_at, index_in_dim
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program
from ...effects.sharding.named_sharding import NamedSharding, cut_over
from ...effects.sharding.sharding_rules import entries_of
from ...effects.types.array_type import ArrayType
from ...effects.types.extent import described
from ..core.body_transform import BodyTransformer, cross, transform_body
from ..core.record import Record
from ..core.rule_cache import cached_rule_program
from ..core.rule_results import need_lanes, pair_of
from ..core.sited_box import SitedBox
from ..core.state_flow import STATELESS, StateFlow
from ..differentiation.linear_rules import cross_linear
from .divergent_lanes import all_branches, while_any


class BatchBox(SitedBox):
    """The values of all lanes in one array, and the dimension that indexes the lanes."""

    __slots__ = ("value", "dim")
    value: Any
    dim: int


def lane_box(run: Run, value: Any, dim: Any, type: ArrayType, site: Any) -> BatchBox:
    """A box of the interpretation ``run``: ``value`` holds all lanes along dimension ``dim``; ``type`` is that of one
    lane.

    It skips the checks of ``__init__``, since one box is made for every result of every operation.
    """
    new = BatchBox()
    new.type = type
    new.run = run
    new.value = value
    new.dim = dim
    new.site = site
    return new


def type_of_lanes(lane: ArrayType, dim: int, size: Any, cut: NamedSharding | None) -> ArrayType:
    """The type of ``size`` lanes of this type along ``dim``; ``cut`` is how a vector of lanes is cut."""
    t = lane.with_dimension(dim, size)
    if cut is None:
        return t
    entries = entries_of(lane)
    return t.cut_by(cut_over(cut.mesh, (*entries[:dim], *cut.spec, *entries[dim:])))


class Batch(BodyTransformer):
    """An installation of the handler of ``vmap``.

    Answers operations with one of its boxes as operand, those that name its axis, and every effect; forwards the rest.
    The mark of a value is its mapped dimension, None for a value that all lanes share. ``how``: what a subclass has to
    know about the lanes. ``cut``: how a vector of lanes is cut along explicit axes, or None.
    """

    __slots__ = ("size", "axis_name", "how", "cut", "crossed")

    def __init__(
        self, outer: Run, size: int, axis_name: Hashable | None = None, site: tuple[Any, int] | None = None,
        how: Any = None,
    ):
        super().__init__(outer, "vmap" if axis_name is None else f"vmap({axis_name!r})", site)
        self.size = size
        self.axis_name = axis_name
        self.how = how
        self.cut: NamedSharding | None = None
        self.crossed = 0  # the loops and lanes in whose body this is, and around which the lanes are
        if axis_name is not None:
            self.scope = (Binding(((axis_name, size),)), *outer.scope)

    @property
    def equal_lanes(self) -> tuple[str, str] | None:
        """Why all lanes must have the same types, and the option by which they must; None: they need not."""
        return None

    def fresh(self, outer: Run) -> Batch:
        return self.of_lanes(self.size, outer)

    def of_lanes(self, size: int, outer: Run) -> Batch:
        """This handler for another number of lanes: ``size``."""
        run = type(self)(outer, size, self.axis_name, None, self.how)
        run.crossed, run.cut = self.crossed, self.cut
        return run

    def key(self) -> Any:
        return (type(self), self.size, self.axis_name, self.crossed, self.how, self.cut)

    def flow(self, op: HigherOrder) -> StateFlow:
        """How ``vmap`` enters the bodies of an operation: it counts loops if a body may perform effects."""
        return InsideLoop(self.crossed + 1) if op.bodied and op.stacks and may_perform(op) else STATELESS

    def takes_bodies(self, op: Any) -> bool:
        """Whether a scoped effect is performed once, over bodies of all lanes."""
        return bool(op.vmap == "bodies")

    def split(self, x: Any) -> tuple[int | None, Sequence[Any]]:
        return (x.dim, (x.value,)) if x.run is self else (None, (x,))

    def box(self, mark: int | None, parts: Sequence[Any]) -> Any:
        (value,) = parts
        if mark is None:
            return value
        return lane_box(self, value, mark, value.type.without_dimension(mark), self.cell.site)

    def part_types(self, mark: int | None, type: ArrayType) -> Sequence[ArrayType]:
        if type.varying:
            type = type.along(type.varying - {(self.axis_name, self.size)})
        return (type if mark is None else type_of_lanes(type, mark, self.size, self.cut),)

    def force(self, x: Any, mark: int | None) -> Sequence[Any]:
        dim, (value,) = self.split(x)
        return (value if mark is None or dim == mark else axis_at(value, dim, mark, self.size),)

    def linear_marks(self, op: Any) -> Sequence[int | None]:
        """The mapped dimension of every operand of a linear map whose backward rule may name the axis; else nothing."""
        return (0,) if self.axis_name is not None and op.forward is None else ()

    def tangent(self, x: Any, mark: int | None) -> Any:
        """The tangent of lane 0 for a value that all lanes share, if a linear map over the axis gave one per lane."""
        if mark is not None or x.run is not self:
            return x
        return index_in_dim(x.value, 0, x.dim, keepdims=False)

    def mapped_mark(self, type: ArrayType) -> Any:
        """The mapped dimension given to a value of this type that differs from lane to lane: the first."""
        return 0

    def join(self, marks: Sequence[int | None]) -> int | None:
        mapped = {mark for mark in marks if mark is not None}
        return mapped.pop() if len(mapped) == 1 else 0 if mapped else None

    def carried(self, mark: int | None) -> int | None:
        return None if mark is None else 0

    def slice(self, mark: int | None, parts: Sequence[Any]) -> tuple[int | None, Sequence[Any]]:
        if mark == 0:  # dimension 0 has to be the loop's
            return 0, (axis_at(parts[0], 0, 1, self.size),)
        return mark and mark - 1, parts

    def stack(self, mark: int | None) -> int | None:
        return None if mark is None else mark + 1

    def choose(self, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
        """Answer a ``cond`` or ``while_loop`` whose index or test differs from lane to lane.

        A branch becomes all branches and a selection, a loop iterates until every lane has ended. With effects in its
        row it becomes ``Lanes``, in which each lane executes it alone, if all of them declare ``per_lane``.

        Raises: CannotCross: an effect does not, or the body names the mapped axis, which no lane has alone.
        """
        effects = [effect for effect in op.effects if not isinstance(effect, Axis)]
        of_all_lanes = [effect for effect in effects if not self.diverges(effect)]
        if effects and not of_all_lanes:
            if Axis(self.axis_name) in op.effects:
                raise self._diverges_at_collective(op, effects)
            dims, values = zip(*[(self.split(x)[0], self.split(x)[1][0]) for x in operands])
            return tuple([self.box(0, (y,)) for y in self.in_lanes(op, dims, values)])
        if of_all_lanes:
            names = effects_text(of_all_lanes)
            raise CannotCross(
                f"{op.name}: lanes of {self.label} diverge, and only some of them would perform {names}.",
                hint=f"handle it inside: vmap(hx.handle(h)(f)); or declare {names} with @hx.effect(vmap='per_lane').",
            )
        with inside(self):
            if op.runs == "one":
                marks, values = zip(*map(self.split, operands))
                evaluated = all([type(part) is ConcreteArray for parts in values for part in parts])
                return all_branches(op, operands, None if evaluated else [mark is not None for mark in marks])
            return while_any(self, op, operands)

    def diverges(self, effect: Any) -> bool:
        """Whether each lane decides by itself if it performs this effect, so that some lanes may never perform it."""
        return getattr(effect, "vmap", "once") == "per_lane"

    def _diverges_at_collective(self, op: HigherOrder, effects: Sequence[Any]) -> CannotCross:
        names = effects_text(effects)
        return CannotCross(
            f"{op.name}: lanes of {self.label} diverge, and each is executed alone since it performs {names}; a "
            f"collective over {self.axis_name!r} needs all of them.",
            hint="compute the collective outside of it, or handle the effect inside: vmap(hx.handle(h)(f)).",
        )

    def in_lanes(self, op: Operation, dims: Sequence[int | None], values: Sequence[Any]) -> tuple[Any, ...]:
        """Perform ``Lanes`` of the operation, which executes it lane by lane, on the next outer handler; lanes are
        dimension 0.

        Raises: CannotCross: there is no number of lanes, since they are rows of a lane that has a length of its own, or
        as many as a symbolic size says.
        """
        self._need_number(op)
        recorder = Record(BASE, "")
        shared = [(recorder.input(x.type), x) for x, d in zip(values, dims) if d is None]
        each = [axis_at(x, d, 0, self.size) for x, d in zip(values, dims) if d is not None]
        rows = iter([recorder.input(x.type.without_dimension(0)) for x in each])
        fixed = iter([box for box, _ in shared])
        results = recorder.answer(op, tuple([next(fixed) if d is None else next(rows) for d in dims]))
        body = recorder.freeze(op.as_results(results), op.name)
        lanes = Lanes((body,), len(shared), self.size, self.crossed)
        return self.outer.answer(lanes, (*[x for _, x in shared], *each))

    def _need_number(self, op: Operation) -> None:
        if not isinstance(self.size, int):
            names = effects_text([effect for effect in op.effects if not isinstance(effect, Axis)])
            raise CannotCross(
                f"{names or op.name}: lanes that perform this effect must be of a known number, got as many as "
                f"{described(self.size)}.",
                hint="hx.lax.scan over the lanes, or handle it inside: vmap(hx.handle(h)(f)).",
            )

    def concerns(self, op: Operation) -> bool:
        """Whether this handler answers an operation without one of its boxes: it names the axis, or has an effect.

        The backward rule of a linear map may name the axis when it is called.
        """
        if op.deferred and not op.bodied and self.linear_marks(op):
            return True
        return any(not isinstance(e, Axis) or e.name == self.axis_name for e in op.effects)

    def _effect(self, op: Operation, dims: tuple[Any, ...], *values: Any) -> Any:
        """Answer an effect without a batch rule as its class declares: once, once per lane, or with an error."""
        if op.vmap == "once" and all(d is None for d in dims):
            return self.outer.answer(op, values), None
        if op.vmap == "per_lane":
            self._need_number(op)
            whole = op.of_all_lanes(self.crossed)
            if whole is None:
                ys = self.in_lanes(op, dims, values)
            else:
                ys = self.outer.answer(whole, tuple([axis_at(x, d, 0, self.size) for x, d in zip(values, dims)]))
            return (ys, 0) if op.multiple_results else (ys[0], 0)
        raise self._refused(op)

    def _refused(self, op: Operation) -> CannotCross:
        why = "an operand differs from lane to lane" if op.vmap == "once" else f"it is declared with vmap={op.vmap!r}"
        ways = f"{'bodies' if op.scopes else 'once'!r} or 'per_lane'"
        declare = "" if op.vmap == "once" else f"declare what it means with @hx.effect(vmap={ways}), or "
        return CannotCross(
            f"{op.name}: this effect cannot cross {self.label}: {why}.",
            hint=f"{declare}handle it inside: vmap(hx.handle(h)(f)).",
        )

    def collective(self, op: Any, dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """The results of an operation that names the axis, and the dimension along which they are mapped."""
        return COLLECTIVE.find(type(op))(op, self.axis_name, self.size, dims, *values)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        values: tuple[Any, ...]
        dims: tuple[Any, ...]
        key: tuple[Any, ...]
        if len(operands) == 1:  # the two commonest arities by hand
            (x,) = operands
            mapped = x.run is self
            values, dims = ((x.value,), (x.dim,)) if mapped else (operands, (None,))
            key = (values[0].type, dims[0])
        elif len(operands) == 2:
            x, y = operands
            first, second = x.run is self, y.run is self
            mapped = first or second
            values = (x.value if first else x, y.value if second else y)
            dims = (x.dim if first else None, y.dim if second else None)
            key = (values[0].type, values[1].type, *dims)
        else:
            values = tuple([x.value if x.run is self else x for x in operands])
            dims = tuple([x.dim if x.run is self else None for x in operands])
            mapped = any([d is not None for d in dims])
            key = (*[x.type for x in values], *dims)
        if not mapped and (not (op.effectful or op.named or op.bodied or op.deferred) or not self.concerns(op)):
            return self.outer.answer(op, operands)
        cell = self.cell
        outer_site = cell.site
        site = cell.site = outer_site or self.labelled_site()
        try:
            cached = None if op.memo is None else cached_rule_program(op, key, batch_rule)
            if not cached:
                return self.by_rule(op, operands, dims, values)
            (y,) = self.outer.inline(cached.program, values)
            dim, type = cached.marks
            return y if dim is None else lane_box(self, y, dim, type, site)
        finally:
            cell.site = outer_site

    def batched(self, op: Any) -> Any:
        """The operation; a scoped effect as one whose bodies compute all lanes: its clause must not end them for one.
        """
        return op.with_bodies(op.bodies, batched=True) if op.scopes and self.concerns(op) else op

    def _bodies(self, op: Any, operands: tuple[Any, ...], dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """Answer a higher-order operation that has no batch rule for these mapped dimensions by batching its bodies."""
        if not self.crosses(op):
            if op.vmap == "refuse":
                raise self._refused(op)
            return self.choose(op, operands)
        if op.runs == "lanes" and self.concerns(op) and Axis(self.axis_name) not in op.effects:
            ys = self.in_lanes(op, dims, values)  # lanes in lanes: the outer ones first, as in the result
            return tuple([self.box(0, (y,)) for y in ys])
        return cross(self, self.batched(op), operands)

    def by_rule(self, op: Operation, operands: tuple[Any, ...], dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """Answer an operation that has no cached rule program: call its batch rule, or else batch its bodies."""
        around = STACK.get()
        try:
            STACK.set(self.outer)
            if op.deferred and not op.bodied:
                return cross_linear(self, op, operands)
            if op.named and self.axis_name in op.axis_names:  # type: ignore[attr-defined]
                if op.needs_all_lanes:  # type: ignore[attr-defined]
                    with inside(self):
                        return op.in_one_place(*operands)  # type: ignore[attr-defined]
                y, dim = self.collective(op, dims, values)
            else:
                open = op.effectful or op.bodied
                alike = op.effectful and op.vmap == "once" and all([d is None for d in dims])
                ruled = not open or (BATCH.has(type(op)) and not alike)
                answer = by_batch_rule(op, dims, values, self.axis_name, self.size, self.cut) if ruled else None
                if answer is None and op.bodied:
                    return self._bodies(op, operands, dims, values)
                y, dim = self._effect(op, dims, *values) if answer is None else pair_of(
                    f"{op.name}, batch", "result, mapped dimension", answer)
            if not op.multiple_results:
                return self._mapped(op, dim, y)
            out_dims = dim if isinstance(dim, (tuple, list)) else (dim,) * len(y)
            return tuple([self._mapped(op, d, value) for value, d in zip(y, out_dims)])
        finally:
            STACK.set(around)

    def _mapped(self, op: Operation, dim: int | None, y: Any) -> Any:
        """The box of a result of a rule."""
        need_lanes(op, y, dim, self.size)
        return self.box(dim, (y,))


def by_batch_rule(
    op: Any, dims: Sequence[Any], values: Sequence[Any], axis_name: Hashable, size: int,
    cut: NamedSharding | None = None,
) -> Any:
    """The results of an operation by its batch rule, and the dimension along which they are mapped."""
    rule = BATCH.find(type(op))
    if type(rule) is AxisRule:
        rule = partial(rule, axis=(axis_name, size))
    if op.states_cut or any(map(cut_of, values)):
        return blind_rule(rule, cut, op, dims, *values)
    return rule(op, dims, *values)


def blind_rule(rule: Any, cut: NamedSharding | None, op: Any, dims: Sequence[Any], *values: Any) -> Any:
    """What the batch rule gives for operands of which some are cut: each lane of the results is cut as the type of the
    operation's results says, a vector of lanes as ``cut``. A rule that performs other operations is called on hidden
    operands.
    """
    stated = states(map(cut_of, values)) or (op.states_cut and op.mesh.explicit_axes)
    if not stated or op.bodied or op.effectful:
        return rule(op, dims, *values)
    if isinstance(op, Elementwise) and len({(x.type.shape, d) for x, d in zip(values, dims) if x.type.shape}) == 1:
        return rule(op, dims, *values)  # performs the operation itself
    types = [x.type if d is None else x.type.without_dimension(d) for x, d in zip(values, dims)]
    lanes = op.as_results(result_type(op, tuple(types)))
    answer = rule(op, dims, *map(hide, values))
    if answer is None:
        return None
    y, dim = answer
    ys = op.as_results(y)
    each = dim if isinstance(dim, (tuple, list)) else (dim,) * len(ys)
    of_all = [t if d is None else type_of_lanes(t, d, z.type.shape[d], cut) for z, t, d in zip(ys, lanes, each)]
    return op.from_results([reveal(z, t.cut) for z, t in zip(ys, of_all)]), dim


def may_perform(op: HigherOrder) -> bool:
    """Whether a body performs effects, or holds a derivative or batching rule that may perform some when called."""
    return bool(op.effects) or any([kind.deferred for body in op.bodies for kind in body.operations])


class InsideLoop(StateFlow):
    """How ``vmap`` enters the body of a loop or of ``Lanes``; the number of loops crossed is part of its key."""

    fixed = True

    def __init__(self, crossed: int):
        self.crossed = crossed

    def key(self) -> Any:
        return ("inside", self.crossed)

    def begin(self, run: Batch, values: Sequence[Any]) -> None:
        run.crossed = self.crossed


def batch_rule(op: Operation, key: Sequence[Any]) -> tuple[Callable[..., Any], Sequence[ArrayType]]:
    """The batch rule of an operation as a function that can be recorded, and the types of its operands. ``key``:
    these types, then the mapped dimensions.
    """
    count = len(key) // 2

    def rule(*values: Any) -> tuple[Sequence[Any], Any]:
        rule = BATCH.find(type(op))
        if op.states_cut or any(map(cut_of, values)):
            cuts = [t.cut and t.cut.of_dimension(d) for t, d in zip(key, key[count:]) if d is not None]
            rule = partial(blind_rule, rule, cuts[0])
        y, dim = rule(op, key[count:], *values)
        return (y,), (dim, None if dim is None else y.type.without_dimension(dim))

    return rule, key[:count]


class JvpDirections(Batch):
    """``vmap`` over tangent directions of one derivative: an effect without a mapped operand is performed once for
    all, and so is a scoped effect, over its derivatives in all directions.
    """

    __slots__ = ()

    def concerns(self, op: Operation) -> bool:
        return False

    def takes_bodies(self, op: Operation) -> bool:
        return True


class DeviceLanes(Batch):
    """``vmap`` whose lanes are the devices of a mesh: each device calls the host itself, also where operands are
    shared.
    """

    __slots__ = ()

    def diverges(self, effect: Any) -> bool:
        return effect.calls_host or super().diverges(effect)

    def by_rule(self, op: Operation, operands: tuple[Any, ...], dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        if not op.calls_host:
            return super().by_rule(op, operands, dims, values)
        return tuple([self.box(0, (y,)) for y in self.in_lanes(op, dims, values)])


def batch_program(
    program: Program,
    dims: Sequence[int | None],
    size: int,
    axis_name: Hashable | None = None,
    devices: bool = False,
) -> tuple[Program, tuple[int | None, ...]]:
    """The program over all lanes, input ``i`` mapped along ``dims[i]``, and the mapped dimension of each result."""
    kind = DeviceLanes if devices else Batch
    batched = transform_body(kind(BASE, size, axis_name), program, dims)
    return batched.program, batched.marks
