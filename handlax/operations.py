"""The classes of operations, by name: ``operations.Sin``; what handlers, rules and analyses of programs ask for.

Every operation of the package is here as soon as its block is written; its module is loaded when it is asked for.
"""

from .effects.core.operation import Operation as Operation
from .effects.programs.operation_names import every_operation as _every_operation


def __getattr__(name: str) -> type[Operation]:
    """The operation whose class has this name.

    Raises: AttributeError: the package has no operation of that name.
    """
    if not name.startswith("_"):
        for kind in _package_operations():
            if kind.__name__ == name:
                globals()[name] = kind
                return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted(["Operation", *[kind.__name__ for kind in _package_operations()]])


def _package_operations() -> list[type[Operation]]:
    """All classes of operations in this package; those of users are left out."""
    package = __name__.partition(".")[0] + "."
    return [kind for kind in _every_operation() if kind.__module__.startswith(package)]
