"""What rules return, checked: of ``evaluate`` against the types that the operation declares, of ``jvp`` that it is a
pair of these types, of ``batch`` the mapped dimension, of ``transpose`` the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import (
    BadCall,
    DTypeMismatch,
    HandlaxError,
    IntegerOverflow,
    NotAnArray,
    ShapeMismatch,
    TreeMismatch,
)
from ...effects.base.source_locations import is_ours
from ...effects.core.arrays import Array, as_array, is_number, scalar
from ...effects.core.operation import Operation, result_type
from ...effects.core.result_trees import result_tree
from ...effects.operations.elementwise.conversion import convert
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import ExtendedDType, float0, holds, is_complex, is_floating, is_inexact, is_integer

_HINT = "convert it in the rule, or correct result_type."


def checked_rule(rule: Callable[..., Any], op: Operation, results: Any) -> Callable[..., Any]:
    """``rule`` of ``op``, whose results must have the shapes of ``results`` and numbers that these dtypes hold.

    Integers keep their values, floats are rounded, and what is real may stand for a complex number.

    Raises: NotAnArray: a result is no array of numbers. ShapeMismatch: it has another shape, or there are more or fewer
        results. DTypeMismatch: its numbers do not fit the dtype.
    """
    if op.multiple_results:
        return lambda *xs: _all_checked(op, rule(op, *xs), results)

    def returned(*xs: Any) -> Any:
        y = rule(op, *xs)
        if y.__class__ is np.ndarray and y.dtype is results.dtype and y.shape == results.shape:
            return y
        return _fitting(op, y, results)

    return returned


def _all_checked(op: Operation, ys: Any, types: Sequence[ArrayType]) -> tuple[Any, ...]:
    if ys is None and not types:
        return ()
    if not isinstance(ys, (tuple, list)) or len(ys) != len(types):
        got = f"{len(ys)} in a {type(ys).__name__}" if isinstance(ys, (tuple, list)) else type(ys).__name__
        raise ShapeMismatch(f"{op.name}: evaluate must return a tuple of {len(types)} results, got {got}.", hint=_HINT)
    return tuple([_fitting(op, y, t) for y, t in zip(ys, types)])


def _fitting(op: Operation, y: Any, expected: ArrayType) -> Any:
    dtype = expected.dtype
    if isinstance(dtype, ExtendedDType):
        return y
    data = np.asarray(y)
    if data.dtype.kind in "OSUmM":
        raise _mismatch(NotAnArray, op, expected, type(y).__name__)
    if len(data.shape) != len(expected.shape) or any(
        [isinstance(n, int) and n != size for n, size in zip(expected.shape, data.shape)]
    ):
        raise _mismatch(ShapeMismatch, op, expected, f"an array of shape {data.shape}")
    if _rank(data.dtype) > _rank(dtype):
        raise _mismatch(DTypeMismatch, op, expected, f"one of {data.dtype}")
    if is_integer(dtype) and data.dtype != dtype and not (data.astype(dtype) == data).all():
        raise _mismatch(DTypeMismatch, op, expected, f"integers of {data.dtype} that it does not hold")
    return data


def _rank(dtype: Any) -> int:
    """The position of a dtype's kind in: boolean, integer, floating, complex."""
    return 3 if is_complex(dtype) else 2 if is_floating(dtype) else 1 if is_integer(dtype) else 0


def _mismatch(kind: type[HandlaxError], op: Operation, expected: ArrayType, got: str) -> HandlaxError:
    return kind(f"{op.name}: evaluate must return {expected}, as result_type says, got {got}.", hint=_HINT)


def pair_of(shown: str, what: str, returned: Any) -> Sequence[Any]:
    """The two parts, named by ``what``, of the pair that a rule returned. Raises: TreeMismatch: it is no pair."""
    if isinstance(returned, (tuple, list)) and len(returned) == 2:
        return returned
    raise TreeMismatch(f"{shown}: the rule must return ({what}), got {type(returned).__name__}.")


def result_and_tangent(op: Operation, rule: Any, primals: Sequence[Any], returned: Any) -> Sequence[Any]:
    """The result and the tangent that ``rule``, of ``op`` in the column ``jvp``, returned, as ``op`` is answered.

    A rule of a user's gives a result of the declared type and a tangent of this type, or None for zero: an integer has
    no other. That of an effect gives both as ``result_type`` declares the result. Rules of the package are trusted, and
    give leaves, as rules for all operations do.

    Raises: TreeMismatch: it is no pair, or a part has another structure. BadCall: a part is no array. ShapeMismatch,
        DTypeMismatch: it has another type.
    """
    shown = f"{op.name}, jvp"
    pair = pair_of(shown, "result, tangent", returned)
    if is_ours(getattr(rule, "__module__", "")):
        return pair
    operands = tuple([x.type for x in primals])
    expected = result_type(op, operands)
    if all([isinstance(part, Array) and part.type is expected for part in pair]) and is_inexact(expected.dtype):
        return pair  # the commonest
    types = op.as_results(expected)
    tree = result_tree(op, operands) if op.effectful and not op.scopes else op.from_results(types)
    ys, dys = [_leaves(shown, tree, part, len(types)) for part in pair]
    if any([y is None for y in ys]):
        raise _not_declared(shown, tree, "None for a result")
    return (
        op.from_results([checked(shown, "a result", y, t) for y, t in zip(ys, types)]),
        op.from_results([_tangent(shown, dy, t) for dy, t in zip(dys, types)]),
    )


def _tangent(shown: str, dy: Any, t: ArrayType) -> Any:
    """The tangent of a result of type ``t``, checked; None for zero, as which ``float0`` counts too."""
    if dy is None or getattr(dy, "dtype", None) == float0:
        return None
    if t.tangent().dtype == float0:
        raise DTypeMismatch(
            f"{shown}: a result {t} has no tangent, got {_described(dy)}.",
            hint="return None for it: it is constant nearly everywhere.",
        )
    return checked(shown, "a tangent", dy, t.tangent())


def _leaves(shown: str, tree: Any, part: Any, count: int) -> Sequence[Any]:
    """The leaves of a part of what a rule returned, a result or tangent of this structure; None is one without leaves.

    A flat sequence may be any other of as many leaves, since their order is the same.
    """
    if part is None:
        return [None] * count
    leaves: Any
    if count == 1 and pytrees.all_leaves([part]):
        leaves = [part]
    elif isinstance(part, (tuple, list)) and len(part) == count and (count == 1 or _is_flat(tree)):
        leaves = part
    else:
        try:
            leaves = pytrees.structure(tree).flatten_up_to(part)
        except (TypeError, ValueError):
            raise _not_declared(shown, tree, _described(part)) from None
    if not pytrees.all_leaves([leaf for leaf in leaves if leaf is not None]):
        raise _not_declared(shown, tree, _described(part))
    return leaves


def _is_flat(tree: Any) -> bool:
    """Whether a declared result is a tuple or list of leaves."""
    return isinstance(tree, (tuple, list)) and pytrees.all_leaves(tree)


def _not_declared(shown: str, tree: Any, got: str) -> TreeMismatch:
    return TreeMismatch(
        f"{shown}: the rule must return (result, tangent), each as result_type declares the result, "
        f"{pytrees.map(str, tree)}, got {got}.",
        hint="y = hx.perform(op, *primals) has this form; None is a tangent that is zero.",
    )


def checked(shown: str, what: str, y: Any, t: ArrayType) -> Array:
    """A result ``y`` of a rule, converted to exactly the type ``t``; ``what`` names it in messages.

    Raises: BadCall: it is no array. ShapeMismatch, DTypeMismatch: it has another shape or dtype. IntegerOverflow: the
    dtype does not hold it.
    """
    try:
        x = as_array(y)
    except TypeError as error:
        raise BadCall(f"{shown}: the rule must give arrays, got {type(y).__name__} for {what}.") from error
    if x.type.shape != t.shape:
        raise ShapeMismatch(f"{shown}: the rule must give {what} of shape {t.shape}, got {x.type}.")
    if x.type.dtype != t.dtype and (not x.type.weak or _rank(x.type.dtype) > _rank(t.dtype)):
        raise DTypeMismatch(
            f"{shown}: the rule must give {what} of dtype {t.dtype}, got {x.type}.", hint="convert with astype."
        )
    if is_number(y) and is_inexact(t.dtype):
        return scalar(y, t.dtype, t.weak)  # rounded once, from its full value
    if is_number(y) and is_integer(t.dtype) and not holds(t.dtype, y):
        raise IntegerOverflow(f"{shown}: the rule must give {what} that {t.dtype} holds, got {y}.")
    return convert(x, t.dtype, t.weak)


def need_lanes(op: Operation, y: Any, dim: Any, size: Any) -> None:
    """Raise BadCall where a result of ``batch`` is no array, ShapeMismatch where ``dim`` of it does not have ``size``
    lanes; None stands for a result that all lanes share.
    """
    if not isinstance(y, Array):
        raise BadCall(f"{op.name}, batch: the rule must return an array, got {_described(y)}.")
    shape = y.type.shape
    if dim is not None and (dim not in range(len(shape)) or shape[dim] != size):
        raise ShapeMismatch(
            f"{op.name}, batch: the rule must return the dimension of the result that has the {size} lanes, got "
            f"{dim!r} of {y.type}.",
            hint="None for a result that all lanes share.",
        )


def need_cotangents(op: Operation, parts: Any, count: int) -> None:
    """Raise BadCall unless ``transpose`` gave an array, or None for zero, for each of ``count`` operands."""
    if not isinstance(parts, (list, tuple)) or len(parts) != count:
        raise _no_cotangents(op, f"{count} cotangents, one for each operand", parts)
    for i, part in enumerate(parts):
        if not (part is None or isinstance(part, Array)):
            raise _no_cotangents(op, f"the cotangent of operand {i}, an array", part)


def _no_cotangents(op: Operation, expected: str, got: Any) -> BadCall:
    return BadCall(
        f"{op.name}, transpose: the rule must return {expected}, got {_described(got)}.",
        hint="transpose(op, ct, *operands, wrt) returns the cotangent of operand `wrt`; with `linear` in place of "
        "`wrt` it returns a tuple, with None for each operand that is not linear.",
    )


def _described(y: Any) -> str:
    """What a rule returned: the type of an array, the class of anything else, and the length of a tuple or list."""
    if isinstance(y, Array):
        return str(y.type)
    return f"a {type(y).__name__}" + (f" of {len(y)}" if isinstance(y, (list, tuple)) else "")
