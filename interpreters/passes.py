"""Passes: the forward and the reverse pass of a function as one program, which can be drawn and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects import dtypes, trees
from ..effects.arrays import lift
from ..effects.errors import need_function
from ..effects.programs import Program
from ..effects.wrapping import wraps
from .derivatives import abstract, tangent_type, vjp
from .draw import Drawing
from .staging import make_program


def inexact(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """A function of the leaves of the arguments that gives those results that have a tangent; and the leaves' types."""
    leaves, tree = trees.flatten((args, kwargs))

    def flat(*xs: Any) -> Sequence[Any]:
        given, named = trees.unflatten(tree, xs)
        ys = [lift(y) for y in trees.leaves(fun(*given, **named))]
        return [y for y in ys if dtypes.is_inexact(y.dtype)]

    return flat, [abstract(x) for x in leaves]


def both_passes(fun: Callable[..., Any], args: Any, kwargs: Any) -> Program:
    """From arguments and cotangents of the results to results and cotangents of the arguments."""
    flat, types = inexact(fun, args, kwargs)
    results = make_program(flat)(*types).out_types
    count = len(types)

    def passes(*values: Any) -> Sequence[Any]:
        ys, pull = vjp(flat, *values[:count])
        cts = [ct for ct, t in zip(pull(list(values[count:])), types) if tangent_type(t) is not None]
        return [*ys, *cts]

    return make_program(passes)(*types, *results).with_name(getattr(fun, "__name__", "passes"))


def draw(fun: Callable[..., Any]) -> Callable[..., Drawing]:
    """The picture of a function's forward and reverse pass: what is in memory at each operation, and what waits.

    ``draw(f)(*args)`` is a ``Drawing``; nothing is computed. What the forward pass keeps are the long lines.

    Raises: NotDifferentiable: the function performs something that has no derivative.

    >>> from handlax import numpy as hnp
    >>> draw(lambda x: hnp.sum(hnp.sin(hnp.sin(x))))(hnp.ones(100)).program.out_types
    (f32[], f32[100])
    """
    need_function("draw", fun)

    @wraps(fun)
    def drawn(*args: Any, **kwargs: Any) -> Drawing:
        return Drawing(both_passes(fun, args, kwargs))

    return drawn
