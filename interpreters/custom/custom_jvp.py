"""custom_jvp: functions with a forward derivative rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...effects.base.errors import BadCall, need_function
from ...effects.control.custom_rules import CustomJvp
from ...effects.core.columns import add_tangents, zeros_like
from ...effects.core.signatures import F, P, R
from ...effects.trees import pytrees
from .custom_call import CustomFunction
from .derivative_rules import UserJvp


class custom_jvp(CustomFunction[P, R]):
    """A function with a rule for its forward derivative, from which reverse mode follows.

        f.defjvp(rule);  jvp(f, xs, dxs) == rule(xs, dxs)

    The rule is evaluated where ``f`` is differentiated, under the handlers in force there, and must be linear in the
    tangents. A tangent of a value that the function or the rule captures is propagated through their operations.

    Args:
        nondiff_argnums, nondiff_argnames: arguments that are passed on as Python values, first to the rule.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: a result or tangent of the rule has another structure,
    shape or dtype than the function's result.

    >>> from handlax import grad, numpy as hnp
    >>> @custom_jvp
    ... def log1pexp(x): return hnp.log(1.0 + hnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + hnp.exp(x))) * dx
    >>> grad(log1pexp)(100.0)
    Array(1., dtype=float32, weak_type=True)
    """

    operation = CustomJvp
    rule_names = ("jvp",)
    definition = "defjvp or defjvps"
    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Set the rule, ``jvp(*nondiff, primals, tangents) -> (results, tangents)``, and return it.

        Args:
            symbolic_zeros: tangents known to be zero come as ``SymbolicZero`` instead of arrays.
        """
        need_function("defjvp", jvp)
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, ``jvp(tangent, result, *primals) -> tangent``; None is a zero derivative."""
        if self.nondiff_argnums:
            raise BadCall("defjvps: rules by argument need a function without nondiff_argnums.", hint="use defjvp.")

        call: Callable[..., Any] = self

        def jvp(primals: Any, tangents: Any) -> Any:
            result = call(*primals)
            total = pytrees.tree_map(lambda _: None, result)
            terms = [rule(dx, result, *primals) for rule, dx in zip(jvps, tangents) if rule is not None]
            if not terms:
                return result, pytrees.tree_map(zeros_like, result)
            total = functools.reduce(lambda a, b: pytrees.tree_map(add_tangents, a, b), terms)
            return result, total

        self.defjvp(jvp)

    def _rule(self, *parts: Any) -> UserJvp:
        return UserJvp(*(*parts, self.symbolic_zeros))
