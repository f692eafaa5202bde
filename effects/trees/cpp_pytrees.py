"""jaxlib's pytrees under a registry of our own: imported when the first tree is flattened.

    treedef.unflatten(leaves) == tree    where leaves, treedef = flatten(tree)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument
from ..base.value_identity import ByData
from . import path_keys  # noqa: F401, before jaxlib, for which it sets the environment
from .failures import recovered, too_deep
from .node_types import Flattened, FlattenedWithKeys, NodeType, Unsortable, flatten_with_keys_of, on_register
from .paths import KeyPath
from .registration import register_dataclass, register_pytree_node

if TYPE_CHECKING:

    class PyTreeDef:
        """The structure of a tree: its nodes, with ``*`` in place of each leaf. Immutable, hashable.

        Static data compare by type and value, so ``1``, ``1.0`` and ``True`` are three structures; the keys of a
        ``dict`` compare by ``==``. Neither may change, for caches keep them.

        It prints as ``PyTreeDef({'a': *, 'b': (*, None)})``.
        """

        num_leaves: int
        num_nodes: int

        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        @staticmethod
        def from_node_data_and_children(registry: Any, node_data: Any, children: Any, /) -> PyTreeDef: ...

else:
    from jaxlib._jax.pytree import PyTreeDef

from jaxlib._jax.pytree import PyTreeRegistry

TREES: Any = PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
TREES.__name__, TREES.__module__ = "TREES", __name__  # a structure is pickled with the name of its registry

_flatten_with_path, _register_node = TREES.flatten_with_path, TREES.register_node
_register_dataclass_node = TREES.register_dataclass_node
flatten: Callable[..., tuple[list[Any], PyTreeDef]] = TREES.flatten
"""``leaves, treedef = flatten(tree, is_leaf=None)``."""

assemble: Callable[..., PyTreeDef] = PyTreeDef.from_node_data_and_children
"""``treedef == assemble(TREES, treedef.node_data(), treedef.children())``."""


class _Failed:
    """The leaf in place of the children of a node whose flatten function raised.

    An exception must not pass through jaxlib's ``flatten``, which would keep a level of Python's recursion limit for
    each node around the failed one.
    """

    __slots__ = ("error",)
    error: BaseException


_FAILED: dict[int, _Failed] = {}  # the last of each thread that has not been raised


def checked_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves and the structure of a tree. Raises what ``is_leaf`` or a node's flatten function raises.

    jaxlib, which calls these functions, gets a leaf in place of the error, which is raised after it.
    """
    shield = at_path = None
    if is_leaf is not None:
        shield, at_path = _Shield(is_leaf), lambda _, x: is_leaf(x)
    try:
        leaves, treedef = flatten(tree, shield and shield.stop)
    except BaseException as error:
        raise recovered(error, tree, at_path) from None
    if _FAILED:
        _raise_failed(leaves, tree, at_path)
    if shield is not None:
        shield.raise_error()
    return leaves, treedef


def _raise_failed(leaves: list[Any], tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None) -> None:
    """Raise the error for which one of these leaves stands."""
    failed = _FAILED.pop(threading.get_ident(), None)
    if failed is not None and any([leaf is failed for leaf in leaves]):
        error = failed.error
        raise recovered(error, tree, is_leaf) if isinstance(error, Unsortable) else error


class _Shield:
    """``is_leaf`` for jaxlib: an error ends the walk, as all that follows is a leaf, and is raised after it.

    Nor may jaxlib fail to call ``stop``, for want of levels of the recursion limit, where no error can be caught. At
    the next node the call takes two levels more than here: that of the node around it, and that of ``stop`` itself.
    So each call first takes two, and one to spare; where there are none, this is the error that ends the walk.
    """

    __slots__ = ("is_leaf", "error")

    def __init__(self, is_leaf: Callable[..., bool]):
        self.is_leaf = is_leaf
        self.error: BaseException | None = None

    def stop(self, *x: Any) -> bool | None:
        """``is_leaf(*x)``."""
        if self.error is not None:
            return True
        try:
            _NESTED == _NESTED_TOO  # noqa: B015, compares lists to the third level, each of which takes one
            answer = self.is_leaf(*x)
            if answer is False or answer is True or answer is None:
                return answer
            raise BadArgument(f"flatten: is_leaf must return a bool, got {answer!r}.")
        except BaseException as error:
            self.error = error  # set without a call, for which there may be no level left
            return True

    def raise_error(self) -> None:
        """Raise the error of ``is_leaf``, if there was one."""
        if isinstance(self.error, RecursionError):
            raise too_deep() from self.error
        if self.error is not None:
            raise self.error


_NESTED: list[Any] = [[[0]]]
_NESTED_TOO: list[Any] = [[[0]]]


class _UnnamedChildren(threading.local):
    """How many nodes this thread has flattened one of whose children has the key ``None``."""

    nodes = 0


_UNNAMED = _UnnamedChildren()


def checked_flatten_with_path(
    tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """``checked_flatten`` with the path of keys, none of which is ``None``, beside each leaf."""
    before, shield = _UNNAMED.nodes, None
    if is_leaf is not None:
        shield = _Shield(lambda path, x: is_leaf(path if _UNNAMED.nodes == before else _named(path), x))
    try:
        leaves, treedef = _flatten_with_path(tree, shield and shield.stop)
    except BaseException as error:
        raise recovered(error, tree, is_leaf) from None
    if _FAILED:
        _raise_failed([leaf for _, leaf in leaves], tree, is_leaf)
    if shield is not None:
        shield.raise_error()
    if _UNNAMED.nodes != before:
        leaves = [(_named(path), leaf) for path, leaf in leaves]
    return leaves, treedef


def _named(path: KeyPath) -> KeyPath:
    """The path without the keys that add nothing to it."""
    return tuple([key for key in path if key is not None])


def _guarded(parts: Callable[[Any], Flattened], with_keys: bool) -> Callable[[Any], tuple[Any, Any]]:
    """A node's flatten function for jaxlib, which lets no exception pass; static data compare by ``same_data``."""

    def to_iter(x: Any) -> tuple[Any, Any]:
        try:
            children, data = parts(x)
        except BaseException as error:
            _FAILED[threading.get_ident()] = failed = _Failed()
            failed.error = error  # set without a call, for which there may be no level left
            return ((None, failed) if with_keys else failed,), None
        return children, None if data is None else ByData(data)

    return to_iter


def _in_pairs(flatten_with_keys: Callable[[Any], FlattenedWithKeys]) -> Callable[[Any], Flattened]:
    """``flatten_with_keys`` that gives tuples, as jaxlib needs them, and counts nodes with unnamed children."""

    def flatten_in_pairs(x: Any) -> Flattened:
        pairs, data = flatten_with_keys(x)
        pairs = [(key, child) for key, child in pairs]
        if any([key is None for key, _ in pairs]):
            _UNNAMED.nodes += 1
        return pairs, data

    return flatten_in_pairs


def _register(node: NodeType) -> None:
    if node.attributes_alone:
        _register_dataclass_node(node.cls, node.fields, ())
        return
    with_keys = flatten_with_keys_of(node.cls) if node.fields else None
    if node.flatten_with_keys is not None:
        with_keys = _in_pairs(node.flatten_with_keys)
    _register_node(
        node.cls,
        _guarded(node.flatten, False),
        lambda data, children: node.unflatten(None if data is None else data.value, children),
        _guarded(with_keys, True) if with_keys else None,
    )


on_register(_register)


def _flatten_one_level(tree: Any) -> tuple[tuple[Any, ...], Any] | None:
    """The children and the static data of the root of a pytree; None if the root is a leaf.

    >>> _flatten_one_level({"b": 1, "a": (2, 3)})
    (((2, 3), 1), ('a', 'b'))
    """
    level = _flatten_one_level_with_keys(tree)
    return None if level is None else (tuple([child for _, child in level[0]]), level[1])


def _flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], Any] | None:
    """The children of a node, each with its key, and the static data; None: it is a leaf."""
    flatten_with_keys = flatten_with_keys_of(type(tree))
    if flatten_with_keys is None:
        return None
    pairs, data = flatten_with_keys(tree)
    return tuple([(key, child) for key, child in pairs]), data


# What users of the registry call takes and gives what they register: jaxlib has their functions guarded, and their
# static data wrapped. A subclass would do as well, but jaxlib takes a tenth of a microsecond more to know it.
TREES.flatten, TREES.flatten_with_path = checked_flatten, checked_flatten_with_path
TREES.flatten_one_level, TREES.flatten_one_level_with_keys = _flatten_one_level, _flatten_one_level_with_keys
TREES.is_node = lambda cls: flatten_with_keys_of(cls) is not None
TREES.register_node, TREES.register_dataclass_node = register_pytree_node, register_dataclass
