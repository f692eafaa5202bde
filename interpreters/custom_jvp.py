"""custom_jvp: a function whose forward derivative the user writes."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..effects import trees
from ..effects.columns import add_tangents, zeros_like
from ..effects.custom import CustomJvp
from ..effects.errors import BadCall, need_function
from .calling import Arguments, Call, perform_call
from .custom_rules import UserJvp, kept


class custom_jvp:
    """A function with a rule for its forward derivative, from which reverse mode follows.

        f.defjvp(rule);  jvp(f, xs, dxs) == rule(xs, dxs)

    The rule is performed wherever ``f`` is differentiated, under every handler that surrounds it there, and must be
    linear in the tangents. Values that function and rule capture are differentiated as what they compute with.

    Args:
        nondiff_argnums, nondiff_argnames: arguments that are Python values; the rule takes them first.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: what the rule gives does not fit; the message names it.

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

    captures = ("fun", "jvp", "__wrapped__")
    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        need_function("custom_jvp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._arguments = Arguments("custom_jvp", fun, nondiff_argnums, nondiff_argnames)
        self.nondiff_argnums = self._arguments.static

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule, ``jvp(*nondiff, primals, tangents) -> (results, tangents)``; gives it back.

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
            raise BadCall("defjvps: it says nothing of nondiff_argnums, which are given.", hint="use defjvp.")

        def jvp(primals: Any, tangents: Any) -> Any:
            result = self(*primals)
            total = trees.tree_map(lambda _: None, result)
            parts = [rule(dx, result, *primals) for rule, dx in zip(jvps, tangents) if rule is not None]
            if not parts:
                return result, trees.tree_map(zeros_like, result)
            total = functools.reduce(lambda a, b: trees.tree_map(add_tangents, a, b), parts)
            return result, total

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise BadCall(
                f"custom_jvp: {self._arguments.name} has no rule yet.", hint="define one with defjvp or defjvps."
            )
        arguments, fun, rule = self._arguments, self.fun, self.jvp
        statics, xs, tree = arguments.split(arguments.positional(args, kwargs))
        given = [static.value for static in statics]

        def function(*values: Any) -> Any:
            return fun(*arguments.joined(given, trees.unflatten(tree, values)))

        def late(holes: Any, first: int, expected: Any, which: Any) -> UserJvp:
            fixed = tuple([kept(value, which) for value in given])
            symbolic = self.symbolic_zeros
            return UserJvp(arguments.name, fixed, tree, symbolic, holes, first, expected, kept(rule, which))

        return perform_call(Call(CustomJvp, arguments.name, function, late, (fun, rule, *given)), xs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)
