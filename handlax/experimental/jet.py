"""``handlax.experimental.jet``: Taylor mode, derivatives of high order along a curve in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..effects.base.errors import BadCall, ShapeMismatch, TreeMismatch, need_function
from ..effects.base.stack import STACK, installed
from ..effects.core.arrays import Array, as_array
from ..effects.operations.elementwise.arithmetic import add, like, mul
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp
from ..effects.operations.special.special_functions import lgamma
from ..effects.trees import pytrees
from ..effects.types.dtypes import result_type
from ..interpreters.differentiation.taylor import Jet

__all__ = ["fact", "jet"]


def fact(n: Any) -> Array:
    """The factorial of a number, as a float: ``exp(lgamma(n + 1))``.

    >>> round(float(fact(4)), 4)
    24.0
    """
    n = as_array(n)
    n = convert(n, result_type(n, float))
    return exp(lgamma(add(n, like(n, 1.0))))


def _term(x: Any, term: Any, k: int, scaled: bool) -> Any:
    """The coefficient of t^k of an argument. Raises: ShapeMismatch: it is not of the argument's shape."""
    term = as_array(term)
    if term.type.shape != x.type.shape:
        raise ShapeMismatch(f"jet: the terms of an argument must have its shape, got {term.type} for {x.type}.")
    term = convert(term, x.type.dtype, x.type.weak)
    return mul(term, like(term, 1 / math.factorial(k))) if scaled and k > 1 else term


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], *, factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """The value and the derivatives of ``fun`` along a curve, up to the order to which those of the curve are given.

        y, terms = jet(f, (x(0),), ([x'(0), x''(0), ...],)):   terms[k - 1] == d^k f(x(t)) / dt^k  at t = 0

    It costs no more than the square of the order, or its cube, where nested ``jvp`` doubles with each order. Loops,
    branches, ``jit`` and functions with rules of their own are crossed.
    Effects: forwards everything, each once.

    Args:
        series: for each argument, as a tree of lists in place of its arrays, the derivatives of the curve.
        factorial_scaled: derivatives; if not, the coefficients of the series, derivatives over factorials.

    Raises: BadCall, TreeMismatch, ShapeMismatch: the lists are not of one length, or their terms not as the arguments.

    Source: Griewank & Walther, Evaluating Derivatives, chapter 13.

    >>> from handlax import numpy as hnp
    >>> y, terms = jet(hnp.sin, (0.0,), ([1.0, 0.0, 0.0],))
    >>> [float(term) for term in terms]
    [1.0, 0.0, -1.0]
    """
    need_function("jet", fun)
    leaves, tree = pytrees.flatten(tuple(primals))
    xs = [as_array(x) for x in leaves]
    try:
        lists = tree.flatten_up_to(tuple(series))
    except (TypeError, ValueError) as error:
        raise TreeMismatch(
            f"jet: series must have the structure of primals, {tree}, with a list for each array, "
            f"got {pytrees.structure(tuple(series))}."
        ) from error
    counts = {len(terms) for terms in lists}
    if len(counts) > 1:
        raise BadCall(f"jet: all arguments must have as many terms, got {sorted(counts)}.")
    run = Jet(STACK.get(), "jet")
    boxes = []
    for x, terms in zip(xs, lists):
        rest = [_term(x, term, k, factorial_scaled) for k, term in enumerate(terms, 1)]
        boxes.append(run.boxed((x, *rest)))
    with installed(run):
        results = fun(*pytrees.unflatten(tree, boxes))
    ys, out_tree = pytrees.flatten(results)
    count = 1 + max(counts, default=0)
    outs = [run.force(as_array(y), count) for y in ys]
    scale = [math.factorial(k) if factorial_scaled else 1 for k in range(count)]
    terms = [[mul(y, like(y, f)) if f > 1 else y for y, f in zip(out[1:], scale[1:])] for out in outs]
    return pytrees.unflatten(out_tree, [out[0] for out in outs]), pytrees.unflatten(out_tree, terms)
