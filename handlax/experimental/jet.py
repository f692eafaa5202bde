"""``handlax.experimental.jet``: Taylor mode, derivatives of high order along a curve in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..effects.base.errors import BadCall, ShapeMismatch, TreeMismatch, need_function
from ..effects.base.stack import STACK, installed
from ..effects.base.tracebacks import boundary
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
    """The coefficient of t^k in the series of the argument ``x``: ``term``, over k! where ``scaled``.

    Raises: ShapeMismatch: ``term`` has not the shape of ``x``.
    """
    term = as_array(term)
    if term.type.shape != x.type.shape:
        raise ShapeMismatch(f"jet: the terms of an argument must have its shape, got {term.type} for {x.type}.")
    term = convert(term, x.type.dtype, x.type.weak)
    return mul(term, like(term, 1 / math.factorial(k))) if scaled and k > 1 else term


@boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], *, factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """The value of ``fun`` on a curve, and its derivatives along the curve up to the order given for the curve.

        y, terms = jet(f, (x(0),), ([x'(0), x''(0), ...],)):   terms[k - 1] == d^k f(x(t)) / dt^k  at t = 0

    The cost grows at most with the square or the cube of the order, depending on the operation; that of nested ``jvp``
    doubles with each order. ``fun`` may contain loops, branches, ``jit`` and functions with custom derivatives.
    Effects: forwards everything, each once.

    Args:
        series: the derivatives of the curve: the tree of ``primals`` with a list of arrays in place of each array.
        factorial_scaled: whether ``series`` and ``terms`` hold derivatives; if false, they hold Taylor coefficients,
            which are derivatives over factorials.

    Raises: BadCall: the lists differ in length. TreeMismatch: ``series`` has another structure than ``primals``.
    ShapeMismatch: a term has another shape than its argument.

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
