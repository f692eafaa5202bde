"""``handlax.extend.ad``: the derivatives of primitives, as JAX has them in ``jax.interpreters.ad``.

    primitive_jvps[p] = rule            (y, dy) = rule(primals, tangents, **params)
    primitive_transposes[p] = rule      cotangents = rule(ct, *operands, **params)

A tangent or cotangent that is zero is a ``Zero``, which is never materialised; an operand in which the operation is
transposed is an ``UndefinedPrimal``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from ..effects.base.frozen_values import Value
from ..effects.core import columns
from ..effects.core.arrays import as_array, type_of
from ..effects.core.columns import Rule
from ..effects.core.operation import result_type
from ..effects.programs.primitives import Primitive
from ..effects.trees.registration import register_pytree_node
from ..effects.types.array_type import ArrayType
from ..effects.types.dtypes import float0
from ..interpreters.core.rule_results import checked, pair_of
from ..interpreters.differentiation.jvp import JvpBox as JVPTracer
from .checked_results import checked_results, list_of, types_of_results
from .rule_registries import RuleRegistry

__all__ = [
    "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_tangents", "defbilinear", "defjvp", "defjvp2",
    "defjvp_zero", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]


class Zero(Value):
    """The tangent or cotangent zero of a type."""

    aval: ArrayType

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(type_of(x).tangent())

    def instantiate(self) -> Any:
        return zeros_like_aval(self.aval)


class UndefinedPrimal(Value):
    """An operand, known by its type alone, in which an operation is transposed."""

    aval: ArrayType


# both are trees without leaves
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


def is_undefined_primal(x: Any) -> bool:
    """Whether this operand of a transpose rule is one of those in which the operation is linear."""
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: ArrayType) -> Any:
    """An array of zeros of this type."""
    return columns.zeros_like(aval)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array: zeros for a ``Zero``, others as they are."""
    return tangent.instantiate() if type(tangent) is Zero else tangent


def add_jaxvals(x: Any, y: Any) -> Any:
    """``x + y`` of arrays of one type."""
    return columns.add_tangents(as_array(x), as_array(y))


def add_tangents(x: Any, y: Any) -> Any:
    """``x + y``, where each may be a ``Zero``."""
    return y if type(x) is Zero else x if type(y) is Zero else add_jaxvals(x, y)


def _symbolic(part: Any) -> Any:
    """A tangent or cotangent as cells have it: None for zero."""
    if part is None or part is Zero or type(part) is Zero or getattr(part, "dtype", None) == float0:
        return None
    return as_array(part)


def _part(shown: str, what: str, part: Any, primal: ArrayType) -> Any:
    """``_symbolic`` of what a rule gives for a primal of this type. Raises: as ``checked``."""
    part = _symbolic(part)
    return None if part is None else checked(shown, what, part, primal.tangent())


def _derivative(rule: Rule) -> Rule:
    """The cell of ``jvp`` from a rule in JAX's form."""

    def jvp(op: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        zeros = [Zero.from_primal_value(x) if dx is None else dx for x, dx in zip(primals, tangents)]
        shown = f"{op.name}, primitive_jvps"
        y, dy = pair_of(shown, "results, tangents", rule(tuple(primals), tuple(zeros), **op.as_params()))
        types = types_of_results(op, [x.type for x in primals])
        dys = list_of(shown, "tangents", dy, len(types)) if op.multiple_results else [dy]
        tangents = [_part(shown, "a tangent", dy, t) for dy, t in zip(dys, types)]
        return checked_results(op, "primitive_jvps", y, types), op.from_results(tangents)

    return jvp


def _rule_of_derivative(primitive: Primitive) -> Rule:
    """The rule in JAX's form of a primitive with a cell of ``jvp``."""

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        op = primitive.operation.from_params(params)
        operands = tuple(map(as_array, primals)), tuple(map(_symbolic, tangents))
        y, dy = columns.JVP.find(type(op))(op, *operands)
        ys = op.as_results(y)
        dys = [Zero.from_primal_value(y) if dy is None else dy for y, dy in zip(ys, op.as_results(dy))]
        return (list(ys), dys) if op.multiple_results else (y, dys[0])

    return rule


def _adjoint(rule: Rule) -> Rule:
    """The cell of ``transpose`` from a rule in JAX's form."""

    def transpose(op: Any, ct: Any, *operands: Any, linear: Sequence[bool]) -> Any:
        if op.multiple_results:
            types = result_type(op, tuple([x if yes else x.type for x, yes in zip(operands, linear)]))
            ct = [Zero(t.tangent()) if part is None else part for part, t in zip(ct, types)]
        args = [UndefinedPrimal(x) if yes else x for x, yes in zip(operands, linear)]
        shown = f"{op.name}, primitive_transposes"
        cts = list_of(shown, "cotangents", rule(ct, *args, **op.as_params()), len(args))
        parts = zip(cts, operands, linear)
        return [_part(shown, "a cotangent", part, x) if yes else None for part, x, yes in parts]

    return transpose


def _rule_of_adjoint(primitive: Primitive) -> Rule:
    """The rule in JAX's form of a primitive with a cell of ``transpose``."""

    def rule(ct: Any, *args: Any, **params: Any) -> Any:
        op = primitive.operation.from_params(params)
        linear = tuple(map(is_undefined_primal, args))
        operands = [x.aval if yes else as_array(x) for x, yes in zip(args, linear)]
        cts = tuple(map(_symbolic, ct)) if op.multiple_results else _symbolic(ct)
        if cts is None:
            return [Zero(x.aval) if yes else None for x, yes in zip(args, linear)]
        return list(columns.TRANSPOSE.find(type(op))(op, cts, operands, linear))

    return rule


primitive_jvps = RuleRegistry(columns.JVP, _derivative, _rule_of_derivative)
"""The rule of each primitive in the column ``jvp``: ``rule(primals, tangents, **params)`` gives both results."""
primitive_transposes = RuleRegistry(columns.TRANSPOSE, _adjoint, _rule_of_adjoint)
"""The rule of each primitive in the column ``transpose``: ``rule(cotangent, *operands, **params)``."""


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The rule of a primitive in the column ``transpose``.

    Raises: KeyError: it has none.
    """
    return primitive_transposes[primitive]


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Declare a primitive linear in all operands together: ``cotangents = transpose_rule(ct, **params)``."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """Declare a primitive linear in all operands together: ``cotangents = transpose_rule(ct, *operands, **params)``."""
    primitive_jvps[primitive] = partial(_linear, primitive)
    primitive_transposes[primitive] = transpose_rule


def _linear(primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    y = primitive.bind(*primals, **params)
    return y, primitive.bind(*map(instantiate_zeros, tangents), **params)


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Give the term of each operand in the tangent: ``rules[i](dx, *primals, **params)``; None: it has none."""
    terms = [None if rule is None else partial(_without_result, rule) for rule in rules]
    defjvp2(primitive, *terms)


def _without_result(rule: Rule, dx: Any, y: Any, *primals: Any, **params: Any) -> Any:
    return rule(dx, *primals, **params)


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """Give the term of each operand in the tangent: ``rules[i](dx, y, *primals, **params)``; None: it has none."""
    primitive_jvps[primitive] = partial(_sum_of_terms, primitive, rules)


def _sum_of_terms(
    primitive: Primitive, rules: Sequence[Rule | None], primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> Any:
    y = primitive.bind(*primals, **params)
    moving = [(rule, dx) for rule, dx in zip(rules, tangents) if rule is not None and type(dx) is not Zero]
    return y, reduce(add_tangents, [rule(dx, y, *primals, **params) for rule, dx in moving], Zero.from_primal_value(y))


def defjvp_zero(primitive: Primitive) -> None:
    """Declare a primitive constant almost everywhere: its derivative is zero."""
    primitive_jvps[primitive] = partial(_constant, primitive)


def _constant(primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    y = primitive.bind(*primals, **params)
    return y, [*map(Zero.from_primal_value, y)] if primitive.multiple_results else Zero.from_primal_value(y)


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Declare a primitive linear in each of its two operands, with the cotangent of each: ``rule(ct, x, y, **params)``,
    where that operand is an ``UndefinedPrimal``.
    """
    defjvp(
        primitive,
        lambda dx, x, y, **params: primitive.bind(dx, y, **params),
        lambda dy, x, y, **params: primitive.bind(x, dy, **params),
    )
    primitive_transposes[primitive] = partial(_of_one_operand, lhs_rule, rhs_rule)


def _of_one_operand(lhs_rule: Rule, rhs_rule: Rule, ct: Any, x: Any, y: Any, **params: Any) -> Any:
    return (lhs_rule(ct, x, y, **params), None) if is_undefined_primal(x) else (None, rhs_rule(ct, x, y, **params))
