"""Arguments of functions that are exported for many shapes, as ``ShapeDtypeStruct``s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArgument
from ...effects.trees import pytrees
from ...effects.types.symbolic_shapes import SymbolicScope, symbolic_shape
from ...interpreters.transformations.make_program import ShapeDtypeStruct


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The arguments as ``ShapeDtypeStruct``s, with shapes that texts denote; all variables have one scope.

    Args:
        args: a tree of arrays, or of values with shape and dtype, from which sizes are taken that are left open.
        shapes_specs: a prefix of the tree: texts as for ``symbolic_shape``, or None.
        constraints: what is known of the variables, of a new scope.
        scope: that of the variables, by default a new one.

    Raises: BadShape: a text denotes no shape, or none like its argument's. TreeMismatch: it is no prefix. BadArgument:
    both ``constraints`` and a scope.

    >>> x = ShapeDtypeStruct((8, 4), "float32")
    >>> symbolic_args_specs((x, x), ("b, _", "..., n"))[0].shape
    (b, 4)
    """
    if scope is not None and constraints:
        raise BadArgument("symbolic_args_specs: constraints are those of a scope, got both.")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = pytrees.flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    texts = pytrees.broadcast_prefix(shapes_specs, args, lambda x: x is None, what="symbolic_args_specs")
    specs = []
    for x, text in zip(leaves, texts):
        known = ShapeDtypeStruct.like(x)
        specs.append(known.update(shape=symbolic_shape(text, scope=scope, like=known.shape), sharding=None))
    return tree.unflatten(specs)
