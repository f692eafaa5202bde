"""The forward and the reverse pass of a function as one program, for drawings and memory measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import need_function
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.core.arrays import as_array
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ..transformations.derivatives import abstract, tangent_type, vjp
from ..transformations.make_program import trace
from .draw import Drawing


def inexact(fun: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
    """A function from the leaves of the arguments to the results of inexact dtype, and the types of the leaves."""
    leaves, tree = pytrees.flatten((args, kwargs))

    def flat(*xs: Any) -> Sequence[Any]:
        inner_args, inner_kwargs = pytrees.unflatten(tree, xs)
        ys = [as_array(y) for y in pytrees.leaves(fun(*inner_args, **inner_kwargs))]
        return [y for y in ys if dtypes.is_inexact(y.dtype)]

    return flat, [abstract(x) for x in leaves]


def both_passes(fun: Callable[..., Any], args: Any, kwargs: Any) -> Program:
    """The program from the arguments and the results' cotangents to the results and the arguments' cotangents."""
    flat, types = inexact(fun, args, kwargs)
    results = trace(flat, tuple(types), {}, label="draw").program.out_types
    count = len(types)

    def passes(*values: Any) -> Sequence[Any]:
        ys, pull = vjp(flat, *values[:count])
        cts = [ct for ct, t in zip(pull(list(values[count:])), types) if tangent_type(t) is not None]
        return [*ys, *cts]

    return trace(passes, (*types, *results), {}, label="draw").program.with_name(name_of(fun))


def draw(fun: Callable[..., Any]) -> Callable[..., Drawing]:
    """``draw(f)(*args)`` is the drawing of a function's forward and reverse pass, with the live memory at each
    equation.

    Nothing is computed. Residuals are the long lines: values of the forward pass that the reverse pass uses.

    Raises: NotDifferentiable: the function performs something that has no derivative.

    >>> from handlax import numpy as hnp
    >>> draw(lambda x: hnp.sum(hnp.sin(hnp.sin(x))))(hnp.ones(100)).program.out_types
    (f32[], f32[100])
    """
    need_function("draw", fun)

    @wraps(fun)
    @unnamed_boundary
    def drawn(*args: Any, **kwargs: Any) -> Drawing:
        return Drawing(both_passes(fun, args, kwargs))

    return drawn
