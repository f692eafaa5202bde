"""The residuals of a pullback: arguments of the function, which may be taken out and put back, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, TreeMismatch
from ...effects.base.frozen_values import Value
from ...effects.core.arrays import as_array
from ...effects.operations.elementwise.conversion import convert
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType


@pytrees.register_static
class NotNeeded(Value):
    """An entry of ``args_res``: an argument that the pullback does not read."""


@pytrees.register_static
class NotSaveable(Value):
    """In ``args_res``: an argument that the pullback reads, and that its caller puts there before the call."""


def _is_entry(x: Any) -> bool:
    """Whether ``x`` stands in ``args_res`` for an argument leaf that is not needed or was not saved."""
    return isinstance(x, (NotNeeded, NotSaveable))


class SplitResiduals:
    """The residuals of a pullback: ``arguments``, which the user may replace, and the ``opaque`` rest.

    ``arguments`` has an entry for each positional argument. ``origins`` says for each residual the argument leaf that
    it is; None: it is the next opaque one.
    """

    __slots__ = ("arguments", "opaque", "origins")

    def __init__(self, arguments: list[Any], opaque: list[Any], origins: tuple[int | None, ...]):
        self.arguments, self.opaque, self.origins = arguments, opaque, origins

    @classmethod
    def of(
        cls, in_tree: Any, residuals: Sequence[Any], origins: tuple[int | None, ...], saveable: Sequence[bool] | None
    ) -> SplitResiduals:
        """The residuals of a pullback, by its arguments; ``NotSaveable()`` stands for those that may not be saved."""
        leaves: list[Any] = [NotNeeded()] * in_tree.num_leaves
        opaque = []
        for n, x in zip(origins, residuals):
            if n is None:
                opaque.append(x)
            else:
                leaves[n] = x if saveable is None or saveable[n] else NotSaveable()
        return cls(list(mirrored(in_tree, iter(leaves))), opaque, origins)

    def gather(self, in_tree: Any, in_types: Sequence[ArrayType]) -> tuple[Any, ...]:
        """All residuals, in the order of the program's inputs.

        Raises: BadArgument: an argument that is read was not put back. TreeMismatch: entries have another structure.
        ShapeMismatch, DTypeMismatch: a leaf that is read has another type than the argument.
        """
        read = {n for n in self.origins if n is not None}
        leaves = _leaves_as(in_tree, self.arguments) if read else []
        absent = sorted([n for n in read if _is_entry(leaves[n])])
        if absent:
            raise BadArgument(
                f"vjp: the pullback reads arguments that are not-saveable: {_argument_paths(in_tree, absent)}.",
                hint="put them back before the call: pull.args_res = list(args).",
            )
        opaque = iter(self.opaque)
        put_back = {n: _typed(in_tree, n, in_types[n], leaves[n]) for n in read}
        return tuple([next(opaque) if n is None else put_back[n] for n in self.origins])


def _leaves_as(in_tree: Any, arguments: Sequence[Any]) -> list[Any]:
    """The leaves of ``args_res``, each entry in the structure of its argument or in the mirrored one."""
    trees = in_tree.children()
    if len(arguments) != len(trees):
        raise TreeMismatch(
            f"vjp: args_res must have an entry for each of {len(trees)} arguments, got {len(arguments)}.",
            hint="put back each argument that was taken out.",
        )
    leaves: list[Any] = []
    for i, (tree, argument) in enumerate(zip(trees, arguments)):
        parts, given = pytrees.flatten(argument, is_leaf=_is_entry)
        if given != tree and given != pytrees.structure(mirrored(tree, iter(range(tree.num_leaves)))):
            raise TreeMismatch(
                f"vjp: args_res[{i}] must have the structure of the argument, {tree}, got {given}.",
                hint="put back each argument that was taken out.",
            )
        leaves += parts
    return leaves


def _typed(in_tree: Any, number: int, t: ArrayType, leaf: Any) -> Any:
    """A leaf put back for an argument of type ``t``, as an array; Python numbers are converted to the type."""
    x = as_array(leaf)
    if x.type is t:
        return x
    if x.type.shape != t.shape:
        path = _argument_paths(in_tree, [number])
        raise ShapeMismatch(f"vjp: args_res must have the argument's shape {t.shape} at {path}, got {x.type.shape}.")
    if x.type.dtype != t.dtype and not x.type.weak:
        path = _argument_paths(in_tree, [number])
        raise DTypeMismatch(f"vjp: args_res must have the argument's dtype {t.dtype} at {path}, got {x.type.dtype}.")
    return convert(x, t.dtype, t.weak)


def _argument_paths(in_tree: Any, numbers: Sequence[int]) -> str:
    paths = [*pytrees.leaf_paths(in_tree)]
    return ", ".join([f"args{pytrees.keystr(paths[n])}" for n in numbers])


def mirrored(treedef: Any, leaves: Iterator[Any]) -> Any:
    """A tree of any values in the structure of another, with tuples for nodes that are no tuple, list or dictionary.

    So no class of the user's is made around what it does not expect.
    """
    of_node = treedef.node_data()
    if of_node is None:
        return next(leaves)
    cls, data = of_node
    children = [mirrored(child, leaves) for child in treedef.children()]
    if cls is dict:
        return dict(zip(data, children))
    return children if cls is list else None if cls is type(None) else tuple(children)


def flags(where: str, prefix: Any, treedef: Any) -> list[bool]:
    """A boolean for each leaf: ``prefix`` is one for all, or a container of as many prefixes as the node has children.

    Raises: BadArgument: the prefix has anything else, or other numbers of children.
    """
    if isinstance(prefix, bool):
        return [prefix] * treedef.num_leaves
    if not pytrees.is_tree_node(type(prefix)):
        raise BadArgument(f"{where} must be a pytree or a tuple-tree of bools, got {prefix!r} in it.")
    if pytrees.is_leaf_structure(treedef):
        raise BadArgument(f"{where} must have one bool where the argument is a leaf, got {prefix!r}.")
    parts, nodes = list(pytrees.flatten_one_level(prefix)[0]), treedef.children()
    if len(parts) != len(nodes):
        raise BadArgument(f"{where} must have the number of children of the arguments, {len(nodes)}, got {len(parts)}.")
    cls, keys = treedef.node_data()
    if type(prefix) is dict and cls is dict and set(prefix) != set(keys):
        raise BadArgument(f"{where} must have the keys of the argument, {list(keys)}, got {list(prefix)}.")
    return [flag for part, node in zip(parts, nodes) for flag in flags(where, part, node)]
