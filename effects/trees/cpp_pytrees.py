"""jaxlib's pytrees under a registry of our own: imported when the first tree is flattened.

    treedef.unflatten(leaves) == tree    where leaves, treedef = flatten(tree)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when its library is loaded

from jaxlib import _jax

from ..base.value_identity import ByData
from .node_types import Flattened, on_register

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

TREES = _jax.pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
TREES.__name__, TREES.__module__ = "TREES", __name__  # a structure is pickled with the name of its registry

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
    """``flatten``. Raises what a node's flatten function raised, in whose place ``flatten`` gives a leaf."""
    leaves, treedef = flatten(tree, is_leaf)
    if _FAILED:
        failed = _FAILED.pop(threading.get_ident(), None)
        if failed is not None and any([leaf is failed for leaf in leaves]):
            raise failed.error
    return leaves, treedef


def _register(cls: type, parts: Callable[[Any], Flattened], make: Callable[[Any, Sequence[Any]], Any]) -> None:
    """Register a node type, whose static data compare by ``same_data``."""

    def to_iter(x: Any) -> tuple[Any, Any]:
        try:
            children, data = parts(x)
        except BaseException as error:
            _FAILED[threading.get_ident()] = failed = _Failed()
            failed.error = error  # set without a call, for which there may be no level left
            return (failed,), None
        return children, None if data is None else ByData(data)

    TREES.register_node(cls, to_iter, lambda data, children: make(None if data is None else data.value, children))


on_register(_register)
