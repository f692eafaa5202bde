"""custom_vmap: functions with a batching rule. Derivatives of the function are batched by derivatives of the rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base import config
from ...effects.base.errors import CannotCross, TreeMismatch, need_function
from ...effects.base.stack import current, installed, perform
from ...effects.control.custom_rules import CustomVmap
from ...effects.control.loops import scan
from ...effects.core.columns import BATCH, JVP, TRANSPOSE, zeros_like
from ...effects.core.named_axes import is_root
from ...effects.core.signatures import F, P, R
from ...effects.functions.captured import replaced
from ...effects.functions.keys import KeyedValue, UserFunction
from ...effects.operations.foundations.shapes import move_axis
from ...effects.operations.manipulation.slicing import axis_at
from ...effects.programs.closure_conversion import close
from ...effects.programs.higher_order import record_body
from ...effects.programs.program import Program
from ...effects.programs.program_cache import ProgramCache
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..analysis.dependence import scattered
from ..batching.batching_rules import BatchingRule
from ..core.rule_results import checked, pair_of
from ..differentiation.deferred_rules import describe_function, full
from ..differentiation.jvp import Jvp, jvp_program, push_forward
from ..differentiation.jvp_rules import EffectsPerformed
from ..differentiation.partial_eval import split_program
from ..differentiation.transpose import pull_back
from .custom_call import CustomFunction, substitution

_DERIVED = ProgramCache("derivatives of functions with a rule for lanes")
"""Derivatives of a ``custom_vmap``, which carry its rule, by operation, operands with a tangent and settings."""


class custom_vmap(CustomFunction[P, R]):
    """A function with a batching rule.

        f.def_vmap(rule);  vmap(f)(*xs) == rule(n, in_batched, *xs)[0]

    The rule takes the size of the axis, a tree of bools for each argument (which leaves are mapped), and the arguments,
    mapped leaves with the axis in dimension 0; it returns the results and their tree of bools. ``vmap`` of a derivative
    of the function is the derivative of the rule.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: a result of the rule has another structure, shape or dtype
    than the function's. CannotCross: a captured value is mapped.

    >>> from handlax import numpy as hnp, vmap
    >>> @custom_vmap
    ... def double(x): return x + x
    >>> @double.def_vmap
    ... def rule(size, in_batched, xs): return 2.0 * xs, in_batched[0]
    >>> vmap(double)(hnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    operation = CustomVmap
    rule_names = ("vmap_rule",)
    definition = "def_vmap"
    vmap_rule: Callable[..., Any] | None = None
    in_order = False  # whether the rule calls the function with one lane after the other

    def __init__(self, fun: Callable[P, R]):
        super().__init__(fun)

    def def_vmap(self, vmap_rule: F) -> F:
        """Set the rule, ``rule(axis_size, in_batched, *args) -> (results, out_batched)``, and return it."""
        need_function("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def _rule(self, *parts: Any) -> UserLanes:
        return (LanesInOrder if self.in_order else UserLanes)(*parts)


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function whose ``vmap`` is a loop over the lanes, in index order; over lanes of lanes, loops in each other.

    >>> from handlax import numpy as hnp, vmap
    >>> vmap(sequential_vmap(lambda x: x * x))(hnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """
    sequential = custom_vmap(f)
    sequential.in_order = True

    @sequential.def_vmap
    def loop_over_lanes(size: int, mapped: Any, *args: Any) -> Any:
        leaves, tree = pytrees.flatten(args)
        lane = lambda *xs: sequential(*pytrees.unflatten(tree, xs))
        ys = _lane_by_lane(lane, size, pytrees.leaves(list(mapped)), leaves)
        return ys, pytrees.map(lambda _: True, ys)

    return sequential


def _lane_by_lane(f: Callable[..., Any], size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> Any:
    """The results of ``f`` on each lane, stacked: a loop over the mapped operands, whose axis 0 indexes the lanes."""

    def step(_: Any, rows: Any) -> Any:
        row = iter(rows)
        return None, f(*[next(row) if yes else x for x, yes in zip(operands, mapped)])

    return scan(step, None, [x for x, yes in zip(operands, mapped) if yes], size)[1]


# Batching rules: of the function, of its forward derivative, of its adjoint


class UserLanes(BatchingRule):
    """The rule of a ``custom_vmap``: the user's function with placeholders for captured boxes."""

    function: str
    statics: tuple[UserFunction, ...]
    tree: Any
    boxes: tuple[KeyedValue, ...]
    first: int
    expected: Any
    rule: UserFunction
    in_order = False

    @property
    def shown(self) -> str:
        return f"custom_vmap of {self.function}, rule {describe_function(self.rule.value)}"

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        last = self.first + len(self.boxes)
        if any(mapped[:last]):
            raise CannotCross(
                f"{self.shown}: a value that the function captured is mapped, and the rule takes arguments only.",
                hint="make it an argument.",
            )
        f = replaced(self.rule.value, substitution(self.boxes, operands[self.first : last]))
        in_mapped = list(pytrees.unflatten(self.tree, mapped[last:]))
        returned = f(size, in_mapped, *pytrees.unflatten(self.tree, operands[last:]))
        pair = pair_of(self.shown, "results, out_batched", returned)
        structure, out_types = self.expected
        leaves, tree = pytrees.flatten(pair[0])
        marks, other = pytrees.flatten(pair[1])
        for what, treedef in (("results", tree), ("out_batched", other)):
            if treedef != structure:
                raise TreeMismatch(
                    f"{self.shown}: the rule must return {what} of the structure of the results of {self.function}, "
                    f"{structure}, got {treedef}."
                )
        types = [t.with_dimension(0, size) if yes else t for t, yes in zip(out_types, marks)]
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, types)], list(map(bool, marks))


class LanesInOrder(UserLanes):
    """The batching rule of a ``sequential_vmap``: a loop over the lanes."""

    in_order = True


class JvpLanesRule(BatchingRule):
    """The batching rule of the forward derivative, which maps operands and nonzero tangents to tangents of results.

    The effects of the rule have been performed with the values.
    """

    inner: Any
    nonzero: tuple[bool, ...]

    def varies(self, mapped: Sequence[bool]) -> bool:
        return bool(self.inner.varies(mapped[: len(self.nonzero)]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        count = len(self.nonzero)
        tangents, marks = iter(operands[count:]), iter(mapped[count:])
        run = Jvp(EffectsPerformed(current(), self.shown), "")
        with installed(run):
            boxes, lanes = [], []
            for x, x_mapped, nonzero in zip(operands, mapped, self.nonzero):
                if nonzero:
                    dx, dx_mapped = next(tangents), next(marks)
                    either = x_mapped or dx_mapped
                    x, dx = _with_lanes(x, x_mapped, either, size), _with_lanes(dx, dx_mapped, either, size)
                    x, x_mapped = run.pair(x, dx), either
                boxes.append(x)
                lanes.append(x_mapped)
            ys, out_mapped = self.inner(size, lanes, boxes)
        pairs = [run.unbox(y) for y in ys]
        inexact = [(y, dy, yes) for (y, dy), yes in zip(pairs, out_mapped) if is_inexact(y.type.dtype)]
        return [zeros_like(y) if dy is None else dy for y, dy, _ in inexact], [yes for _, _, yes in inexact]


class PartLanesRule(BatchingRule):
    """The batching rule of a part of a derivative whose effects have results: ``body`` on one lane after another.

    The first ``count`` operands are no tangents. Raises: CannotCross: the user's rule takes all lanes at once.
    """

    inner: Any
    body: Program
    count: int

    def varies(self, mapped: Sequence[bool]) -> bool:
        return any(mapped[: self.count])

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        if not self.inner.in_order:
            raise CannotCross(
                f"{self.shown}: vmap of the derivative of a function with a rule for lanes, which performs effects "
                "with results: the rule would perform them a second time.",
                hint="use sequential_vmap, or perform them before the function and pass on their results.",
            )
        part = CustomVmap((self.body,), 0, self)
        ys = _lane_by_lane(lambda *xs: list(perform(part, *xs)), size, mapped, operands)
        return ys, [True] * len(ys)


class TransposeLanesRule(BatchingRule):
    """The batching rule of the adjoint, which maps residuals and cotangents of results to those of linear operands."""

    inner: Any
    linear: tuple[bool, ...]
    types: tuple[ArrayType, ...]  # of the operands of the linear map, per lane

    def varies(self, mapped: Sequence[bool]) -> bool:
        known = iter(mapped)
        return bool(self.inner.varies([not yes and next(known) for yes in self.linear]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        count = len(self.linear) - sum(self.linear)
        residuals = iter(zip(operands[:count], mapped[:count]))
        known = [None if yes else next(residuals) for yes in self.linear]
        lanes = [pair is None or pair[1] for pair in known]
        types = [
            t.with_dimension(0, size) if pair is None else pair[0].type for pair, t in zip(known, self.types)
        ]

        def all_lanes(*xs: Any) -> list[Any]:
            ys, out_mapped = self.inner(size, lanes, xs)
            return [_with_lanes(y, yes, True, size) for y, yes in zip(ys, out_mapped)]

        program, captured = close(record_body(all_lanes, types, "lanes"))
        linear = [False] * len(captured) + list(self.linear)
        cts = [_with_lanes(ct, yes, True, size) for ct, yes in zip(operands[count:], mapped[count:])]
        in_cts = pull_back(program, linear, [*captured, *operands[:count]], cts)
        return full(in_cts, [t for t, yes in zip(types, self.linear) if yes]), [True] * len(in_cts)


def _with_lanes(x: Any, mapped: bool, required: bool, size: int) -> Any:
    """A value with lanes along axis 0 if ``required``: broadcast over the lanes unless it is mapped already."""
    return x if mapped or not required else axis_at(x, None, 0, size)


# Rules of the operation


@BATCH.rule(CustomVmap)
def _(op, dims, *values):
    if not op.rule.varies([d is not None for d in dims]):
        return None
    size = next((x.type.shape[d] for x, d in zip(values, dims) if d is not None), None)
    mapped = [d is not None for d in dims]
    first = [x if d is None else move_axis(x, d, 0) for x, d in zip(values, dims)]
    ys, out_mapped = op.rule(size, mapped, first)
    return tuple(ys), tuple([0 if yes else None for yes in out_mapped])


@JVP.rule(CustomVmap)
def _(op, primals, tangents):
    """The results by the operation itself, their tangents by a second operation, which is linear in the tangents.

    Where the body performs effects with results, both operations are parts of the derivative of the body.
    """
    nonzero = tuple([dx is not None for dx in tangents])
    if _has_results(op.bodies[0]):
        return _in_parts(op, primals, tangents, nonzero)
    y = perform(op, *primals)
    derived = _DERIVED.get(("jvp", op, nonzero, config.current()), lambda: _tangent_operation(op, nonzero))
    dys = perform(derived, *primals, *[dx for dx in tangents if dx is not None])
    return y, scattered(dys, [is_inexact(t.type.dtype) for t in y])


def _has_results(program: Program) -> bool:
    """Whether a program performs an effect that has results."""
    if not program.effects:
        return False
    ops: Any = program.ops
    pairs = zip(ops, program.types)
    return any([any(map(_has_results, op.bodies)) if op.bodied else bool(types) and is_root(op) for op, types in pairs])


def _in_parts(op: Any, primals: Any, tangents: Any, nonzero: tuple[bool, ...]) -> tuple[Any, list[Any]]:
    """Results and tangents by two operations: one performs the effects and gives residuals, one gives the tangents."""
    key = ("parts", op, nonzero, config.current())
    first, rest, half, marks = _DERIVED.get(key, lambda: _parts(op, nonzero))
    values = perform(first, *primals)
    residuals = half.residual_values(primals, values)
    known, unknown = iter(values), iter(perform(rest, *residuals, *[dx for dx in tangents if dx is not None]))
    outs = [next(unknown) if yes else next(known) for yes in half.unknown]
    return tuple(outs[: len(marks)]), scattered(outs[len(marks) :], marks)


def _parts(op: Any, nonzero: tuple[bool, ...]) -> tuple[Any, ...]:
    """The jvp of ``op`` as two operations: one computes the primal results and residuals, the other one the tangents
    from the residuals; then the partitioned program, and which results have a tangent.
    """
    derived, marks = jvp_program(op.bodies[0], nonzero)
    half = split_program(derived, [False] * len(nonzero) + [True] * sum(nonzero), None, None, False)

    def part(body: Program, count: int) -> Any:
        return CustomVmap((body,), 0, PartLanesRule(op.rule, body, count))

    return part(half.known, len(nonzero)), part(half.rest, len(half.residuals)), half, marks


def _tangent_operation(op: Any, nonzero: tuple[bool, ...]) -> Any:
    """The operation from primals and nonzero tangents to the tangents of the inexact results."""
    body = op.bodies[0]
    count = len(nonzero)

    def tangents(*xs: Any) -> list[Any]:
        with installed(EffectsPerformed(current(), op.rule.shown)):
            _, dys = push_forward(body, xs[:count], scattered(xs[count:], nonzero))
        pairs = [(dy, t) for dy, t in zip(dys, body.out_types) if is_inexact(t.dtype)]
        return full([dy for dy, _ in pairs], [t for _, t in pairs])

    types = [*body.in_types, *[t for t, yes in zip(body.in_types, nonzero) if yes]]
    return CustomVmap((record_body(tangents, types, body.name),), op.shared, JvpLanesRule(op.rule, nonzero))


@TRANSPOSE.rule(CustomVmap)
def _(op, cts, *operands, linear):
    key = ("transpose", op, linear, config.current())
    adjoint = _DERIVED.get(key, lambda: _cotangent_operation(op, linear))
    known = [x for x, yes in zip(operands, linear) if not yes]
    return scattered(perform(adjoint, *known, *full(cts, op.bodies[0].out_types)), linear)


def _cotangent_operation(op: Any, linear: tuple[bool, ...]) -> Any:
    """The operation from the other operands and cotangents of the results to cotangents of the linear operands."""
    body = op.bodies[0]
    types = [t for t, yes in zip(body.in_types, linear) if not yes]
    linear_types = [t for t, yes in zip(body.in_types, linear) if yes]

    def cotangents(*xs: Any) -> list[Any]:
        return full(pull_back(body, linear, xs[: len(types)], xs[len(types) :]), linear_types)

    rule = TransposeLanesRule(op.rule, linear, body.in_types)
    shared = op.shared - sum(linear[: op.shared])
    return CustomVmap((record_body(cotangents, [*types, *body.out_types], body.name),), shared, rule)
