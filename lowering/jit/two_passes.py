"""The forward and the backward pass of a function as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import need_function
from ...interpreters.transformations.derivatives import vjp
from ...interpreters.transformations.differentiated_arguments import argnums_partial
from .jit import jit


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, each compiled once.

        fwd, bwd = fwd_and_bwd(f, argnums);  y, residuals = fwd(*args);  bwd(residuals, ct) = f'(x)^T ct

    Args:
        argnums: which positional arguments; an integer gives one cotangent, a tuple a tuple of them.
        has_aux: the function gives ``(y, aux)``, and ``fwd`` then ``(y, residuals, aux)``.
        jitted: compile both.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> y, residuals = fwd(2.0, 3.0)
    >>> [float(ct) for ct in bwd(residuals, 1.0)]
    [3.0, 2.0]
    """
    need_function("fwd_and_bwd", fun)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        chosen, of_chosen = argnums_partial("fwd_and_bwd", fun, argnums, args, kwargs)
        return vjp(of_chosen, *chosen, has_aux=has_aux)

    def bwd(residuals: Any, ct: Any) -> Any:
        cts = residuals(ct)
        return cts[0] if isinstance(argnums, int) else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
