"""Plates: the same program for many that know nothing of each other.

    plate("rows", n)(f)(xs)[i] == f(xs[i])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects import trees
from ..effects.arrays import Array, lift
from ..effects.bodies import body_of
from ..effects.closing import close_all
from ..effects.control import HigherOrder
from ..effects.errors import BadArgument, ShapeMismatch, need_function
from ..effects.loops import Scan
from ..effects.operations import operation
from ..effects.programs import Program
from ..effects.shapes import move_axis
from ..effects.stack import current
from ..effects.wrapping import wraps
from ..interpreters.cross import performed


# y[i] = body(s, x[i])  for every i of a plate
@operation
class Plate(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    length: int
    label: str
    runs = "lanes"
    carry = 0

    def as_loop(op):
        """The same, one after the other."""
        return Scan(op.bodies, op.shared, 0, op.length)

    @property
    def path(op) -> tuple[str, ...]:
        """The name of its keys."""
        return ("plate", op.label)


def plate(name: str, size: int | None = None, in_axes: Any = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same program for many that know nothing of each other: ``plate(name, size)(f)`` means ``vmap(f)``.

        plate(name)(f)(xs)[i] == f(xs[i])

    The sites of ``f`` are there once for each, and their values stand along a first axis, before those of loops inside.
    It works as a decorator.

    Args:
        size: how many, needed where ``f`` has no mapped argument.
        in_axes: the mapped axis of each argument, None for one that all share; a prefix of the tree of arguments.

    Raises: BadArgument, ShapeMismatch: no size is known, or sizes differ.

    >>> from handlax import probability as hp, random
    >>> rows = hp.plate("rows", 3)(lambda: hp.sample("x", hp.Normal()))
    >>> hp.seed(rows, random.key(0))().shape
    (3,)
    """

    def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
        need_function("plate", f)

        @wraps(f)
        def mapped(*args: Any) -> Any:
            return _mapped(name, size, in_axes, f, args)

        return mapped

    return decorated


def _mapped(name: str, size: int | None, in_axes: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    leaves, tree = trees.flatten(args)
    axes = _axes(in_axes, args, len(leaves))
    xs = [move_axis(lift(x), axis, 0) if axis is not None else lift(x) for x, axis in zip(leaves, axes)]
    each = [i for i, axis in enumerate(axes) if axis is not None]
    shared = [i for i, axis in enumerate(axes) if axis is None]
    count = _size(name, size, [xs[i] for i in each])
    types = [xs[i].type for i in shared] + [xs[i].type.update(shape=xs[i].type.shape[1:]) for i in each]

    def row(*values: Any) -> Any:
        given = dict(zip([*shared, *each], values))
        return f(*trees.unflatten(tree, [given[i] for i in range(len(xs))]))

    body = body_of(name, row, types)
    bodies, captured = close_all([body.program])
    op = Plate(bodies, len(captured) + len(shared), count, name)
    return trees.unflatten(
        body.structure, performed(current(), op, (*captured, *[xs[i] for i in shared], *[xs[i] for i in each]))
    )


def _axes(in_axes: Any, args: tuple[Any, ...], count: int) -> list[int | None]:
    if isinstance(in_axes, int) or in_axes is None:
        return [in_axes] * count
    return trees.broadcast_prefix(in_axes, args, is_leaf=lambda x: x is None, what="plate in_axes")


def _size(name: str, size: int | None, xs: list[Array]) -> int:
    sizes = {x.type.shape[0] for x in xs} | ({size} if size is not None else set())
    if not sizes:
        raise BadArgument(f"plate: nobody says how many there are in {name!r}.", hint=f"plate({name!r}, size).")
    if len(sizes) > 1:
        found = ", ".join([str(x.type) for x in xs])
        raise ShapeMismatch(f"plate: {name!r} must have one size, got {size} and {found}.")
    return sizes.pop()
