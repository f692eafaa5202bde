"""Errors that passed through jaxlib's ``flatten``: what they are about, and what they leave behind."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from ..base.errors import BadArgument
from .node_types import Unsortable, flatten_with_keys_of, is_shielded
from .paths import KeyPath, path_text

_leave_recursive_call = ctypes.pythonapi.Py_LeaveRecursiveCall


def too_deep() -> BadArgument:
    """The error of a tree for which there are not enough levels of the recursion limit."""
    return BadArgument("flatten: the tree is nested too deeply, or contains itself.")


def recovered(
    error: BaseException, tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None = None
) -> BaseException:
    """The error to raise for one of jaxlib's ``flatten(tree)``, after which the thread is as it was before the call.

    An error that passes through ``flatten`` keeps a level of the recursion limit for each node around the failed one.
    It is of a dict whose keys cannot be sorted, or of an attribute: all else is called by functions that raise nothing.
    The failed node is found by taking the tree apart again, so that one that then does not fail keeps its levels.
    """
    if isinstance(error, SystemError):  # a RecursionError of ``flatten`` itself, which leaves each node
        return too_deep()
    error = error.__cause__ or error  # what a comparison of keys raised is the cause of jaxlib's own error
    first = None
    for cls, depth, found in _failures(tree, is_leaf, (Exception, type(error))):
        first = first or found
        if not is_shielded(cls):
            for _ in range(depth):
                _leave_recursive_call()
            break
    return first or error


def _failures(
    tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None, kinds: tuple[type[BaseException], ...]
) -> Iterator[tuple[type, int, BaseException]]:
    """The nodes that cannot be taken apart, in order: the type of each, how many nodes are around it, and the error.

    ``kinds``: the classes of errors; others, such as the user's interrupt of this search, end it.
    """
    rest: list[tuple[Any, KeyPath, int]] = [(tree, (), 0)]
    while rest:
        x, path, depth = rest.pop()
        flatten_with_keys = flatten_with_keys_of(type(x))
        if flatten_with_keys is None or (is_leaf is not None and is_leaf(path, x)):
            continue
        try:
            pairs, _ = flatten_with_keys(x)
        except Unsortable as error:
            yield type(x), depth, BadArgument(f"{error.what[:-1]} at {path_text(path)}.", hint=error.hint)
        except kinds as error:
            yield type(x), depth, error
        else:
            children = [(child, path if key is None else (*path, key), depth + 1) for key, child in pairs]
            rest += reversed(children)
