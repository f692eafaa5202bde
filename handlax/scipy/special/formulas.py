"""Elementwise functions given by formulas, compiled as a whole, with analytic derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...effects.base import config
from ...effects.base.errors import DTypeMismatch, NotDifferentiable
from ...effects.base.wrapping import renamed, wraps
from ...effects.types.dtypes import is_complex
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.custom.derivative_rules import SymbolicZero
from ...interpreters.transformations.derivatives import jvp
from ...lowering.jit.jit import jit
from ...numpy.arrays.argument_conversion import in_32_bits, inexact_together
from ...numpy.arrays.creation import ones_like
from ...numpy.arrays.shape_manipulation import broadcast_to

Slope = Callable[..., Any]


def free_promotion(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``f`` under ``numpy_dtype_promotion="standard"``, whatever the setting is, for constants in formulas.
    """

    @wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        if config.current().numpy_dtype_promotion == "standard":
            return f(*args, **kwargs)
        with config.numpy_dtype_promotion("standard"):
            return f(*args, **kwargs)

    return function


def floats(name: str, *xs: Any) -> list[Any]:
    """The operands as floats of one dtype, and of one shape or rank 0.

    Raises: DTypeMismatch: one is complex.
    """
    arrays = inexact_together(name, *xs)
    if is_complex(arrays[0].type.dtype):
        raise DTypeMismatch(f"{name}: the arguments must be real, got {arrays[0].type}.")
    return arrays


def analytic(*slopes: Slope | None, complex: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a formula of floats of one dtype as an elementwise function, with its partial derivatives.

        analytic(lambda y, x: slope)(formula)(x) == formula(x), whose derivative is slope(formula(x), x)

    Args:
        slopes: for each operand the partial derivative, ``slope(y, *xs)``; None: not differentiable by it.
        complex: whether the operands may be complex numbers.
    """

    def decorate(formula: Callable[..., Any]) -> Callable[..., Any]:
        name = formula.__name__.lstrip("_")
        inner = custom_jvp(jit(free_promotion(formula)))

        @free_promotion
        def rule(primals: Any, tangents: Any) -> Any:
            y, total = inner(*primals), 0.0
            for position, dx in enumerate(tangents):
                if not isinstance(dx, SymbolicZero):
                    total = total + _slope(name, position, slopes[position])(y, *primals) * dx
            return y, broadcast_to(total, y.shape)

        inner.defjvp(rule, symbolic_zeros=True)
        together = inexact_together if complex else floats
        parameters = inspect.signature(formula)

        def function(*args: Any, **kwargs: Any) -> Any:
            xs = parameters.bind(*args, **kwargs).args if kwargs else args
            return in_32_bits(inner, *together(name, *xs))

        return renamed(wraps(formula)(function), formula.__name__)

    return decorate


def _slope(name: str, position: int, slope: Slope | None) -> Slope:
    """The partial derivative by an operand. Raises: NotDifferentiable: there is none."""
    if slope is None:
        raise NotDifferentiable(
            f"{name}: there is no derivative by argument {position}, got a tangent for it.",
            hint="make it constant by lax.stop_gradient, or define a derivative by custom_jvp.",
        )
    return slope


def by_tangent(formula: Callable[..., Any], position: int) -> Slope:
    """The partial derivative by the operand at ``position``, by forward-mode differentiation of the formula."""

    def slope(y: Any, *xs: Any) -> Any:
        before, x, behind = xs[:position], xs[position], xs[position + 1 :]
        return jvp(lambda x: formula(*before, x, *behind), (x,), (ones_like(x),))[1]

    return slope
