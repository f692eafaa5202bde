"""``handlax.api_util``, under JAX's names: functions of trees as functions of leaves, and names for messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Signature
from typing import Any, NamedTuple

from .effects.base.errors import BadArgument, BadCall, ShapeMismatch
from .effects.base.wrapping import name_of
from .effects.core.arrays import type_of
from .effects.trees import pytrees
from .effects.trees.paths import keystr
from .extend import linear_util
from .interpreters.core.static_arguments import ArgumentNames, Positions, argument_names, choose_by

__all__ = [
    "DebugInfo", "debug_info", "flatten_fun", "flatten_fun_nokwargs", "infer_argnums_and_argnames",
    "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]

shaped_abstractify = type_of


class DebugInfo(NamedTuple):
    """The transformation that traces a function, the function's name, and the paths of its arguments' leaves."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...]
    result_paths: tuple[str, ...] | None = None


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: Any = None,
) -> DebugInfo:
    """The names that messages use for a call of a function, from its arguments, before it is traced.

    >>> debug_info("jit", lambda x, y: x, (1, {"a": 2}), {}).arg_names
    ('x', "y['a']")
    """
    name = argument_names(fun)
    trees = [(name(i), x) for i, x in enumerate(args) if i not in static_argnums]
    trees += [(key, x) for key, x in kwargs.items() if key not in static_argnames]
    paths = [key + keystr(path) for key, x in trees for path, _ in pytrees.leaves_with_path(x)]
    return DebugInfo(traced_for, sourceinfo or name_of(fun), tuple(paths))


def infer_argnums_and_argnames(
    sig: Signature, argnums: Positions, argnames: ArgumentNames
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Arguments by position and by name; where one of these is None, as the signature has them.

    Raises: BadArgument: the signature has no such position or name.

    >>> from inspect import signature
    >>> infer_argnums_and_argnames(signature(lambda x, y, z: x), (0, 2), None)
    ((0, 2), ('x', 'z'))
    """
    return tuple(choose_by(sig, "the function", "infer", argnums, argnames))  # type: ignore[return-value]


def flatten_fun(f: Callable[..., Any], in_tree: Any) -> tuple[linear_util.WrappedFun, Callable[[], Any]]:
    """``f`` as a function of the leaves of ``(args, kwargs)`` to those of its result, and the structure of the result.

    Raises: BadCall: the structure is asked for before the function was called.
    """

    def call(leaves: Any) -> Any:
        args, kwargs = pytrees.unflatten(in_tree, leaves)
        return f(*args, **kwargs)

    return _flat(f, call)


def flatten_fun_nokwargs(f: Callable[..., Any], in_tree: Any) -> tuple[linear_util.WrappedFun, Callable[[], Any]]:
    """``flatten_fun`` where ``in_tree`` is the structure of positional arguments alone.

    >>> from handlax import tree
    >>> flat, out_tree = flatten_fun_nokwargs(lambda x, y: {"sum": x + y}, tree.structure((1, 2)))
    >>> flat.call_wrapped(1, 2), out_tree()
    ([3], PyTreeDef({'sum': *}))
    """
    return _flat(f, lambda leaves: f(*pytrees.unflatten(in_tree, leaves)))


def _flat(f: Callable[..., Any], call: Callable[[Any], Any]) -> tuple[linear_util.WrappedFun, Callable[[], Any]]:
    """``call``, which applies ``f`` to a list of leaves, with a flat result; and a function for its structure."""
    structures: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        ys, structure = pytrees.flatten(call(leaves))
        structures[:] = [structure]
        return list(ys)

    def out_tree() -> Any:
        if not structures:
            raise BadCall(f"flatten_fun: {name_of(f)} must be called before the structure of its result is asked for.")
        return structures[0]

    wrapped = linear_util.WrappedFun(flat, getattr(f, "debug_info", None))
    wrapped.__name__ = name_of(f)
    return wrapped, out_tree


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """``[f(x, ...) for x, ... in zip(*args)]`` of sequences that have one length.

    Raises: ShapeMismatch: they have not.

    >>> safe_map(max, [1, 5], [3, 2])
    [3, 5]
    """
    sequences = [list(xs) for xs in args]
    lengths = [len(xs) for xs in sequences]
    if len(set(lengths)) > 1:
        raise ShapeMismatch(f"safe_map: the sequences must have one length, got {lengths}.")
    return list(map(f, *sequences))


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """The positions of donated arguments once the static ones are left out.

    Raises: BadArgument: an argument is both.

    >>> rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    both = sorted(set(donate_argnums) & set(static_argnums))
    if both:
        raise BadArgument(f"rebase_donate_argnums: arguments are donated or static, got {both} as both.")
    return tuple(sorted({i - sum(s < i for s in set(static_argnums)) for i in donate_argnums}))
