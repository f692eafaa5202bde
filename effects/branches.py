"""Branches: one of several functions runs, by a value that the program computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import trees
from .arrays import lift
from .bodies import body_of, same_results
from .closing import close_all
from .comparison import clamp
from .control import HigherOrder
from .conversion import convert
from .dtypes import bool_, int32
from .errors import BadArgument, DTypeMismatch, ShapeMismatch, need_function
from .operations import operation
from .programs import Program
from .stack import perform
from .unrolling import known, unrolls

NOT_GIVEN = trees.Unspecified()


# y = bodies[min(max(index, 0), n - 1)](x)
@operation
class Cond(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int = 0
    runs = "one"
    selects = 1
    carry = 0


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = NOT_GIVEN
) -> Any:
    """One of two functions, by a boolean that the program computes.

        cond(p, f, g, *xs) == (f if p else g)(*xs)

    Under ``vmap`` with a predicate that differs from lane to lane both are computed, and one is selected.

    Raises: ShapeMismatch: the predicate is no scalar. TreeMismatch, StateTypeError: the functions give different trees
    or types.

    >>> cond(True, lambda x: x + 1.0, lambda x: x * 2.0, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    need_function("cond", true_fun)
    need_function("cond", false_fun)
    x = lift(pred)
    if x.type.shape:
        raise ShapeMismatch(f"cond: the predicate must be a scalar, got {x.type}.", hint="where() selects elements.")
    if x.type.dtype.kind not in "biuf":
        raise DTypeMismatch(f"cond: the predicate must be a boolean or a real number, got {x.type}.")
    given = operands if operand is NOT_GIVEN else (operand,)
    return _one_of("cond", convert(convert(x, bool_), int32), (false_fun, true_fun), given)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = NOT_GIVEN) -> Any:
    """One of several functions, by its number; a number outside means the nearest.

        switch(i, fs, *xs) == fs[clip(i, 0, len(fs) - 1)](*xs)

    Raises: BadArgument: there is no branch. ShapeMismatch, DTypeMismatch: the index is no integer scalar. TreeMismatch,
    StateTypeError: the functions give different trees or types.

    >>> switch(1, [lambda x: x, lambda x: -x], 3)
    Array(-3, dtype=int32, weak_type=True)
    """
    if not isinstance(branches, Iterable):
        raise BadArgument(f"switch: the branches must be a sequence, got {type(branches).__name__}.", hint="[f, g].")
    found = tuple(branches)
    if not found:
        raise BadArgument("switch: there must be a branch, got none.")
    for f in found:
        need_function("switch", f)
    x = lift(index)
    if x.type.shape:
        raise ShapeMismatch(f"switch: the index must be a scalar, got {x.type}.")
    if x.type.dtype.kind not in "iu":
        raise DTypeMismatch(f"switch: the index must be an integer, got {x.type}.")
    given = operands if operand is NOT_GIVEN else (operand,)
    if len(found) == 1:
        return found[0](*given)
    last = lift(len(found) - 1)
    nearest = clamp(convert(lift(0), x.type.dtype, x.type.weak), x, convert(last, x.type.dtype, x.type.weak))
    return _one_of("switch", convert(nearest, int32), found, given)


def _one_of(name: str, index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, structure = trees.flatten(tuple(operands))
    xs = [lift(x) for x in leaves]
    if unrolls() and (chosen := known(int, index)) is not None:
        return trees.tree_map(lift, branches[chosen](*trees.unflatten(structure, xs)))
    types = [x.type for x in xs]
    bodies = [
        body_of(getattr(f, "__name__", name), lambda *ys, f=f: f(*trees.unflatten(structure, ys)), types)
        for f in branches
    ]
    programs, captured = close_all(same_results(name, bodies))
    results = perform(Cond(programs, len(captured)), index, *captured, *xs)
    return trees.unflatten(bodies[0].structure, results)
