"""checkpoint: reverse mode computes again instead of keeping."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..effects import config, trees
from ..effects.arrays import Array, lift
from ..effects.errors import BadArgument, need_function
from ..effects.operations import bits
from ..effects.rematerialise import Checkpoint
from ..effects.stack import STACK
from ..effects.wrapping import wraps
from . import traces
from .statics import Choice, Parts, argument_names, choose
from .traces import Call, leaf_names, leaf_types


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[..., Any]:
    """``fun``, of which reverse mode keeps the arguments and what ``policy`` allows; the rest it computes again.

        checkpoint(f)(x) == f(x)        grad(checkpoint(f))(x) == grad(f)(x)

    Effects: performed once, in the forward pass; their results are kept whatever the policy says.

    Args:
        prevent_cse: whether the compiler is kept from finding the second computation in the first; inside a ``scan``
            it cannot, and False is cheaper. A tree of bools for the arguments means all as soon as one is true.
        policy: which values may be kept (``checkpoint_policies``, ``memory_budget``): asked about each operation as
            ``policy(op, *operand_types, **fields)``, it answers with a bool, ``Saveable``, ``Recompute`` or
            ``Offloadable``. None: none of them.
        static_argnums, static_argnames: arguments that are Python values; one trace for each value. They need not be
            hashable.

    Raises: TracerBoolConversionError: Python control flow depends on an argument that is not static. NotAnArray: an
    argument or a result that is no array. BadArgument: the policy is no function, or gives no verdict.

    Source: Griewank & Walther 2008, Evaluating Derivatives, chapter 12.

    >>> from handlax import grad, numpy as hnp
    >>> grad(checkpoint(lambda x: hnp.sin(hnp.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    need_function("checkpoint", fun)
    if policy is not None and not callable(policy):
        raise BadArgument(
            f"checkpoint: the policy must be a function, got {policy!r}.", hint="take one of hx.checkpoint_policies."
        )
    guarded = _any("prevent_cse", prevent_cse)
    names = tuple([static_argnames] if isinstance(static_argnames, str) else static_argnames)
    numbers = None if isinstance(static_argnums, tuple) and not static_argnums else static_argnums
    static = choose(fun, "static", numbers, names or None)
    own: dict[Any, Any] = {}

    @wraps(fun)
    def rematerialised(*args: Any, **kwargs: Any) -> Any:
        call, leaves = _call(fun, static, args, kwargs)
        trace = traces.trace(call, own)
        operands = (*trace.captured, *[x if isinstance(x, Array) else lift(x) for x in leaves])
        return trace.unflatten(STACK.get().answer(Checkpoint((trace.program,), policy, guarded), operands))

    return rematerialised


def _any(name: str, tree: Any) -> bool:
    leaves = trees.leaves(tree)
    if not all(isinstance(leaf, bool) for leaf in leaves):
        raise BadArgument(f"checkpoint: {name} must be a bool, or a tree of them, got {tree!r}.")
    return any(leaves)


def _call(
    fun: Callable[..., Any], static: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Call, Sequence[Any]]:
    """The call as it is traced, and the leaves of its dynamic arguments."""
    name = getattr(fun, "__name__", type(fun).__name__)
    parts = _split(static, args, kwargs) if static else None
    places = list(range(len(args)))
    if parts is not None:
        fixed = {n for n, _ in parts.static_args}
        places = [n for n in places if n not in fixed]
        args, kwargs = parts.args, parts.kwargs
    leaves, tree = traces.flatten((args, kwargs))

    def called(i: int) -> str:
        return leaf_names(lambda n: argument_names(fun)(places[n]), args, kwargs)(i)

    types = leaf_types(leaves, called, name)
    key = (config.current(), None if parts is None else parts.key, tree, types)
    merge = None if parts is None else parts.merge
    return Call(fun, name, tree, types, merge, key, "checkpoint"), leaves


def _split(static: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts:
    """A call taken apart as for ``jit``, but static arguments need not be hashable."""
    places = static.at(len(args))
    fixed = tuple([(i, args[i]) for i in sorted(places)])
    named = tuple([(name, kwargs[name]) for name in sorted(kwargs) if name in static.names])
    key = (len(args), tuple([(i, static_key(x)) for i, x in fixed]), tuple([(n, static_key(x)) for n, x in named]))
    rest = tuple([x for i, x in enumerate(args) if i not in places])
    return Parts(key, fixed, named, rest, {n: x for n, x in kwargs.items() if n not in static.names})


def static_key(x: Any, depth: int = 8) -> Any:
    """A static argument as what traces are kept under: containers and dataclasses by what they hold at this moment."""
    kind = type(x)
    if depth:
        if kind is list or isinstance(x, tuple):
            return kind, tuple([static_key(item, depth - 1) for item in x])
        if kind is dict:
            return kind, tuple([(static_key(k, depth - 1), static_key(v, depth - 1)) for k, v in x.items()])
        if kind is set:
            return kind, frozenset([static_key(item, depth - 1) for item in x])
        if kind is np.ndarray and x.dtype.kind != "O":
            return kind, x.dtype, x.shape, x.tobytes()
    try:
        return kind, bits(x)
    except TypeError:
        pass
    if depth and dataclasses.is_dataclass(x):
        return kind, tuple([static_key(getattr(x, field.name), depth - 1) for field in dataclasses.fields(x)])
    return kind, _Held(x)


class _Held:
    """A value that cannot be hashed: equal to itself, and to what says that it is equal."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held):
            return False
        if self.value is other.value:
            return True
        return not isinstance(self.value, Array) and (self.value == other.value) is True

    def __hash__(self) -> int:
        return hash(type(self.value))
