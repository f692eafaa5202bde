"""Registration of node types: by functions, as classes, as dataclasses; and ``Partial``."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, dataclass_transform

from ..base.errors import BadArgument
from .node_types import Flattened, NodeType, register

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

    def pair(function: Any, x: Any) -> Flattened:
        result = function(x)
        try:
            children, data = result
            return tuple(children), data
        except (TypeError, ValueError):
            raise BadArgument(
                f"flatten: the flatten function of {nodetype.__qualname__} must return (children, static data), "
                f"got {result!r}."
            ) from None

    flatten: Callable[[Any], Flattened] = functools.partial(pair, flatten_func)
    flatten_with_keys = functools.partial(pair, flatten_with_keys_func) if flatten_with_keys_func else None

    def unflatten(data: Any, children: Sequence[Any]) -> Any:
        return unflatten_func(data, tuple(children))

    register(NodeType(nodetype, flatten, unflatten, flatten_with_keys))


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """``register_pytree_node`` for a flatten function that returns a key beside each child."""

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
    """Decorator: values of this class are nodes without leaves whose static data are the value; it must be hashable."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def static(**kwargs: Any) -> Any:
    """A dataclass field that ``register_dataclass`` makes static data."""
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Make a dataclass a node: ``data_fields`` are its children, ``meta_fields`` its static data.

    Also a decorator. By default all fields of the dataclass are data, except those with ``metadata={"static": True}``.
    ``drop_fields`` are neither, and have their defaults after unflattening.

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
    data, meta = _data_and_meta_fields(nodetype, data_fields, meta_fields, tuple(drop_fields))

    data_of, meta_of = _getter(data), _getter(meta)

    def unflatten(static_data: Any, children: Sequence[Any]) -> Any:
        return nodetype(**dict(zip(meta, static_data)), **dict(zip(data, children)))

    register(NodeType(nodetype, lambda x: (data_of(x), meta_of(x)), unflatten, None, data, bool(meta)))
    return nodetype


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """The attributes of these names; for each number of names the fastest way of Python."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda x: tuple([getattr(x, name) for name in names])


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static,))
def frozen_node(cls: C) -> C:
    """Make a class a frozen dataclass, equal to itself alone, and a node, as ``register_dataclass`` makes it."""
    dataclasses.dataclass(frozen=True, eq=False)(cls)
    return register_dataclass(cls)


def _data_and_meta_fields(
    cls: Any, data: Sequence[str] | None, meta: Sequence[str] | None, drop: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the data fields and of the static fields. Raises BadArgument."""
    where = f"register_dataclass({cls.__name__})"
    if (data is None) != (meta is None):
        raise BadArgument(f"{where}: data_fields and meta_fields must both be passed, got {data} and {meta}.")
    fields = [field for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else None
    if data is None or meta is None:
        if fields is None:
            hint = "pass data_fields and meta_fields."
            raise BadArgument(f"{where}: without fields it must be a dataclass.", hint=hint)
        used = [field for field in fields if field.name not in drop]
        data = [field.name for field in used if not field.metadata.get("static")]
        meta = [field.name for field in used if field.metadata.get("static")]
    if both := set(data) & set(meta):
        raise BadArgument(f"{where}: data_fields and meta_fields must not overlap, both have {sorted(both)}.")
    if fields is not None:
        names = {field.name for field in fields}
        listed = set(data) | set(meta) | set(drop)
        unknown = listed - names - set(drop)
        if unknown or names - listed:
            raise BadArgument(
                f"{where}: the fields must be those of the constructor, "
                f"missing {sorted(names - listed)}, unknown {sorted(unknown)}.",
                hint="fields left out on purpose go into drop_fields.",
            )
    return tuple(data), tuple(meta)


class _OpaqueFunction:
    """A ``functools.partial`` as an opaque function: ``functools.partial`` of it would merge the arguments of both."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.function == other.function if isinstance(other, _OpaqueFunction) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """``functools.partial`` that is a node: its arguments are the children, its function is static.

    The arguments of a ``functools.partial`` that is passed as the function are static, and no leaves.

    >>> from handlax.tree import flatten
    >>> flatten(Partial(max, 1, default=2))
    ([1, 2], PyTreeDef(CustomNode(Partial[<built-in function max>], [(*,), {'default': *}])))
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        return super().__new__(cls, _OpaqueFunction(func) if isinstance(func, functools.partial) else func, *args, **kw)


def _flatten_partial(x: Partial) -> Flattened:
    return (x.args, x.keywords), x.func


register(
    NodeType(
        Partial,
        _flatten_partial,
        lambda func, children: Partial(func, *children[0], **children[1]),
        None,
    )
)
