"""Answers of clauses, converted to the types of the results that they stand for, or refused.

A Python number is converted by value: it must be one that the dtype can hold. An array of which only the type may be
known is converted by type: it has the dtype, or is weak, promotes to it, and no integer of it can wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...effects.base.errors import DTypeMismatch, NotAnArray, ShapeMismatch, TreeMismatch
from ...effects.base.wrapping import errors_ignored
from ...effects.core.arrays import PYTHON_NUMBERS, Array, ConcreteArray, as_array, scalar
from ...effects.core.columns import zeros_like
from ...effects.core.operation import Operation, result_type
from ...effects.core.result_trees import result_tree
from ...effects.operations.elementwise.conversion import convert
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ...effects.types.array_type import ArrayType
from ...effects.types.dtype_promotion import promote

_WIDEST = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_CONVERTED = "convert with astype, or broadcast, in the clause; a state is started with such a type."


def fit_answer(op: Operation, operands: tuple[Any, ...], y: Any) -> Any:
    """The answer ``y`` of a clause as the operation's results, each of exactly the type of the result.

    Raises: ShapeMismatch: shapes differ. DTypeMismatch: dtypes differ, see ``as_type``. NotAnArray: a part is neither
    number nor array. TreeMismatch: there are more or fewer, or the answer of an effect has not the structure that its
    block declares.
    """
    types = tuple([x.type for x in operands]) if operands else ()
    tree = result_tree(op, types) if op.effectful else None
    if tree is object or (isinstance(y, Array) and y.type is tree and op.multiple_results):  # the most frequent first
        return (y,)
    expected = result_type(op, types)
    if not op.multiple_results:
        return y if isinstance(y, Array) and y.type is expected else as_result(op.name, y, expected)
    if not expected and y is None:
        return ()
    if len(expected) == 1 and isinstance(y, Array) and (tree is None or isinstance(tree, ArrayType)):
        return (y,) if y.type is expected[0] else (as_result(op.name, y, expected[0], hint=_hint(op)),)
    parts = list(y) if isinstance(y, tuple) and not op.effectful else pytrees.leaves(y)
    if len(parts) != len(expected):
        results = f"{len(expected)} result{'s' * (len(expected) != 1)}"
        raise TreeMismatch(
            f"{op.name}: the clause must give {results}, got {'None' if y is None else len(parts)}.",
            hint="the clause must return its answer; an effect without one has a result_type that gives None."
            if y is None
            else "it must give what its function returns, as a whole: derivatives, and what handlers inside add, are "
            "part of that. Or handle it inside: hx.grad(hx.handle(h)(f))."
            if op.scopes
            else None,
        )
    answers = tuple([as_result(op.name, part, t, hint=_hint(op)) for part, t in zip(parts, expected)])
    if op.effectful and parts and (got := pytrees.structure(y)) != (wanted := pytrees.structure(tree)):
        raise TreeMismatch(
            f"{op.name}: the answer of a clause must have the structure {wanted}, got {got}.",
            hint="its containers, and their keys and names, are those that result_type gives.",
        )
    return answers


def zero_results(op: Operation, operands: tuple[Any, ...]) -> Any:
    """Zeros as the results of an operation, where nothing that depends on them is used."""
    types = result_type(op, tuple([x.type for x in operands]))
    return op.from_results([zeros_like(t) for t in op.as_results(types)])


def _hint(op: Any) -> str:
    """What to do about an answer of another type."""
    if op.scopes and not op.own_results:
        return "it is what the function returns; an effect with another result declares result_type(op, body, *types)."
    return _CONVERTED


def as_result(
    name: str, y: Any, expected: ArrayType, what: str = "the operation's result", hint: str = _CONVERTED
) -> Any:
    """One answer of the clause for operation ``name`` as an array of exactly this type.

    Raises: ShapeMismatch: it has another shape. DTypeMismatch: it cannot be converted, see ``as_type``. NotAnArray: it
    is neither number nor array.
    """
    fitted = as_type(_checked(name, y), expected)
    if fitted is None:
        number = _number(y)
        got = as_array(y).type if number is None else f"the number {number}"
        kind = DTypeMismatch if getattr(got, "shape", ()) == expected.shape else ShapeMismatch
        if isinstance(expected.dtype, dtypes.ExtendedDType) and getattr(got, "dtype", None) == dtypes.uint32:
            hint = "random.key(seed) makes a key with a type, random.wrap_key_data(words) of the words of a raw one."
        raise kind(
            f"{name}: the answer of a clause must have the type of {what}, {expected}, got {got}.",
            hint=hint,
        )
    return fitted


def as_type(y: Any, expected: ArrayType) -> Any:
    """``y`` as an array of exactly this type; None if the shape, the kind, or the value of an integer would change.

    Floats are rounded. None also for a finite Python number that would round to infinity, though not for an array.
    """
    if isinstance(y, Array) and y.type is expected:
        return y
    dtype = expected.dtype
    number = _number(y)
    if number is not None and not isinstance(dtype, dtypes.ExtendedDType):
        if expected.shape or not _holds(dtype, number):
            return None
        return scalar(number, dtype, expected.weak)
    x = y if isinstance(y, Array) else as_array(y)
    if x.type.shape != expected.shape:
        return None
    if x.type.dtype == dtype or (x.type.weak and _absorbs(dtype, x.type.dtype)):
        return convert(x, dtype, expected.weak)
    return None


def as_wide_array(name: str, x: Any) -> Array:
    """``x`` as an array; a Python number as a weak 64-bit scalar, so that no digit is lost before ``as_type``.

    Raises: DTypeMismatch: no 64-bit dtype holds it; ``name`` is the operation that the clause answered.
    """
    number = None if isinstance(x, Array) else _number(x)
    wide = _WIDEST.get(type(number))
    if wide is None:
        return as_array(_checked(name, x))
    for dtype in (wide, dtypes.uint64):
        if _holds(dtype, number):
            return scalar(number, dtype, True)
    raise DTypeMismatch(f"{name}: the answer of a clause must have the type of a result, got the number {number}.")


def _checked(name: str, y: Any) -> Any:
    """The answer ``y`` as an array; Python numbers are returned unchanged."""
    if isinstance(y, Array) or _number(y) is not None:
        return y
    try:
        return as_array(y)
    except NotAnArray as error:
        raise NotAnArray(
            f"{name}: the answer of a clause must be a tree of arrays, got {type(y).__name__}.",
            hint="what is no array is a field of an operation, or is closed over.",
        ) from error


def _number(y: Any) -> Any:
    """The Python number that ``y`` is, or that a weakly typed scalar of known value holds; else None."""
    if type(y) in PYTHON_NUMBERS:
        return y
    if isinstance(y, ConcreteArray):
        return y.item() if y.type.weak and y.type.shape == () else None
    return None if isinstance(y, Array) or not isinstance(y, np.generic) or y.dtype.kind not in "biufc" else y.item()


def _holds(dtype: Any, number: Any) -> bool:
    """Whether promotion of ``dtype`` with the number's class gives ``dtype``, and its range has the number."""
    if type(number) is bool or dtype == dtypes.bool_:
        return type(number) is bool and dtype == dtypes.bool_
    if promote(dtype, False, _WIDEST[type(number)], True)[0] != dtype:
        return False
    if dtypes.is_integer(dtype):
        return dtypes.holds(dtype, number)
    try:
        return bool(np.isfinite(errors_ignored(np.asarray, number, dtype)) or not np.isfinite(complex(number)))
    except OverflowError:  # an integer beyond every float
        return False


def _absorbs(dtype: Any, weak: Any) -> bool:
    """Whether every weakly typed array of dtype ``weak`` is converted to ``dtype`` without wrapping around."""
    if isinstance(dtype, dtypes.ExtendedDType) or promote(dtype, False, weak, True)[0] != dtype:
        return False
    if not (dtypes.is_integer(dtype) and dtypes.is_integer(weak)):
        return True
    least, most = dtypes.integer_range(weak)
    return dtypes.holds(dtype, least) and dtypes.holds(dtype, most)
