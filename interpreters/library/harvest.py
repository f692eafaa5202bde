"""Harvest: name values inside a program; take them out, or put others in their place, from outside.

    reap(f)(x) == {"h": h}                where f sows h under the name "h"
    plant(f)({"h": h2}, x)                f(x) with h2 in the place of h

Source: the transformation of this name in Oryx (Saberian et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...effects import trees
from ...effects.arrays import lift, perform
from ...effects.errors import BadArgument, TreeMismatch, need_function
from ...effects.operations import effect
from ...effects.shapes import move_axis
from ...effects.stack import current
from ...effects.treedefs import TreeDef
from ...effects.wrapping import wraps
from ..handle import handle
from ..handler import handler
from ..movements import When, tally
from .gathering import Sown, entries_of, merged
from .planting import Log, Rows, at

MODES = ("strict", "append", "clobber")
Path = tuple[str, ...]


# the operands, under a name
@effect(vmap="per_lane")
class Sow:
    path: Path
    tag: Hashable
    mode: str
    tree: TreeDef

    def result_type(op, *leaves):
        return leaves

    def evaluate(op, *leaves):
        return leaves

    def batch(op, dims, *leaves):
        """What all lanes sow, as one, with the lanes along the first axis."""
        given = [x if d is None else move_axis(x, d, 0) for x, d in zip(leaves, dims)]
        return current().answer(op, tuple(given)), tuple([None if d is None else 0 for d in dims])

    def jvp(op, primals, tangents):
        return current().answer(op, primals), tangents  # the derivative of the identity

    def lower(op, emit, *leaves):
        return list(leaves)


def sow(value: Any, name: str, *, tag: Hashable = None, mode: str = "strict") -> Any:
    """A value, a tree of arrays, under a name; gives it back, or what is planted in its place.

        sow(x, name) == x                         where nobody plants

    Its derivative is that of the identity.

    Args:
        tag: harvesters with this tag alone see it.
        mode: what a second value of the same name means: ``strict`` an error, ``append`` one more row, ``clobber`` that
            it takes the place of the first.

    >>> sow(2.0, "h")
    Array(2., dtype=float32, weak_type=True)
    """
    if mode not in MODES:
        raise BadArgument(f"sow: the mode must be one of {MODES}, got {mode!r}.")
    if not isinstance(name, str):
        raise BadArgument(f"sow: the name must be a string, got {name!r}.")
    leaves, tree = trees.flatten(value)
    if not leaves:
        return value
    made = perform(Sow((name,), tag, mode, tree), *[lift(x) for x in leaves])
    return trees.unflatten(tree, made)


def nest(f: Callable[..., Any], *, scope: str) -> Callable[..., Any]:
    """``f`` whose names stand under ``scope``: ``reap(nest(f, scope="a"))(x) == {"a": reap(f)(x)}``."""
    need_function("nest", f)

    def renamed(op: Any, *leaves: Any) -> Any:
        return perform(Sow((scope, *op.path), op.tag, op.mode, op.tree), *leaves)

    return wraps(f)(handle(handler({Sow: renamed}))(f))


def plant(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``plant(f)(values, *args)`` is ``f(*args)`` with these values in the place of what is sown under their names.

        plant(f)(reap(f)(*args), *args) == f(*args)

    Values are a dictionary from names, one inside the other for nested scopes. What is sown in a loop is planted row by
    row, as ``reap`` gives it; a value without rows stands for every run.

    Raises: BadArgument: nothing is sown under a name. DTypeMismatch: a value has another type than what is sown.
    """
    need_function("plant", f)
    mine = lambda op: type(op) is Sow and op.tag == tag

    @wraps(f)
    def planted(values: Any, *args: Any, **kwargs: Any) -> Any:
        used: set[Path] = set()
        values = trees.map(lambda x: x.value if type(x) is When else x, values, is_leaf=lambda x: type(x) is When)

        def replaced(inner: Any, op: Any, *leaves: Any) -> Any:
            found = at(inner, op.path) if op.tag == tag else None
            if found is None:
                return inner, perform(op, *leaves)
            used.add(op.path)
            new, tree = trees.flatten(found)
            if tree != op.tree:
                raise TreeMismatch(f"plant: {_called(op.path)} is a tree {op.tree}, got {tree}.")
            return inner, tuple(map(lift, new))

        _, y = handle(handler({Sow: replaced}, moves=Rows(mine)), values)(f)(*args, **kwargs)
        left = [path for path in _paths(values) if not any(path[:i] in used for i in range(1, len(path) + 1))]
        if left:
            raise BadArgument(f"plant: nothing is sown under {', '.join(map(_called, left))}.", hint="look at reap(f).")
        return y

    return planted


def reap(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``reap(f)(*args)`` gives what ``f`` sows, a dictionary by name.

    Loops and lanes stack what they sow, also in an enclosing ``jit`` or gradient. What only one branch of a ``cond``
    sows is ``When(taken, value)``; so is the last value of a loop of unknown length, where no other can be kept.

    Raises: BadArgument: a name is sown twice in strict mode. CannotCross: it is sown in a loop of unknown length, and
    its mode is not ``clobber``.

    >>> reap(lambda x: sow(x + 1.0, "h") * 2.0)(3.0)
    {'h': Array(4., dtype=float32, weak_type=True)}
    """
    harvested = call_and_reap(f, tag=tag)
    return wraps(f)(lambda *args, **kwargs: harvested(*args, **kwargs)[1])


def call_and_reap(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``(f(*args), reap(f)(*args))``, with ``f`` called once."""
    need_function("reap", f)
    mine = lambda op: type(op) is Sow and op.tag == tag

    def collect(log: Any, op: Any, *leaves: Any) -> Any:
        if op.tag != tag:
            return log, perform(op, *leaves)
        types = tuple([x.type for x in leaves])
        return (*log, Sown(list(leaves), op.path, op.mode, op.tree, types)), leaves

    def count(op: Any, *types: Any) -> Any:
        return {op.path: (1, 1)} if op.tag == tag else {}

    log = handle(handler({Sow: collect}, moves=Log(mine)), ())
    counts = handle(handler({Sow: count}, moves=tally({}, _then, _choose, _repeat)), {})

    @wraps(f)
    def reaped(*args: Any, **kwargs: Any) -> Any:
        entries, (times, y) = log(counts(f))(*args, **kwargs)
        return y, _nested({path: _one(path, times[path], entries) for path in times})

    return reaped


def harvest(f: Callable[..., Any], *, tag: Hashable = None) -> Callable[..., Any]:
    """``harvest(f)(values, *args)`` plants these values and reaps the others: ``(y, reaped)``."""
    return call_and_reap(plant(f, tag=tag), tag=tag)


def _then(a: dict[Path, Any], b: dict[Path, Any]) -> dict[Path, Any]:
    return {path: _pairs(a, b, path, lambda i, j: i + j) for path in [*a, *[p for p in b if p not in a]]}


def _choose(a: dict[Path, Any], b: dict[Path, Any]) -> dict[Path, Any]:
    """The least and the most of two branches."""
    paths = [*a, *[path for path in b if path not in a]]
    return {path: (_pairs(a, b, path, min)[0], _pairs(a, b, path, max)[1]) for path in paths}


def _repeat(a: dict[Path, Any], n: int | None) -> dict[Path, Any]:
    """In a loop that may not run at all a name may not be sown; one that runs stacks what it sows."""
    return a if n else {path: (0, most) for path, (_, most) in a.items()}


def _pairs(a: Any, b: Any, path: Path, f: Callable[[int, int], int]) -> tuple[int, int]:
    (i, j), (k, l) = a.get(path, (0, 0)), b.get(path, (0, 0))
    return f(i, k), f(j, l)


def _one(path: Path, times: tuple[int, int], log: Sequence[Any]) -> Any:
    """What one name gives, of all the entries of the log."""
    least, most = times
    parts = entries_of(log, path)
    modes = {sown.mode for _, sown in parts}
    if len(modes) > 1:
        raise BadArgument(f"reap: {_called(path)} is sown in several modes, {', '.join(sorted(modes))}.")
    if modes == {"strict"} and most > 1:
        raise BadArgument(
            f"reap: {_called(path)} is sown {most} times, but its mode is strict.",
            hint="give other names, nest(f, scope=...), or sow(..., mode='append').",
        )
    if any(sown.tree != parts[0][1].tree for _, sown in parts):
        raise TreeMismatch(f"reap: what is sown under {_called(path)} must have one structure.")
    return merged(_called(path), parts, least > 0)


def _nested(found: dict[Path, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for path, value in found.items():
        inner = whole
        for scope in path[:-1]:
            inner = inner.setdefault(scope, {})
        if path[-1] in inner:
            raise BadArgument(f"reap: {_called(path)} is a value and a scope.", hint="give it another name.")
        inner[path[-1]] = value
    return whole


def _paths(values: Any, path: Path = ()) -> list[Path]:
    """The places where a planted value may stand: a dictionary is a scope, or a value itself."""
    if not isinstance(values, dict):
        return [path]
    return [found for name in values for found in _paths(values[name], (*path, name))]


def _called(path: Path) -> str:
    return repr("/".join(path))
