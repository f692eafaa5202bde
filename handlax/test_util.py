"""``handlax.test_util``: derivatives compared with difference quotients, in random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .effects.base.errors import BadArgument
from .effects.core.arrays import as_array
from .effects.trees.pytrees import tree_map, tree_reduce
from .effects.types import dtypes
from .interpreters.transformations.derivatives import jvp, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

# bits of a float -> the step of a difference quotient, about the cube root of its precision, and the tolerance
_STEPS = {16: (6e-2, 2e-1), 32: (5e-3, 5e-3), 64: (6e-6, 1e-6)}


def _bits(tree: Any) -> int:
    """The width of the narrowest floats in a tree."""
    kinds = tree_map(lambda x: dtypes.to_real(dtypes.to_inexact(as_array(x).type.dtype)).itemsize * 8, tree)
    return max(16, min(tree_reduce(min, kinds, 64), 64))


def _direction(tree: Any, rng: np.random.Generator) -> Any:
    """Random tangents of a tree of values, of its dtypes; no part is near 0, so that an error in it shows."""

    def parts(shape: tuple[int, ...]) -> Any:
        return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))

    def draw(x: Any) -> Any:
        kind = as_array(x).type
        if not dtypes.is_inexact(kind.dtype):
            return np.zeros(kind.shape, dtypes.float0)
        made = parts(kind.shape)
        return (made + 1j * parts(kind.shape) if dtypes.is_complex(kind.dtype) else made).astype(kind.dtype)

    return tree_map(draw, tree)


def _moved(args: Any, direction: Any, step: float) -> Any:
    """``args + step * direction``; leaves whose tangent is of dtype float0 stay."""

    def move(x: Any, dx: Any) -> Any:
        x = np.asarray(x)
        return x if dx.dtype == dtypes.float0 else (x + step * dx.astype(x.dtype)).astype(x.dtype)

    return tree_map(move, args, direction)


def _quotient(f: Callable[..., Any], args: Any, direction: Any, eps: float) -> Any:
    """The difference quotient of ``f`` along a direction."""
    ahead, behind = f(*_moved(args, direction, eps / 2)), f(*_moved(args, direction, -eps / 2))
    return tree_map(lambda a, b: (_wide(a) - _wide(b)) / eps, ahead, behind)


def _wide(x: Any) -> Any:
    """A value in double precision; of the dtype float0, which has no numbers, zeros."""
    x = np.asarray(x)
    return np.zeros(x.shape) if x.dtype == dtypes.float0 else x.astype("complex128" if x.dtype.kind == "c" else float)


def _product(xs: Any, ys: Any) -> Any:
    """The real inner product of two trees."""
    return tree_reduce(lambda a, b: a + b, tree_map(lambda x, y: np.vdot(_wide(x), _wide(y)).real, xs, ys), 0.0)


def _compare(computed: Any, wanted: Any, atol: float, rtol: float, message: str) -> None:
    """Raise AssertionError unless two trees are equal within the tolerances."""
    tree_map(lambda a, b: np.testing.assert_allclose(_wide(a), _wide(b), rtol, atol, err_msg=message), computed, wanted)


def _limits(args: Any, atol: Any, rtol: Any, eps: Any) -> tuple[float, float, float]:
    """The tolerances and the step; where None is given, those of the narrowest floats in ``args``."""
    step, tolerance = _STEPS[_bits(args)]
    return (
        tolerance if atol is None else atol,
        tolerance if rtol is None else rtol,
        step if eps is None else eps,
    )


def check_jvp(
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Any, atol: Any = None, rtol: Any = None, eps: Any = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_jvp(args, direction)`` with ``f(*args)`` and its difference quotient along a random direction.

    Tolerances and step are by default those of the narrowest dtype of the arguments.
    Raises: AssertionError: they differ.
    """
    atol, rtol, eps = _limits(args, atol, rtol, eps)
    direction = _direction(args, np.random.default_rng(0))
    value, tangent = f_jvp(args, direction)
    where = f"{err_msg} in JVP" if err_msg else "JVP"
    _compare(value, f(*args), atol, rtol, f"{where}: value")
    _compare(tangent, _quotient(f, args, direction, eps), atol, rtol, f"{where}: tangent")


def check_vjp(
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Any, atol: Any = None, rtol: Any = None, eps: Any = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_vjp(*args)`` with ``f(*args)`` and the adjoint of its difference quotient, in random directions.

        <pullback(ct), dx> == <ct, df(dx)>

    Raises: AssertionError: they differ.
    """
    atol, rtol, eps = _limits(args, atol, rtol, eps)
    rng = np.random.default_rng(0)
    direction = _direction(args, rng)
    value, pullback = f_vjp(*args)
    cotangent = _direction(value, rng)
    where = f"{err_msg} in VJP" if err_msg else "VJP"
    _compare(value, f(*args), atol, rtol, f"{where}: value")
    back = tree_map(np.asarray, pullback(tree_map(lambda ct: ct.conj() if ct.dtype.kind == "c" else ct, cotangent)))
    forth = _quotient(f, args, direction, eps)
    # the pullback is the transpose, not the adjoint: complex cotangents are conjugated before and after
    derivative = _product(tree_map(lambda ct: ct.conj() if ct.dtype.kind == "c" else ct, tuple(back)), tuple(direction))
    np.testing.assert_allclose(derivative, _product(cotangent, forth), rtol, atol, err_msg=f"{where}: cotangent")


def check_grads(
    f: Callable[..., Any], args: Any, order: int, modes: Sequence[str] = ("fwd", "rev"), atol: Any = None,
    rtol: Any = None, eps: Any = None,
) -> None:
    """Compare the derivatives of ``f`` at ``args`` up to an order with difference quotients, in each of the modes.

    Raises: AssertionError: they differ. BadArgument: a mode is none of "fwd" and "rev".

    >>> from handlax.numpy import sin
    >>> check_grads(sin, (0.5,), order=2)
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise BadArgument(f"check_grads: modes must be 'fwd' and 'rev', got {sorted(unknown)}.")

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, path: str) -> None:
        if "fwd" in modes:
            forward = lambda args, direction: jvp(f, tuple(args), tuple(direction))
            check_jvp(f, forward, args, atol, rtol, eps, path)
            if order > 1:
                direction = _direction(args, np.random.default_rng(order))
                check(lambda *xs: jvp(f, xs, tuple(direction))[1], args, order - 1, f"{path} jvp".strip())
        if "rev" in modes:
            check_vjp(f, lambda *xs: vjp(f, *xs), args, atol, rtol, eps, path)
            if order > 1:
                value, _ = vjp(f, *args)
                ct = _direction(value, np.random.default_rng(order))
                check(lambda *xs: vjp(f, *xs)[1](ct), args, order - 1, f"{path} vjp".strip())

    check(f, tuple(args), order, "")
