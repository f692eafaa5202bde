"""The classes of operations, by name: ``operations.Sin``; what handlers, rules and analyses of programs ask for.

Every operation of the package is here as soon as its block is written. Its module is imported when it is asked for;
modules of others only where its name in programs is not that of its class.
"""

from collections.abc import Iterable as _Iterable

from .effects.base.source_locations import is_ours as _is_ours
from .effects.core.operation import OPERATIONS as _OPERATIONS
from .effects.core.operation import Operation as Operation
from .effects.core.operation import snake_case as _snake_case
from .effects.programs.operation_names import every_operation as _every_operation
from .effects.programs.operation_names import operation_called as _operation_called


def __getattr__(name: str) -> type[Operation]:
    """The operation whose class has this name.

    Raises: AttributeError: the package has no operation of that name.
    """
    if not name.startswith("_"):
        _operation_called(_snake_case(name))
        kind = _named(name, _OPERATIONS.values()) or _named(name, _every_operation())
        if kind is not None:
            globals()[name] = kind
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted(["Operation", *[kind.__name__ for kind in _every_operation() if _is_ours(kind.__module__)]])


def _named(name: str, kinds: _Iterable[type[Operation]]) -> type[Operation] | None:
    """The class of this name that the package defines, or None."""
    return next((kind for kind in kinds if kind.__name__ == name and _is_ours(kind.__module__)), None)
