"""The user's own pytree nodes: registration, dataclasses, ``Partial``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .errors import BadArgument
from .treedefs import Keyed, Kind, Parts, indexed, register
from .treekeys import GetAttrKey

T = TypeVar("T")
C = TypeVar("C", bound=type)


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make values of exactly this type nodes.

        unflatten_func(data, children) == x    where children, data = flatten_func(x)

    ``data`` must be hashable and comparable.

    Raises: BadArgument: the type is registered already.
    """

    def pair(function: Any, x: Any) -> Parts:
        result = function(x)
        try:
            children, data = result
        except (TypeError, ValueError):
            raise BadArgument(
                f"flatten: the flatten function of {nodetype.__qualname__} must give (children, static data), "
                f"got {result!r}."
            ) from None
        return tuple(children), data

    def parts(x: Any) -> Parts:
        return pair(flatten_func, x)

    keyed: Callable[[Any], Keyed] = indexed(parts)
    if flatten_with_keys_func is not None:
        keyed = functools.partial(pair, flatten_with_keys_func)
    register(Kind(nodetype, nodetype.__name__, parts, lambda data, xs: unflatten_func(data, tuple(xs)), keyed))


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """``register_pytree_node`` from the function that gives a key beside each child."""

    def without_keys(x: T) -> tuple[Iterable[Any], Any]:
        pairs, data = flatten_with_keys(x)
        return [child for _, child in pairs], data

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: C) -> C:
    """Decorator: a class with ``tree_flatten(self)`` and the class method ``tree_unflatten(data, children)``."""
    known: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), known.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: C) -> C:
    """Decorator: as ``register_pytree_node_class``, with ``tree_flatten_with_keys(self)``."""
    known: Any = cls
    plain = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), known.tree_unflatten, plain)
    return cls


def register_static(cls: C) -> C:
    """Decorator: values of this class are nodes without leaves, static data themselves; they must be hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def static(**kwargs: Any) -> Any:
    """A dataclass field that ``register_dataclass`` takes as static data."""
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Make a dataclass a node: ``data_fields`` are its children, ``meta_fields`` its static data.

    Also a decorator. Without fields they are read off the dataclass: those with ``metadata={"static": True}`` are
    static. ``drop_fields`` are neither, and take their defaults when the node is built again.

    Raises: BadArgument: the fields overlap, or are not those of the dataclass that its constructor takes.

    >>> from handlax.tree import flatten
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = static(default="dense")
    >>> flatten(Layer(1.0))
    ([1.0], PyTreeDef(CustomNode(Layer[('dense',)], [*])))
    """
    data, meta = _fields_of(nodetype, data_fields, meta_fields, tuple(drop_fields))

    def parts(x: Any) -> Parts:
        return [getattr(x, name) for name in data], tuple([getattr(x, name) for name in meta])

    def make(static_data: Any, children: Sequence[Any]) -> Any:
        return nodetype(**dict(zip(meta, static_data)), **dict(zip(data, children)))

    def keyed(x: Any) -> Keyed:
        return [(GetAttrKey(name), getattr(x, name)) for name in data], tuple([getattr(x, name) for name in meta])

    register(Kind(nodetype, nodetype.__name__, parts, make, keyed))
    return nodetype


def _fields_of(
    cls: Any, data: Sequence[str] | None, meta: Sequence[str] | None, drop: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    where = f"register_dataclass({cls.__name__})"
    if (data is None) != (meta is None):
        raise BadArgument(f"{where}: data_fields and meta_fields must come together, got {data} and {meta}.")
    fields = [field for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else None
    if data is None or meta is None:
        if fields is None:
            hint = "pass data_fields and meta_fields."
            raise BadArgument(f"{where}: without fields it must be a dataclass.", hint=hint)
        kept = [field for field in fields if field.name not in drop]
        data = [field.name for field in kept if not field.metadata.get("static")]
        meta = [field.name for field in kept if field.metadata.get("static")]
    if both := set(data) & set(meta):
        raise BadArgument(f"{where}: data_fields and meta_fields must not overlap, both have {sorted(both)}.")
    if fields is not None:
        names = {field.name for field in fields}
        given = set(data) | set(meta) | set(drop)
        unknown = given - names - set(drop)
        if unknown or names - given:
            raise BadArgument(
                f"{where}: the fields must be those of the constructor, "
                f"missing {sorted(names - given)}, unknown {sorted(unknown)}.",
                hint="fields left out on purpose go into drop_fields.",
            )
    return tuple(data), tuple(meta)


class _Whole:
    """A ``functools.partial`` as one function: ``functools.partial`` would take it apart."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.function == other.function if isinstance(other, _Whole) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """``functools.partial`` that is a node: its arguments are the children, its function is static.

    A ``functools.partial`` given as the function stays whole, its own arguments are no leaves.

    >>> from handlax.tree import flatten
    >>> flatten(Partial(max, 1, default=2))
    ([1, 2], PyTreeDef(CustomNode(Partial[<built-in function max>], [(*,), {'default': *}])))
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **kw)


def _partial_parts(x: Partial) -> Parts:
    return (x.args, x.keywords), x.func


register(
    Kind(
        Partial,
        "Partial",
        _partial_parts,
        lambda func, children: Partial(func, *children[0], **children[1]),
        indexed(_partial_parts),
    )
)
