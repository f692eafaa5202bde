"""What rules return, checked: of ``evaluate`` against the types that the operation declares, of ``jvp`` that it is a
pair, of ``batch`` the mapped dimension, of ``transpose`` the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadCall, DTypeMismatch, HandlaxError, NotAnArray, ShapeMismatch, TreeMismatch
from ...effects.core.arrays import Array, as_array
from ...effects.core.operation import Operation
from ...effects.core.result_trees import result_tree
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import ExtendedDType, is_complex, is_floating, is_integer

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
        return _checked(op, y, results)

    return returned


def _all_checked(op: Operation, ys: Any, types: Sequence[ArrayType]) -> tuple[Any, ...]:
    if ys is None and not types:
        return ()
    if not isinstance(ys, (tuple, list)) or len(ys) != len(types):
        got = f"{len(ys)} in a {type(ys).__name__}" if isinstance(ys, (tuple, list)) else type(ys).__name__
        raise ShapeMismatch(f"{op.name}: evaluate must return a tuple of {len(types)} results, got {got}.", hint=_HINT)
    return tuple([_checked(op, y, t) for y, t in zip(ys, types)])


def _checked(op: Operation, y: Any, expected: ArrayType) -> Any:
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


def result_and_tangent(op: Operation, primals: Sequence[Any], returned: Any) -> Sequence[Any]:
    """The result and the tangent that the jvp rule of ``op`` returned, in the form in which ``op`` is answered.

    The rule of an effect returns both as ``result_type`` declares the result, or, as rules for all operations do, as
    sequences of leaves. None is a tangent that is zero.

    Raises: TreeMismatch: they have another structure. NotAnArray: a leaf is no array.
    """
    pair = pair_of(f"{op.name}, jvp", "result, tangent", returned)
    if not op.effectful or op.scopes:
        return pair
    leaves = [_declared_leaves(op, tuple([x.type for x in primals]), part) for part in pair]
    return leaves if op.multiple_results else [only for only, in leaves]


def _declared_leaves(op: Any, types: tuple[ArrayType, ...], part: Any) -> tuple[Any, ...]:
    tree = result_tree(op, types)
    treedef = pytrees.structure(tree)
    leaves: Any
    if part is None:
        leaves = [None] * treedef.num_leaves
    elif isinstance(part, (tuple, list)) and len(part) == treedef.num_leaves and pytrees.all_leaves(_filled(part)):
        leaves = part
    else:
        try:
            leaves = treedef.flatten_up_to(part)
        except (TypeError, ValueError):
            leaves = [part]
        if len(leaves) != treedef.num_leaves or not pytrees.all_leaves(_filled(leaves)):
            raise TreeMismatch(
                f"{op.name}, jvp: the rule must return (result, tangent), each as result_type declares the result, "
                f"{pytrees.map(str, tree)}, got {_described(part)}.",
                hint="y = hx.perform(op, *primals) has this form; None is a tangent that is zero.",
            )
    return tuple([None if leaf is None else as_array(leaf) for leaf in leaves])


def _filled(leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if leaf is not None]


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
