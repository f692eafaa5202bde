"""Functions made bodies: recorded on flat values, closed over nothing, with results that fit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import trees
from .arrays import Array, ConcreteArray, lift, scalar
from .control import record_body
from .conversion import ConvertElementType, convert
from .errors import DTypeMismatch, StateTypeError, TreeMismatch
from .programs import Builder, Program
from .promotion import promote
from .sources import user_site
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
    same_structure(name, "branches", [body.structure for body in bodies])
    types = row_types(name, "branches", bodies[0].structure, [body.program.out_types for body in bodies])
    return [with_types(body.program, types) for body in bodies]


def same_structure(name: str, what: str, structures: Sequence[Any]) -> None:
    """Raises TreeMismatch where branches, or the runs of a loop, give different trees."""
    first = structures[0]
    for other in structures[1:]:
        if other != first:
            one, two, where = _difference(first, other)
            raise TreeMismatch(
                f"{name}: all {what} must give trees of one structure, got {one} and {two}{where}.",
                hint="give the same tree of containers each time; None is an empty one.",
            )


def row_types(name: str, what: str, structure: Any, rows: Sequence[Sequence[ArrayType]]) -> list[ArrayType]:
    """The types that hold the results of all branches, or of all runs.

    Raises: StateTypeError: there are none.
    """
    return [_common(name, what, structure, i, column) for i, column in enumerate(zip(*rows))]


def _common(name: str, what: str, structure: Any, i: int, types: Sequence[ArrayType]) -> ArrayType:
    """One dtype is weak as the first has it; of several, a weak one gives way."""
    found = types[0]
    for t in types[1:]:
        if t is found or (t.dtype == found.dtype and t.shape == found.shape):
            continue
        strong, other = (found, t) if t.weak else (t, found)
        if t.shape != found.shape or not (other.weak and (strong.weak or holds(strong, other))):
            raise StateTypeError(
                f"{name}: all {what} must give the same types, got {found} and {t}{place(structure, i)}.",
                hint="convert with astype, or broadcast, in one of them.",
            )
        dtype, weak = promote(found.dtype, found.weak, t.dtype, t.weak)
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
) -> tuple[Body, list[ArrayType], list[ArrayType]]:
    """The body of a loop, the types of the carry that it sees, and those of the carry that it gives.

    A weak number whose dtype the body changes starts again as one of that dtype. Where only weakness changes, every run
    sees the carry as it started, and the result is what the body gives. ``trace(types)`` gives the body whose first
    results are the carry; ``structure`` is that of the carry, of whose paths messages leave out the first ``below``
    keys.

    Raises: StateTypeError: the carry changes its type otherwise.
    """
    types = list(types)
    while True:
        body = trace(types)
        given = list(body.program.out_types[: len(types)])
        seen = next_carry(name, structure, types, given, below)
        if seen == types:
            return body, types, given
        types = seen


def next_carry(
    name: str, structure: Any, types: Sequence[ArrayType], made: Sequence[ArrayType], below: int = 0
) -> list[ArrayType]:
    """The types in which a body that was given ``types`` and made ``made`` is to see its carry.

    Raises: StateTypeError: the carry changes its type, and is no weak number that the new one holds.
    """
    return [_next(name, structure, i, t, y, below) for i, (t, y) in enumerate(zip(types, made))]


def _next(name: str, structure: Any, i: int, t: ArrayType, made: ArrayType, below: int) -> ArrayType:
    if made.shape == t.shape:
        if made.dtype == t.dtype:
            return t
        if t.weak and holds(made, t):
            return made.update(weak=False)
    where = place(structure, i, below)
    raise StateTypeError(
        f"{name}: the carry must keep its type, got {t} at the start and {made} after the body{where}.",
        hint=f"start from a value of type {made}, or convert in the body with astype."
        if made.shape == t.shape
        else "a loop cannot change the shape of what it carries.",
    )


def seeing(program: Program, seen: Sequence[ArrayType], given: Sequence[ArrayType]) -> Program:
    """A body or test of a carry of types ``seen``, made one that takes the carry in the types ``given``."""
    differ = {i: t for i, (t, other) in enumerate(zip(given, seen)) if t != other}
    if not differ:
        return program
    builder = Builder()
    numbers = [builder.input(t) for t in (*given, *program.in_types[len(given) :])]
    converted: dict[int, int] = {}
    sites = list(program.sites)
    at_start = sites[0] if sites else user_site(2)

    def at(n: int) -> int:
        if n < 0:
            return builder.const(program.consts[-1 - n])
        if n in differ:
            if n not in converted:
                op = ConvertElementType(seen[n].dtype, seen[n].weak)
                converted[n] = builder.append(op, (numbers[n],), seen[n], at_start)
            return converted[n]
        return numbers[n]

    for op, args, made, site in zip(program.ops, program.args, program.types, sites):
        if isinstance(op, ConvertElementType) and differ.get(args[0]) == made:
            numbers.append(numbers[args[0]])  # back to the type that the carry has
            continue
        first = builder.append(op, tuple(map(at, args)), made, site)
        numbers.extend(range(first, builder.count))
    return builder.freeze([at(n) for n in program.outs], program.name)


def same_carry(name: str, before: Any, after: Any, below: int = 0) -> None:
    """Raises TreeMismatch where a loop changes the structure of what it carries."""
    if before != after:
        one, two, where = _difference(before, after, below)
        raise TreeMismatch(
            f"{name}: the carry must keep its structure, got {one} at the start and {two} after the body{where}.",
            hint="give back the same tree of containers that came in; None is an empty one.",
        )
