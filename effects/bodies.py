"""Functions made bodies: recorded on flat values, closed over nothing, with results that fit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import trees
from .arrays import Array, ConcreteArray, lift, scalar
from .control import record_body
from .conversion import convert
from .errors import DTypeMismatch, StateTypeError, TreeMismatch
from .programs import Program
from .promotion import promote
from .treedefs import mismatches
from .types import ArrayType


class Body(NamedTuple):
    """A recorded function of flat values, and the structure of its result."""

    program: Program
    structure: Any


def body_of(name: str, f: Callable[..., Any], types: Sequence[ArrayType]) -> Body:
    """The body of a function that takes flat values and gives a tree."""
    found: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        leaves, structure = trees.flatten(f(*xs))
        found.append(structure)
        return [lift(y) for y in leaves]

    return Body(record_body(flat, types, name), found[0])


def with_types(program: Program, types: Sequence[ArrayType]) -> Program:
    """The program with its results converted to types that differ from theirs in dtype or weakness alone."""
    if program.out_types == tuple(types):
        return program

    def converted(*xs: Any) -> list[Any]:
        return [convert(y, t.dtype, t.weak) for y, t in zip(program(*xs), types)]

    return record_body(converted, program.in_types, program.name)


def same_results(name: str, bodies: Sequence[Body]) -> list[Program]:
    """The programs of branches, all giving the same types: where one is weak it takes the type of the others.

    Raises: TreeMismatch, StateTypeError: the branches give different trees or types.
    """
    first = bodies[0]
    for other in bodies[1:]:
        if other.structure != first.structure:
            one, two, where = _difference(first.structure, other.structure)
            raise TreeMismatch(
                f"{name}: all branches must give trees of one structure, got {one} and {two}{where}.",
                hint="give the same tree of containers from each branch; None is an empty one.",
            )
    columns = list(zip(*[body.program.out_types for body in bodies]))
    types = [_common(name, first.structure, i, column) for i, column in enumerate(columns)]
    return [with_types(body.program, types) for body in bodies]


def _common(name: str, structure: Any, i: int, types: Sequence[ArrayType]) -> ArrayType:
    found = types[0]
    for t in types[1:]:
        if t is found:
            continue
        strong, other = (found, t) if t.weak else (t, found)
        same = t.dtype == found.dtype or (other.weak and (strong.weak or holds(strong, other)))
        if t.shape != found.shape or not same:
            raise StateTypeError(
                f"{name}: all branches must give the same types, got {found} and {t}{place(structure, i)}.",
                hint="convert with astype, or broadcast, in one of the branches.",
            )
        dtype, weak = (t.dtype, False) if t.dtype == found.dtype else promote(found.dtype, found.weak, t.dtype, t.weak)
        found = found.update(dtype=dtype, weak=weak)
    return found


def holds(strong: ArrayType, weak: ArrayType) -> bool:
    """Whether a weak number can become one of the other dtype: 1 in ``f32``, not 0.5 in ``i32``."""
    try:
        return promote(strong.dtype, strong.weak, weak.dtype, True)[0] == strong.dtype
    except DTypeMismatch:  # keys have no common bound with numbers
        return False


def place(structure: Any, i: int, below: int = 0) -> str:
    """`` at ['key']``: the path of leaf ``i`` without its first ``below`` keys, nothing where nothing is left."""
    paths = [path for path, _ in trees.leaves_with_path(trees.unflatten(structure, range(structure.num_leaves)))]
    return _at(paths[i][below:])


def _at(path: Any) -> str:
    return f" at {trees.keystr(path)}" if path else ""


def _difference(one: Any, other: Any, below: int = 0) -> tuple[str, str, str]:
    """The first place where two structures differ: what each has there, and `` at`` the path."""
    trees_of = [trees.unflatten(structure, range(structure.num_leaves)) for structure in (one, other)]
    for path, first, second in mismatches(one, trees_of[1]):
        return first, _leaf(second), _at(path[below:])
    path, second, first = next(mismatches(other, trees_of[0]))
    return _leaf(first), second, _at(path[below:])


def _leaf(description: str) -> str:
    return "a leaf" if description.startswith("a leaf") else description


def started(x: Array, type: ArrayType) -> Array:
    """The first value of a carry of this type; a constant is converted while tracing."""
    if x.type is type:
        return x
    if isinstance(x, ConcreteArray) and not x.type.shape:
        return scalar(x.item(), type.dtype, type.weak)
    return convert(x, type.dtype, type.weak)


def stable_carry(
    name: str,
    trace: Callable[[Sequence[ArrayType]], Body],
    structure: Any,
    types: Sequence[ArrayType],
    below: int = 0,
) -> tuple[Body, list[ArrayType]]:
    """The body for carries of types that it keeps: a weak one takes the type that the body gives, if that holds it.

    ``trace(types)`` gives the body whose first results are the carry; ``structure`` is that of the carry, of
    whose paths messages leave out the first ``below`` keys.

    Raises: StateTypeError: the carry changes its type otherwise.
    """
    types = list(types)
    while True:
        body = trace(types)
        grown = list(types)
        for i, (t, made) in enumerate(zip(types, body.program.out_types)):
            if made.shape != t.shape or (made.dtype != t.dtype and not (t.weak and holds(made, t))):
                raise StateTypeError(
                    f"{name}: the carry must keep its type, got {t} at the start and {made} after the body"
                    f"{place(structure, i, below)}.",
                    hint=f"start from a value of type {made}, or convert in the body with astype."
                    if made.shape == t.shape
                    else "a loop cannot change the shape of what it carries.",
                )
            if t.weak and not (made.weak and made.dtype == t.dtype):
                grown[i] = made
        if grown == types:
            outs = [*types, *body.program.out_types[len(types) :]]
            return Body(with_types(body.program, outs), body.structure), types
        types = grown


def same_carry(name: str, before: Any, after: Any, below: int = 0) -> None:
    """Raises TreeMismatch where a loop changes the structure of what it carries."""
    if before != after:
        one, two, where = _difference(before, after, below)
        raise TreeMismatch(
            f"{name}: the carry must keep its structure, got {one} at the start and {two} after the body{where}.",
            hint="give back the same tree of containers that came in; None is an empty one.",
        )
