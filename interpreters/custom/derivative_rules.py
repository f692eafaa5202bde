"""Derivative rules of the user's as values (deferred rules), and the rules of the operations that carry them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base import config
from ...effects.base.errors import DTypeMismatch, NotDifferentiable, ShapeMismatch, TreeMismatch
from ...effects.base.later_layers import LaterLayers
from ...effects.base.stack import BASE, current, inside, perform
from ...effects.control.body_rules import evaluate_body
from ...effects.control.custom_rules import Adjoint, CustomJvp, CustomVjp
from ...effects.core.arrays import PYTHON_NUMBERS, as_array
from ...effects.core.columns import EVALUATE, JVP, LOWER, TRANSPOSE
from ...effects.core.named_axes import under
from ...effects.functions.captured import replaced
from ...effects.functions.keys import KeyedValue, UserFunction
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.program import Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.trees import pytrees
from ...effects.trees.structure import describe
from ...effects.types.array_type import ArrayType, OfArrayType, array_type
from ...effects.types.dtypes import float0, is_floating, is_inexact
from ..analysis.dependence import dependence, scattered
from ..analysis.simplify import dead_code_elimination
from ..core.record import record
from ..core.rule_results import checked, pair_of
from ..core.static_arguments import merge_arguments
from ..differentiation.deferred_rules import DeferredRule, describe_function, full
from ..differentiation.jvp import push_forward
from ..differentiation.jvp_rules import DerivativeRule, with_rule
from ..differentiation.transpose import pull_back
from ..transformations.derivatives import tangent_type, zero_tangent
from .custom_call import RuleResults, substitution

_FORWARD = ProgramCache("forward programs of linear maps")
"""Forward mode of a ``custom_vjp``, from its backward rule, by linear map, types and settings."""


class SymbolicZero(OfArrayType):
    """A tangent or cotangent known to be zero, of the type ``aval``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ArrayType):
        self.aval = aval

    def instantiate(self) -> Any:
        """An array of zeros of the type ``aval``."""
        return zero_tangent(self.aval)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicZero) and self.aval == other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal:
    """An argument leaf of a forward rule with ``symbolic_zeros``: its value, and whether it is differentiated."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree with each ``CustomVJPPrimal`` replaced by its value."""
    is_primal = lambda x: isinstance(x, CustomVJPPrimal)
    return pytrees.tree_map(lambda x: x.value if is_primal(x) else x, tree, is_leaf=is_primal)


def shown_zero(t: ArrayType, symbolic: bool) -> Any:
    """The zero tangent of a value of this type, as it is passed to rules: ``SymbolicZero`` or an array."""
    return SymbolicZero(tangent_type(t) or array_type(t.shape, float0)) if symbolic else zero_tangent(t)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of values: arrays, or ``SymbolicZero``; a rule may return either."""
    return pytrees.map(lambda x: shown_zero(as_array(x).type, symbolic_zeros), val)


def in_format(ct: Any, t: ArrayType) -> Any:
    """The cotangent ``ct`` in the floating-point dtype of ``t``, if it has another one, as in mixed precision."""
    dtype = getattr(ct, "dtype", t.dtype)
    return convert(ct, t.dtype) if dtype != t.dtype and is_floating(dtype) and is_floating(t.dtype) else ct


class UserRule(DerivativeRule):
    """The forward-mode rule of a ``custom_jvp`` or ``custom_vjp``.

    Operands: ``first`` values that the body alone captured, those that the rule captured, the leaves of the arguments.
    """

    function: str  # its name
    statics: tuple[UserFunction, ...]
    tree: Any  # of the arguments that are not static
    boxes: tuple[KeyedValue, ...]  # placeholders of the values that the rule captured
    first: int
    expected: Any  # treedef and types of the function's results; None where unknown

    def states(self, count: int) -> list[int]:
        return [*range(self.first, self.first + len(self.boxes))]

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        last = self.first + len(self.boxes)
        results = self.apply(operands[self.first : last], operands[last:], tangents[last:])
        return results.outs, results.tangents

    @abstractmethod
    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> RuleResults:
        """Call the user's function with these captured values, argument leaves and tangents (None: zero)."""

    def results(self, returned: Any) -> tuple[list[Any], Any]:
        """The leaves and treedef of the results that the rule returned.

        Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: they differ from those of the function.
        """
        leaves, tree = pytrees.flatten(returned)
        if self.expected is None:
            return [as_array(y) for y in leaves], tree
        structure, types = self.expected
        if tree != structure:
            raise TreeMismatch(
                f"{self.shown}: the rule must return results of the structure of {self.function}'s, {structure}, "
                f"got {tree}."
            )
        return [checked(self.shown, "results", y, t) for y, t in zip(leaves, types)], tree


class UserJvp(UserRule):
    """The rule of a ``custom_jvp``, ``(primals, tangents) -> (results, tangents)``."""

    rule: UserFunction
    symbolic: bool  # whether zeros are passed as SymbolicZero

    @property
    def defined_by(self) -> Any:
        return self.rule.value

    @property
    def shown(self) -> str:
        return f"custom_jvp of {self.function}, rule {describe_function(self.rule.value)}"

    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> RuleResults:
        values = substitution(self.boxes, captured)
        f = replaced(self.rule.value, values)
        statics = [replaced(static.value, values) for static in self.statics]
        dense = [shown_zero(x.type, self.symbolic) if dx is None else dx for x, dx in zip(xs, dxs)]
        returned = f(*statics, pytrees.unflatten(self.tree, xs), pytrees.unflatten(self.tree, dense))
        pair = pair_of(self.shown, "results, tangents", returned)
        outs, tree = self.results(pair[0])
        tangents, other = pytrees.flatten(pair[1])
        if other != tree:
            raise TreeMismatch(
                f"{self.shown}: the rule must return tangents of the structure of its results, {tree}, got {other}."
            )
        return RuleResults(outs, [self.tangent(y.type, dy) for y, dy in zip(outs, tangents)], tree)

    def tangent(self, t: ArrayType, dy: Any) -> Any:
        """The tangent ``dy`` that the rule returned for a result of type ``t``, checked; None for a zero."""
        if isinstance(dy, SymbolicZero) or getattr(dy, "dtype", None) == float0:
            if dy.shape != t.shape:
                raise ShapeMismatch(f"{self.shown}: the rule must return tangents of shape {t.shape}, got {dy.shape}.")
            return None
        if not is_inexact(t.dtype):
            raise DTypeMismatch(
                f"{self.shown}: the tangent of a result {t} has dtype float0, got {getattr(dy, 'dtype', type(dy))}.",
                hint="np.zeros(y.shape, handlax.dtypes.float0).",
            )
        return checked(self.shown, "tangents", dy, t)


class UserVjp(UserRule):
    """The rules of a ``custom_vjp``: ``fwd(*args) -> (results, residuals)``, ``bwd(residuals, cts) -> cts``.

    Its tangents are those of ``Adjoint``, the linear map whose adjoint is ``bwd``.
    """

    fwd: UserFunction
    bwd: UserFunction
    symbolic: bool  # whether arguments are passed as CustomVJPPrimal, and zeros as SymbolicZero
    static_positions: tuple[int, ...]  # of the static arguments among all arguments
    logs: bool  # whether the backward rule returns logs too

    def __hash__(self) -> int:
        return hash(self.fwd)  # equal to itself alone

    @property
    def defined_by(self) -> Any:
        return self.fwd.value

    @property
    def shown(self) -> str:
        return f"custom_vjp of {self.function}, forward rule {describe_function(self.fwd.value)}"

    def pulled_by(self, backward: Any) -> bool:
        if not isinstance(backward, UserBackward) or backward.rule.function != self.function:
            return False
        return bool(backward.rule.bwd.value is self.bwd.value or self.boxes)

    def apply(self, captured: Sequence[Any], xs: Sequence[Any], dxs: Sequence[Any]) -> RuleResults:
        values = substitution(self.boxes, captured)
        wrt = tuple([dx is not None for dx in dxs])
        args = [CustomVJPPrimal(x, yes) for x, yes in zip(xs, wrt)] if self.symbolic else xs
        statics = [replaced(static.value, values) for static in self.statics]
        arguments = merge_arguments(zip(self.static_positions, statics), pytrees.unflatten(self.tree, args))
        pair = pair_of(self.shown, "results, residuals", replaced(self.fwd.value, values)(*arguments))
        outs, tree = self.results(pair[0])
        residuals, residual_tree = pytrees.flatten(pair[1])
        numbers = tuple([KeyedValue(x) if type(x) in PYTHON_NUMBERS else None for x in residuals])
        residuals = [residual(self.shown, x) for x, number in zip(residuals, numbers) if number is None]
        types = tuple([y.type for y in outs])
        inexact = tuple([t for t in types if is_inexact(t.dtype)])
        if not inexact or not any(wrt):
            return RuleResults(outs, [None] * len(outs), tree)
        backward = UserBackward(self, tree, types, residual_tree, numbers, tuple([x.type for x in xs]), wrt)
        fixed = tuple([x.type for x in (*captured, *residuals)])
        op = Adjoint(backward, None, fixed, inexact)
        tangents = perform(op, *captured, *residuals, *[dx for dx in dxs if dx is not None])
        return RuleResults(outs, scattered(tangents, [is_inexact(t.dtype) for t in types]), tree)


def residual(shown: str, x: Any) -> Any:
    """A leaf of the residuals as an array. Raises: TreeMismatch: the leaf is no array or number."""
    try:
        return as_array(x)
    except TypeError as error:
        raise TreeMismatch(
            f"{shown}: residuals must be trees of arrays, got {type(x).__name__}.",
            hint="let the rule capture other values, or name them in nondiff_argnums.",
        ) from error


class UserBackward(DeferredRule):
    """The backward rule of one call of a ``custom_vjp``.

    A linear map from residuals and cotangents of the results to cotangents of the arguments that are differentiated.
    """

    rule: UserVjp
    out_tree: Any
    out_types: tuple[ArrayType, ...]
    residual_tree: Any
    numbers: tuple[KeyedValue | None, ...]  # for each leaf of the residuals the Python number that it is, if any
    types: tuple[ArrayType, ...]  # of the argument leaves
    wrt: tuple[bool, ...]  # which argument leaves are differentiated

    @property
    def shown(self) -> str:
        return f"custom_vjp of {self.rule.function}, backward rule {describe_function(self.rule.bwd.value)}"

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rule, count = self.rule, len(self.rule.boxes)
        values = substitution(rule.boxes, residuals)
        sparse = scattered(cts, [is_inexact(t.dtype) for t in self.out_types])
        out_cts = [shown_zero(t, rule.symbolic) if ct is None else ct for ct, t in zip(sparse, self.out_types)]
        statics = [replaced(static.value, values) for static in rule.statics]
        arrays = iter(residuals[count:])
        leaves = [next(arrays) if number is None else number.value for number in self.numbers]
        stored = pytrees.unflatten(self.residual_tree, leaves)
        in_cts = replaced(rule.bwd.value, values)(*statics, stored, pytrees.unflatten(self.out_tree, out_cts))
        in_cts = self.without_logs(in_cts) if rule.logs else in_cts
        return [ct for ct, yes in zip(self.cotangents(in_cts), self.wrt) if yes]

    def without_logs(self, returned: Any) -> Any:
        """Log what a rule returned beside the cotangents, a dictionary or None; the cotangents."""
        if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], (dict, type(None))):
            raise TreeMismatch(
                f"{self.shown}: the rule must return a pair, the cotangents and a dictionary of logs or None, "
                f"got {describe(returned)}."
            )
        for name, value in (returned[1] or {}).items():
            LaterLayers.log(value, name)
        return returned[0]

    def cotangents(self, returned: Any) -> list[Any]:
        """The cotangent of each argument leaf, None for zero, from what the rule returned: a leaf may stand for a tree.

        Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: it does not fit the arguments.
        """
        example = pytrees.unflatten(self.rule.tree, self.types)
        if not isinstance(returned, (tuple, list)) or len(returned) != len(example):
            got = f"{len(returned)} of them" if isinstance(returned, (tuple, list)) else type(returned).__name__
            raise TreeMismatch(
                f"{self.shown}: the rule must return a tuple of one cotangent for each argument, {len(example)}, "
                f"got {got}."
            )
        leaves: list[Any] = []
        for i, (arg, ct) in enumerate(zip(example, returned)):
            try:
                leaves += pytrees.broadcast_prefix(ct, arg, lambda x: x is None)
            except TreeMismatch:
                raise TreeMismatch(
                    f"{self.shown}: the rule must return a cotangent of the structure of argument {i}, "
                    f"{pytrees.structure(arg)}, got {pytrees.structure(ct)}.",
                    hint="None stands for zero.",
                ) from None
        return [self.cotangent(t, ct) for t, ct in zip(self.types, leaves)]

    def cotangent(self, t: ArrayType, ct: Any) -> Any:
        """The cotangent of an argument leaf of type ``t``, checked; None for a zero, and for a dtype without one."""
        if ct is None or isinstance(ct, SymbolicZero) or not is_inexact(t.dtype):
            return None
        if getattr(ct, "dtype", None) == float0:
            return None
        return as_array(ct) if config.current().disable_bwd_checks else checked(
            self.shown, "cotangents", in_format(ct, t), t
        )


# Rules of the operations


def derivative(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The user's rule; where only values that the function alone captured have tangents, the jvp of the body."""
    states = {*op.rule.states(len(tangents))}
    if any([dx is not None and (i >= op.shared or i in states) for i, dx in enumerate(tangents)]):
        return op.rule.run(primals, tangents)
    values, dys = push_forward(op.bodies[0], primals, tangents)
    return with_rule(op, primals, values), dys


JVP.rule(CustomJvp)(derivative)
JVP.rule(CustomVjp)(derivative)


def forward_program(op: Any, types: Sequence[ArrayType]) -> Program:
    """The linear map of an ``Adjoint`` as a program from residuals and values, cached.

    Raises: NotDifferentiable: only its adjoint has a rule, and that is not linear.
    """
    key = (op, tuple(types), current().scope, config.current())
    return _FORWARD.get(key, lambda: _forward_program(op, types))


def _forward_program(op: Any, types: Sequence[ArrayType]) -> Program:
    count = len(op.residuals)
    with inside(under(BASE, current().scope)):
        if op.forward is not None:
            return record(lambda *xs: full(op.forward(xs[:count], xs[count:]), op.types), types, "linear")
        backward = record(
            lambda *xs: full(op.backward(xs[:count], xs[count:]), types[count:]), [*types[:count], *op.types], "bwd"
        )
        linear = [i >= count for i in range(len(backward.in_types))]
        try:
            _check_no_constants(backward, linear)
            forward = lambda *xs: full(pull_back(backward, linear, xs[:count], xs[count:]), op.types)
            return record(forward, types, "linear")
        except NotDifferentiable as error:
            raise NotDifferentiable(
                f"{op.backward.shown}: the forward derivative is the adjoint of this rule, which is not linear in the "
                f"cotangent. {error.what}",
                hint="define the derivative by custom_jvp.",
            ) from error


def _check_no_constants(backward: Program, linear: Sequence[bool]) -> None:
    """Raises NotDifferentiable: a cotangent depends on no linear input of the backward rule, and is not zero."""
    constant = [not yes for yes in dependence(backward).results(linear)]
    program, used = dead_code_elimination(backward, constant)
    if program.outs and (any(used) or any([np.any(y.value) for y in interpret(program, ())])):
        raise NotDifferentiable("A cotangent that it gives does not depend on it.")


@EVALUATE.rule(Adjoint)
def _(op, *values):
    count = len(op.residuals)  # their types are declared: NumPy's dtype is not that of a key
    types = [*op.residuals, *[array_type(x.shape, x.dtype) for x in values[count:]]]
    return evaluate_body(forward_program(op, types), values)


@LOWER.rule(Adjoint)
def _(op, emit, *values):
    return emit.program(forward_program(op, [v.type for v in values]), values)


@JVP.rule(Adjoint)
def _(op, primals, tangents):
    count = len(op.residuals)
    if any([dx is not None for dx in tangents[:count]]):
        return push_forward(forward_program(op, [x.type for x in primals]), primals, tangents)
    dxs = full(tangents[count:], [x.type for x in primals[count:]])
    return perform(op, *primals), perform(op, *primals[:count], *dxs)


@TRANSPOSE.rule(Adjoint)
def _(op, cts, *operands, linear):
    count = len(op.residuals)
    residuals, values = operands[:count], operands[count:]
    if any(linear[:count]):
        raise NotDifferentiable(f"{op.backward.shown}: the map is linear in its values, not in its residuals.")
    if op.forward is None:
        in_cts = op.backward(residuals, cts)
    else:
        types = tuple([x if isinstance(x, ArrayType) else x.type for x in values])
        in_cts = perform(Adjoint(op.forward, op.backward, op.residuals, types), *residuals, *full(cts, op.types))
    return [*[None] * count, *[ct if yes else None for ct, yes in zip(in_cts, linear[count:])]]

