"""Derivatives by rules of the user's: the rules as values, and the cells of the operations that hold them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..effects import config, trees
from ..effects.arrays import lift
from ..effects.caches import Cache
from ..effects.closures import replaced
from ..effects.columns import EVALUATE, JVP, LOWER, TRANSPOSE, add_tangents, zeros_like
from ..effects.custom import Adjoint, CustomJvp, CustomVjp
from ..effects.dtypes import float0, is_inexact
from ..effects.errors import DTypeMismatch, NotDifferentiable, ShapeMismatch, TreeMismatch
from ..effects.modes import run as run_program
from ..effects.programs import Program, interpret
from ..effects.stack import BASE, current, inside, installed, perform
from ..effects.types import ArrayType, array_type
from .calling import Made, joined
from .jvp import Jvp, jvp_program
from .late import Held, LiftedJvp, Rule, checked, full, lifted_jvp, place_of
from .record import record
from .transpose import transpose_program

_FORWARD = Cache("forward programs of linear maps")


class SymbolicZero:
    """A tangent or cotangent known to be zero: ``aval``, ``shape`` and ``dtype`` say of what."""

    __slots__ = ("aval",)

    def __init__(self, aval: ArrayType):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    def instantiate(self) -> Any:
        """The zeros as an array."""
        return zero_of(self.aval)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicZero) and self.aval == other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal:
    """An argument as a forward rule with ``symbolic_zeros`` sees it: its value, and whether it is differentiated."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def tangent_type(t: ArrayType) -> ArrayType:
    """The type of tangents: of integers and booleans it is ``float0``."""
    return t if is_inexact(t.dtype) else array_type(t.shape, float0)


def zero_of(t: ArrayType) -> Any:
    return np.zeros(t.shape, float0) if t.dtype == float0 else zeros_like(t)


def shown_zero(t: ArrayType, symbolic: bool) -> Any:
    """The zero tangent of a value of this type, as rules see it."""
    made = tangent_type(t)
    return SymbolicZero(made) if symbolic else zero_of(made)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of values, as rules give them: arrays, or ``SymbolicZero``."""
    return trees.map(lambda x: shown_zero(lift(x).type, symbolic_zeros), val)


def kept(value: Any, which: Mapping[int, Any]) -> Held:
    """A function or static argument to be performed later, with holes for what it captured."""
    return Held(replaced(value, which), reads=True)


def substitution(boxes: Sequence[Held], values: Sequence[Any]) -> dict[int, Any]:
    return {id(box.value): value for box, value in zip(boxes, values)}


class UserRule(Rule):
    """What a derivative's rule consists of, whichever way it is written."""

    function: str  # the name of what it differentiates
    statics: tuple[Held, ...]
    tree: Any  # of the arguments that are values
    symbolic: bool
    boxes: tuple[Held, ...]  # captured by the rule: operands, behind those that the body alone captured
    first: int
    expected: Any  # structure and types of what the function gives, where these are known

    def run(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        made = self.made(operands, tangents)
        return made.outs, made.tangents

    def made(self, operands: Sequence[Any], tangents: Sequence[Any]) -> Made:
        """Performed here. What it captured counts as what it computes with: by that, its results are differentiated."""
        last = self.first + len(self.boxes)
        captured, xs, dxs = operands[self.first : last], operands[last:], tangents[last:]
        if all([dx is None for dx in tangents[self.first : last]]):
            return self.apply(captured, xs, dxs)
        inner = Jvp(current(), "")
        with installed(inner):
            pairs = [inner.pair(x, dx) for x, dx in zip(captured, tangents[self.first : last])]
            outs, douts, tree = self.apply(pairs, xs, dxs)
        found = [inner.unbox(y) for y in outs]
        given = [None if dy is None else inner.unbox(dy)[0] for dy in douts]
        return Made([y for y, _ in found], [add_tangents(a, b) for a, (_, b) in zip(given, found)], tree)

    @abstractmethod
    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> Made:
        """The user's function, on values."""

    def results(self, made: Any) -> tuple[list[Any], Any]:
        """The results that the rule gives, of the structure and types of the function's."""
        leaves, tree = trees.flatten(made)
        if self.expected is None:
            return [lift(y) for y in leaves], tree
        structure, types = self.expected
        if tree != structure:
            raise TreeMismatch(
                f"{self.shown}: the rule must give results of the structure that {self.function} gives, {structure}, "
                f"got {tree}."
            )
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, types)], tree

    def lifted(self, lift: Any) -> LiftedJvp:
        return lifted_jvp(self, lift)


class UserJvp(UserRule):
    """A rule ``(primals, tangents) -> (results, tangents)``."""

    rule: Held

    @property
    def shown(self) -> str:
        return f"custom_jvp of {self.function}, rule {place_of(self.rule.value)}"

    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> Made:
        values = substitution(self.boxes, captured)
        f = replaced(self.rule.value, values)
        statics = [replaced(static.value, values) for static in self.statics]
        given = [shown_zero(x.type, self.symbolic) if dx is None else dx for x, dx in zip(xs, dxs)]
        pair = f(*statics, trees.unflatten(self.tree, xs), trees.unflatten(self.tree, given))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeMismatch(f"{self.shown}: the rule must give (results, tangents), got {type(pair).__name__}.")
        outs, tree = self.results(pair[0])
        tangents, other = trees.flatten(pair[1])
        if other != tree:
            raise TreeMismatch(
                f"{self.shown}: the rule must give tangents of the structure of its results, {tree}, got {other}."
            )
        return Made(outs, [self.tangent(y.type, dy) for y, dy in zip(outs, tangents)], tree)

    def tangent(self, t: ArrayType, dy: Any) -> Any:
        if isinstance(dy, SymbolicZero) or getattr(dy, "dtype", None) == float0:
            if dy.shape != t.shape:
                raise ShapeMismatch(f"{self.shown}: the rule must give tangents of shape {t.shape}, got {dy.shape}.")
            return None
        if not is_inexact(t.dtype):
            raise DTypeMismatch(
                f"{self.shown}: the tangent of a result {t} has dtype float0, got {getattr(dy, 'dtype', type(dy))}.",
                hint="np.zeros(y.shape, handlax.dtypes.float0).",
            )
        return checked(self.shown, "tangents", dy, t)


class UserVjp(UserRule):
    """Two rules, ``fwd(*args) -> (results, residuals)`` and ``bwd(residuals, cts) -> cts of args``."""

    fwd: Held
    bwd: Held
    places: tuple[int, ...]  # of the static arguments

    @property
    def shown(self) -> str:
        return f"custom_vjp of {self.function}, forward rule {place_of(self.fwd.value)}"

    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> Made:
        values = substitution(self.boxes, captured)
        wrt = tuple([dx is not None for dx in dxs])
        args = [CustomVJPPrimal(x, yes) for x, yes in zip(xs, wrt)] if self.symbolic else xs
        statics = [replaced(static.value, values) for static in self.statics]
        pair = replaced(self.fwd.value, values)(*joined(self.places, statics, trees.unflatten(self.tree, args)))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TreeMismatch(f"{self.shown}: the rule must give (results, residuals), got {type(pair).__name__}.")
        outs, tree = self.results(pair[0])
        residuals, residual_tree = trees.flatten(pair[1])
        found = [residual(self.shown, x) for x in residuals]
        types = tuple([y.type for y in outs])
        moving = tuple([t for t in types if is_inexact(t.dtype)])
        if not moving or not any(wrt):
            return Made(outs, [None] * len(outs), tree)
        backward = UserBackward(
            self.function, self.bwd, self.statics, self.symbolic, self.boxes, tree, types, residual_tree, self.tree,
            tuple([x.type for x in xs]), wrt,
        )  # fmt: skip
        op = Adjoint(backward, None, len(captured) + len(found), moving)
        tangents = iter(perform(op, *captured, *found, *[dx for dx in dxs if dx is not None]))
        return Made(outs, [next(tangents) if is_inexact(t.dtype) else None for t in types], tree)


def residual(shown: str, x: Any) -> Any:
    try:
        return lift(x)
    except TypeError as error:
        raise TreeMismatch(
            f"{shown}: residuals must be arrays, and trees of them, got {type(x).__name__}.",
            hint="what is no array is an argument in nondiff_argnums, or captured by the rule.",
        ) from error


class UserBackward(Rule):
    """The linear map from residuals and cotangents of the results to those of the arguments differentiated."""

    function: str
    bwd: Held
    statics: tuple[Held, ...]
    symbolic: bool
    boxes: tuple[Held, ...]
    out_tree: Any
    out_types: tuple[ArrayType, ...]
    residual_tree: Any
    tree: Any
    types: tuple[ArrayType, ...]
    wrt: tuple[bool, ...]

    @property
    def shown(self) -> str:
        return f"custom_vjp of {self.function}, backward rule {place_of(self.bwd.value)}"

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        count = len(self.boxes)
        values = substitution(self.boxes, residuals)
        found = iter(cts)
        given = []
        for t in self.out_types:
            ct = next(found) if is_inexact(t.dtype) else None
            given.append(shown_zero(t, self.symbolic) if ct is None else ct)
        statics = [replaced(static.value, values) for static in self.statics]
        held = trees.unflatten(self.residual_tree, residuals[count:])
        made = replaced(self.bwd.value, values)(*statics, held, trees.unflatten(self.out_tree, given))
        return [ct for ct, yes in zip(self.cotangents(made), self.wrt) if yes]

    def cotangents(self, made: Any) -> list[Any]:
        """One for each leaf of the arguments; None in place of a tree is zero."""
        example = trees.unflatten(self.tree, range(len(self.types)))
        if not isinstance(made, (tuple, list)) or len(made) != len(example):
            got = f"{len(made)} of them" if isinstance(made, (tuple, list)) else type(made).__name__
            raise TreeMismatch(
                f"{self.shown}: the rule must give a tuple of one cotangent for each argument, {len(example)}, "
                f"got {got}."
            )
        leaves: list[Any] = []
        for i, (arg, ct) in enumerate(zip(example, made)):
            if not self.spread(arg, ct, leaves):
                raise TreeMismatch(
                    f"{self.shown}: the rule must give a cotangent of the structure of argument {i}, "
                    f"{trees.structure(arg)}, got {trees.structure(ct)}.",
                    hint="None stands for zero.",
                )
        return [self.cotangent(t, ct) for t, ct in zip(self.types, leaves)]

    def spread(self, example: Any, made: Any, leaves: list[Any]) -> bool:
        if made is None:
            leaves += [None] * len(trees.leaves(example))
            return True
        parts, tree = trees.flatten(example, lambda x: x is not example)
        given, other = trees.flatten(made, lambda x: x is not made)
        if tree != other:
            return False
        if tree is trees.LEAF:
            leaves.append(made)
            return True
        return all([self.spread(a, b, leaves) for a, b in zip(parts, given)])

    def cotangent(self, t: ArrayType, ct: Any) -> Any:
        if ct is None or isinstance(ct, SymbolicZero) or not is_inexact(t.dtype):
            return None
        if getattr(ct, "dtype", None) == float0:
            return None
        return checked(self.shown, "cotangents", ct, t)


# The cells


def derivative(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The rule, where an argument has a tangent; else the function, by what it captured alone."""
    if any([dx is not None for dx in tangents[op.shared :]]):
        return op.rule.run(primals, tangents)
    return by_program(op.bodies[0], primals, tangents)


def by_program(program: Program, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The results of a program and their tangents, by the operations in it."""
    derived, marks = jvp_program(program, [dx is not None for dx in tangents])
    results = interpret(derived, [*primals, *[dx for dx in tangents if dx is not None]])
    found = iter(results[len(marks) :])
    return results[: len(marks)], [next(found) if yes else None for yes in marks]


JVP.rule(CustomJvp)(derivative)
JVP.rule(CustomVjp)(derivative)


def forward_program(op: Any, types: Sequence[ArrayType]) -> Program:
    """What a linear map computes, as a program from residuals and values.

    Raises: NotDifferentiable: it is known by its adjoint alone, which is not linear.
    """
    key = (op, tuple(types), config.current())
    return _FORWARD.get(key, lambda: _forward_program(op, types))


def _forward_program(op: Any, types: Sequence[ArrayType]) -> Program:
    count = op.residuals
    with inside(BASE):
        if op.forward is not None:
            return record(lambda *xs: full(op.forward(xs[:count], xs[count:]), op.types), types, "linear")
        backward = record(
            lambda *xs: full(op.backward(xs[:count], xs[count:]), types[count:]), [*types[:count], *op.types], "bwd"
        )
        linear = [i >= count for i in range(len(backward.in_types))]
        try:
            adjoint, marks = transpose_program(backward, linear, [True] * (len(types) - count))
        except NotDifferentiable as error:
            raise NotDifferentiable(
                f"{op.backward.shown}: the forward derivative is the adjoint of this rule, which is not linear in the "
                f"cotangent. {error.what}",
                hint="give the function a rule by custom_jvp.",
            ) from error

        def forward(*xs: Any) -> list[Any]:
            found = iter(interpret(adjoint, xs))
            return [next(found) if yes else zeros_like(t) for yes, t in zip(marks, op.types)]

        return record(forward, types, "linear")


@EVALUATE.rule(Adjoint)
def _(op, *values):
    return run_program(forward_program(op, [array_type(x.shape, x.dtype) for x in values]), values)


@LOWER.rule(Adjoint)
def _(op, emit, *values):
    return emit.program(forward_program(op, [v.type for v in values]), values)


@JVP.rule(Adjoint)
def _(op, primals, tangents):
    if any([dx is not None for dx in tangents[: op.residuals]]):
        return by_program(forward_program(op, [x.type for x in primals]), primals, tangents)
    moved = full(tangents[op.residuals :], [x.type for x in primals[op.residuals :]])
    return perform(op, *primals), perform(op, *primals[: op.residuals], *moved)


@TRANSPOSE.rule(Adjoint)
def _(op, cts, *operands, wrt):
    residuals, values = operands[: op.residuals], operands[op.residuals :]
    if any(wrt[: op.residuals]):
        raise NotDifferentiable(f"{op.backward.shown}: the map is linear in its values, not in its residuals.")
    if op.forward is None:
        found = op.backward(residuals, cts)
    else:
        types = tuple([x if isinstance(x, ArrayType) else x.type for x in values])
        found = perform(Adjoint(op.forward, op.backward, op.residuals, types), *residuals, *full(cts, op.types))
    return [*[None] * op.residuals, *[ct if yes else None for ct, yes in zip(found, wrt[op.residuals :])]]

