"""Plates: a program repeated over independent elements, under a name that prefixes the keys of its sample sites.

    plate("rows", n)(f)(xs)[i] == f(xs[i])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch, need_function
from ..effects.base.stack import current
from ..effects.base.tracebacks import unnamed_boundary
from ..effects.base.wrapping import wraps
from ..effects.control.lanes import Lanes
from ..effects.control.recorded_bodies import body_of
from ..effects.core.arrays import Array, as_array
from ..effects.core.operation import operation
from ..effects.operations.foundations.shapes import move_axis
from ..effects.programs.closure_conversion import close_all
from ..effects.trees import pytrees
from ..interpreters.core.body_transform import perform_transformed
from ..interpreters.library.effectful.random_streams import Keyed

__all__ = ["plate"]


# y[i] = body(s, x[i])  for every i < length, independently
@operation
class Plate(Lanes, Keyed):
    label: str = "plate"
    evaluate = None  # a loop in Python, for the one effect of most lanes: a model has more, and is compiled

    @property
    def path(op) -> tuple[str, ...]:
        """The name from which the keys of its sample sites are derived."""
        return ("plate", op.label)


def plate(name: str, size: int | None = None, in_axes: Any = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A program repeated over independent elements: ``plate(name, size)(f)`` means ``vmap(f)``.

        plate(name)(f)(xs)[i] == f(xs[i])

    Each element has its own value of every sample site in ``f``; these are stacked along a first axis, before those of
    loops inside. It works as a decorator.

    Args:
        size: the number of elements, needed if ``f`` has no mapped argument.
        in_axes: the mapped axis of each argument, None for a shared one; a prefix of the tree of arguments.

    Raises: BadArgument, ShapeMismatch: no size is known, or sizes differ.

    >>> from handlax import probability as hp, random
    >>> rows = hp.plate("rows", 3)(lambda: hp.sample("x", hp.Normal()))
    >>> hp.seed(rows, random.key(0))().shape
    (3,)
    """

    def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
        need_function("plate", f)

        @wraps(f)
        @unnamed_boundary
        def mapped(*args: Any) -> Any:
            return _mapped(name, size, in_axes, f, args)

        return mapped

    return decorated


def _mapped(name: str, size: int | None, in_axes: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """``f`` as the body of a ``Plate``, performed on ``args`` with their mapped axes in front."""
    leaves, tree = pytrees.flatten(args)
    axes = _axes(in_axes, args, len(leaves))
    xs = [move_axis(as_array(x), axis, 0) if axis is not None else as_array(x) for x, axis in zip(leaves, axes)]
    each = [i for i, axis in enumerate(axes) if axis is not None]
    shared = [i for i, axis in enumerate(axes) if axis is None]
    count = _size(name, size, [xs[i] for i in each])
    types = [xs[i].type for i in shared] + [xs[i].type.update(shape=xs[i].type.shape[1:]) for i in each]

    def row(*values: Any) -> Any:
        by_index = dict(zip([*shared, *each], values))
        return f(*pytrees.unflatten(tree, [by_index[i] for i in range(len(xs))]))

    body = body_of(name, row, types, "plate")
    bodies, captured = close_all([body.program])
    op = Plate(bodies, len(captured) + len(shared), count, label=name)
    operands = (*captured, *[xs[i] for i in shared], *[xs[i] for i in each])
    return pytrees.unflatten(body.structure, perform_transformed(current(), op, operands))


def _axes(in_axes: Any, args: tuple[Any, ...], count: int) -> list[int | None]:
    if isinstance(in_axes, int) or in_axes is None:
        return [in_axes] * count
    return pytrees.broadcast_prefix(in_axes, args, is_leaf=lambda x: x is None, what="plate in_axes")


def _size(name: str, size: int | None, xs: list[Array]) -> int:
    """The number of elements of a plate. Raises BadArgument, ShapeMismatch: it is not known, or sizes differ."""
    sizes = {x.type.shape[0] for x in xs} | ({size} if size is not None else set())
    if not sizes:
        raise BadArgument(f"plate: the size of {name!r} is not known.", hint=f"plate({name!r}, size).")
    if len(sizes) > 1:
        types = ", ".join([str(x.type) for x in xs])
        raise ShapeMismatch(f"plate: {name!r} must have one size, got {size} and {types}.")
    return sizes.pop()
