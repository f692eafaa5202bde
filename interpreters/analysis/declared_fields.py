"""Whether the fields of operations have the types that their blocks declare, by annotations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin

from ...effects.base.caches import cached
from ...effects.base.source_locations import is_ours
from ...effects.core.operation import Operation
from ...effects.types.extent import Extent

Test = Callable[[Any], bool]


def wrong_fields(x: Any) -> Iterator[str]:
    """Each field of an operation or named tuple that does not have the type declared, as a message.

    Only of classes of this package: what users write as annotations need not be types.
    """
    for name, declared, admits in _declared_fields(type(x)):
        value = getattr(x, name)
        if not admits(value):
            yield f"{name} must be of the type {declared}, got {value!r}"


@cached("declared fields")
def _declared_fields(kind: type) -> tuple[tuple[str, str, Test], ...]:
    """Each field of such a class: its name, its annotation, and the test whether it admits a value."""
    if not is_ours(kind.__module__):
        return ()
    names = kind._names if issubclass(kind, Operation) else getattr(kind, "_fields", ())
    return tuple([(name, *_declared(kind, name)) for name in names])


def _declared(kind: type, name: str) -> tuple[str, Test]:
    """The annotation of a field where a class or a base of it has it, and its test."""
    owner = next(cls for cls in kind.__mro__ if name in inspect.get_annotations(cls))
    annotation = inspect.get_annotations(owner)[name]
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)
    try:
        named = isinstance(annotation, (str, ForwardRef))
        declared = eval(text, vars(sys.modules[owner.__module__])) if named else annotation
    except NameError:  # only checkers of types import it
        declared = Any
    return text, _test(declared)


def _test(declared: Any) -> Test:
    """Whether a value has this type, such as ``tuple[int, ...] | None``; an integer may be a symbolic dimension."""
    parts = [*map(_test, get_args(declared))] if get_origin(declared) in (tuple, Union, UnionType) else []
    match get_origin(declared):
        case _ if declared is Any or declared is ...:
            return lambda x: True
        case _ if declared is int:
            return lambda x: type(x) is int or isinstance(x, Extent)
        case origin if origin is Union or origin is UnionType:
            return lambda x: any([part(x) for part in parts])
        case origin if origin is tuple and get_args(declared)[-1] is ...:
            return lambda x: isinstance(x, tuple) and all(map(parts[0], x))
        case origin if origin is tuple:
            return lambda x: isinstance(x, tuple) and len(x) == len(parts) and all([p(y) for p, y in zip(parts, x)])
        case origin:
            return lambda x: isinstance(x, origin or declared) and not any(wrong_fields(x))
