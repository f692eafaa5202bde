"""custom_vmap: a function that the user says how to map. Its derivatives are mapped by the derivative of that rule."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..effects import config, trees
from ..effects.caches import Cache
from ..effects.closing import close
from ..effects.closures import replaced
from ..effects.columns import BATCH, JVP, TRANSPOSE, zeros_like
from ..effects.control import record_body
from ..effects.custom import CustomVmap
from ..effects.dtypes import is_inexact
from ..effects.errors import BadCall, CannotCross, TreeMismatch, need_function
from ..effects.loops import scan
from ..effects.programs import Program, interpret
from ..effects.shapes import move_axis
from ..effects.slicing import axis_at
from ..effects.stack import current, installed, perform
from ..effects.types import ArrayType
from .calling import Arguments, Call, perform_call
from .custom_rules import kept, substitution
from .jvp import Jvp, jvp_program
from .late import Held, LiftedLanes, Rule, checked, full, lifted_lanes, place_of
from .transpose import transpose_program

_DERIVED = Cache("derivatives of functions with a rule for lanes")


class custom_vmap:
    """A function with a rule for ``vmap``.

        f.def_vmap(rule);  vmap(f)(*xs) == rule(n, in_batched, *xs)[0]

    The rule takes the size of the axis, for each argument a tree of bools, and the arguments, those marked with the
    axis first; it gives the results, and their tree of bools. Derivatives of the function, mapped, are derivatives of
    the rule.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: what the rule gives does not fit; the message names it.
    CannotCross: a captured value differs from lane to lane.

    >>> from handlax import numpy as hnp, vmap
    >>> @custom_vmap
    ... def double(x): return x + x
    >>> @double.def_vmap
    ... def rule(size, in_batched, xs): return 2.0 * xs, in_batched[0]
    >>> vmap(double)(hnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    captures = ("fun", "vmap_rule", "__wrapped__")
    vmap_rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any]):
        need_function("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._arguments = Arguments("custom_vmap", fun, (), ())

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule, ``rule(axis_size, in_batched, *args) -> (results, out_batched)``; gives it back."""
        need_function("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise BadCall(f"custom_vmap: {self._arguments.name} has no rule yet.", hint="define one with def_vmap.")
        arguments, fun, vmap_rule = self._arguments, self.fun, self.vmap_rule
        _, xs, tree = arguments.split(arguments.positional(args, kwargs))

        def function(*values: Any) -> Any:
            return fun(*trees.unflatten(tree, values))

        def late(holes: Any, first: int, expected: Any, which: Any) -> UserLanes:
            return UserLanes(arguments.name, tree, holes, first, expected, kept(vmap_rule, which))

        return perform_call(Call(CustomVmap, arguments.name, function, late, (fun, vmap_rule), False), xs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that ``vmap`` runs for one lane after the other, as a loop.

    >>> from handlax import numpy as hnp, vmap
    >>> vmap(sequential_vmap(lambda x: x * x))(hnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """
    made = custom_vmap(f)

    @made.def_vmap
    def one_by_one(size: int, mapped: Any, *args: Any) -> Any:
        leaves, tree = trees.flatten(args)
        marks = trees.leaves(list(mapped))

        def step(_: Any, rows: Any) -> Any:
            given = iter(rows)
            return None, f(*trees.unflatten(tree, [next(given) if yes else x for x, yes in zip(leaves, marks)]))

        ys = scan(step, None, [x for x, yes in zip(leaves, marks) if yes], size)[1]
        return ys, trees.map(lambda _: True, ys)

    return made


# Rules for lanes


class Lanes(Rule):
    """A rule for lanes: what handlers make of it."""

    __slots__ = ()

    def speaks(self, mapped: Sequence[bool]) -> bool:
        """Whether an argument of the user's function differs from lane to lane."""
        return any(mapped)

    def lifted(self, lift: Any) -> LiftedLanes:
        return lifted_lanes(self, lift)


class UserLanes(Lanes):
    """The user's rule."""

    function: str
    tree: Any
    boxes: tuple[Held, ...]
    first: int
    expected: Any
    rule: Held

    @property
    def shown(self) -> str:
        return f"custom_vmap of {self.function}, rule {place_of(self.rule.value)}"

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        last = self.first + len(self.boxes)
        if any(mapped[:last]):
            raise CannotCross(
                f"{self.shown}: a value that the function captured differs from lane to lane, and the rule takes "
                "arguments alone.",
                hint="make it an argument.",
            )
        f = replaced(self.rule.value, substitution(self.boxes, operands[self.first : last]))
        pair = f(size, list(trees.unflatten(self.tree, mapped[last:])), *trees.unflatten(self.tree, operands[last:]))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeMismatch(f"{self.shown}: the rule must give (results, out_batched), got {type(pair).__name__}.")
        structure, out_types = self.expected
        leaves, tree = trees.flatten(pair[0])
        marks, other = trees.flatten(pair[1])
        for what, found in (("results", tree), ("out_batched", other)):
            if found != structure:
                raise TreeMismatch(
                    f"{self.shown}: the rule must give {what} of the structure that {self.function} gives, "
                    f"{structure}, got {found}."
                )
        whole = [t.update(shape=(size, *t.shape)) if yes else t for t, yes in zip(out_types, marks)]
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, whole)], list(map(bool, marks))


class Pushed(Lanes):
    """The rule of the forward derivative: operands, then the tangents of those marked, to the tangents of results."""

    inner: Any
    nonzero: tuple[bool, ...]

    def speaks(self, mapped: Sequence[bool]) -> bool:
        return bool(self.inner.speaks(mapped[: len(self.nonzero)]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        count = len(self.nonzero)
        tangents, marks = iter(operands[count:]), iter(mapped[count:])
        run = Jvp(current(), "")
        with installed(run):
            boxes, lanes = [], []
            for x, yes, moves in zip(operands, mapped, self.nonzero):
                if moves:
                    dx, also = next(tangents), next(marks)
                    x, dx = (_lanes(part, own, yes or also, size) for part, own in ((x, yes), (dx, also)))
                    x, yes = run.pair(x, dx), yes or also
                boxes.append(x)
                lanes.append(yes)
            ys, found = self.inner(size, lanes, boxes)
        pairs = [run.unbox(y) for y in ys]
        moving = [(y, dy, yes) for (y, dy), yes in zip(pairs, found) if is_inexact(y.type.dtype)]
        return [zeros_like(y) if dy is None else dy for y, dy, _ in moving], [yes for _, _, yes in moving]


class Pulled(Lanes):
    """The rule of the adjoint: operands that are not linear, and cotangents of results, to those of linear operands."""

    inner: Any
    linear: tuple[bool, ...]
    types: tuple[ArrayType, ...]  # of the operands of the linear map, for one lane
    out_types: tuple[ArrayType, ...]

    def speaks(self, mapped: Sequence[bool]) -> bool:
        known = iter(mapped)
        return bool(self.inner.speaks([not yes and next(known) for yes in self.linear]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        count = len(self.linear) - sum(self.linear)
        residuals = iter(zip(operands[:count], mapped[:count]))
        known = [None if yes else next(residuals) for yes in self.linear]
        lanes = [pair is None or pair[1] for pair in known]
        types = [
            t.update(shape=(size, *t.shape)) if pair is None else pair[0].type for pair, t in zip(known, self.types)
        ]

        def all_lanes(*xs: Any) -> list[Any]:
            ys, found = self.inner(size, lanes, xs)
            return [_lanes(y, yes, True, size) for y, yes in zip(ys, found)]

        program, captured = close(record_body(all_lanes, types, "lanes"))
        linear = [False] * len(captured) + list(self.linear)
        adjoint, marks = transpose_program(program, linear, [True] * len(self.out_types))
        cts = [_lanes(ct, yes, True, size) for ct, yes in zip(operands[count:], mapped[count:])]
        found = iter(interpret(adjoint, [*captured, *[pair[0] for pair in known if pair is not None], *cts]))
        given = [next(found) if yes else None for yes in marks]
        return full(given, [t for t, yes in zip(types, self.linear) if yes]), [True] * len(given)


def _lanes(x: Any, mapped: bool, wanted: bool, size: int) -> Any:
    """A value with the lanes first, where that is wanted."""
    return x if mapped or not wanted else axis_at(x, None, 0, size)


# The cells


@BATCH.rule(CustomVmap)
def _(op, dims, *values):
    size = next((x.type.shape[d] for x, d in zip(values, dims) if d is not None), None)
    if size is None:
        y = perform(op, *values)
        return y, (None,) * len(y)
    mapped = [d is not None for d in dims]
    first = [x if d is None else move_axis(x, d, 0) for x, d in zip(values, dims)]
    ys, given = op.rule(size, mapped, first)
    return tuple(ys), tuple([0 if yes else None for yes in given])


@JVP.rule(CustomVmap)
def _(op, primals, tangents):
    """The results by the operation as it is; their tangents by one of their own, which is linear."""
    y = perform(op, *primals)
    nonzero = tuple([dx is not None for dx in tangents])
    derived = _DERIVED.get(("jvp", op, nonzero, config.current()), lambda: _pushed(op, nonzero))
    found = iter(perform(derived, *primals, *[dx for dx in tangents if dx is not None]))
    return y, [next(found) if is_inexact(t.type.dtype) else None for t in y]


def _pushed(op: Any, nonzero: tuple[bool, ...]) -> Any:
    body = op.bodies[0]
    derived, marks = jvp_program(body, nonzero)
    count = len(body.outs)

    def tangents(*xs: Any) -> list[Any]:
        found = iter(interpret(derived, xs)[count:])
        given = [next(found) if yes else None for yes in marks]
        pairs = [(dy, t) for dy, t in zip(given, body.out_types) if is_inexact(t.dtype)]
        return full([dy for dy, _ in pairs], [t for _, t in pairs])

    return CustomVmap((_recorded(tangents, derived.in_types, body),), op.shared, Pushed(op.rule, nonzero))


@TRANSPOSE.rule(CustomVmap)
def _(op, cts, *operands, wrt):
    key = ("transpose", op, wrt, config.current())
    adjoint = _DERIVED.get(key, lambda: _pulled(op, wrt))
    known = [x for x, yes in zip(operands, wrt) if not yes]
    found = iter(perform(adjoint, *known, *full(cts, op.bodies[0].out_types)))
    return [next(found) if yes else None for yes in wrt]


def _pulled(op: Any, linear: tuple[bool, ...]) -> Any:
    body = op.bodies[0]
    adjoint, marks = transpose_program(body, linear, [True] * len(body.outs))
    wanted = [t for t, yes in zip(body.in_types, linear) if yes]

    def cotangents(*xs: Any) -> list[Any]:
        found = iter(interpret(adjoint, xs))
        return full([next(found) if yes else None for yes in marks], wanted)

    made = Pulled(op.rule, linear, body.in_types, body.out_types)
    shared = op.shared - sum(linear[: op.shared])
    return CustomVmap((_recorded(cotangents, adjoint.in_types, body),), shared, made)


def _recorded(f: Callable[..., Any], types: Sequence[ArrayType], body: Program) -> Program:
    return record_body(f, types, body.name)
