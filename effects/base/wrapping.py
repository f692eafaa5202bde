"""Functions by name; ``wraps`` for transformed ones, which have name, signature and docstring of the original; and
``unwound`` for those that leave context variables of the package as they were.

    STACK = context_variable("handlax_stack", BASE)
    unwound(f)(*args)       f(*args); if it raises, all these variables are as they were at the call

A ``with`` block that is written in Python cannot promise that. An exception of a signal, such as Control-C, arrives
between two instructions, the first of ``__exit__`` included, which then puts nothing back. In the middle of a program
that is of no account, as long as the function that the user called is ``unwound``. NumPy's handling
of floating-point errors is put back as those of the package are: rules switch it off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_METHODS = "_own_methods"  # the attribute that lists the names of them
_DESCRIPTION = ("__module__", "__qualname__", "__doc__")


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a function; of a partial application the function's, of any other callable without one its class's.

    >>> name_of(functools.partial(max, 1)), name_of(FunctionType)
    ('max', 'function')
    """
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = _text(fun, "__name__")
    return type(fun).__name__ if name is None else name


def renamed(function: F, name: str) -> F:
    """``function`` under another name, by which tracebacks and errors speak of it: its code has the name, too."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    return function


def wraps(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    """``functools.wraps`` of any callable, without the methods that ``with_methods`` gave it.

    Callables without a name, or with one that is no string, have that of ``name_of``.
    """
    attributes = getattr(fun, "__dict__", {})
    if _METHODS in attributes:
        attributes = {name: x for name, x in attributes.items() if name not in attributes[_METHODS]}

    def decorate(wrapper: Any) -> Any:
        wrapper.__dict__.update(attributes)
        if type(fun) is FunctionType:
            return functools.update_wrapper(wrapper, fun, updated=())
        wrapper.__name__ = wrapper.__qualname__ = name_of(fun)
        for attribute in _DESCRIPTION:
            text = _text(fun, attribute)
            if text is not None:
                setattr(wrapper, attribute, text)
        wrapper.__wrapped__ = fun
        return wrapper

    return decorate


def with_methods(function: F, methods: Mapping[str, Any]) -> F:
    """``function`` with attributes of its own: functions made of it have its others, and not these.

        not hasattr(wraps(with_methods(f, {"lower": lower}))(g), "lower")
    """
    function.__dict__.update(methods, **{_METHODS: frozenset((*methods, _METHODS))})
    return function


def _text(fun: Any, attribute: str) -> str | None:
    """An attribute of a callable if it is a string, else None."""
    try:
        value = getattr(fun, attribute, None)
    except Exception:  # a property of the user's
        return None
    return value if isinstance(value, str) else None


def _error_setting() -> Any:
    """NumPy's context variable for floating-point errors, and its value that ignores all of them."""
    context = Context()
    context.run(np.seterr, all="ignore")
    (setting,) = context.items()
    return setting


ERRORS, SILENT = _error_setting()


def errors_ignored(f: Callable[..., T], /, *xs: Any) -> T:
    """``f(*xs)`` with NumPy's floating-point errors ignored during the call.

    Between the end of the call and the end of the block no signal arrives, as in ``np.errstate``, a class of Python's.
    """
    around = ERRORS.get()
    try:
        ERRORS.set(SILENT)
        return f(*xs)
    finally:
        ERRORS.set(around)


def ignoring_errors(f: F) -> F:
    """Decorator: ``f`` is called by ``errors_ignored``."""


    @functools.wraps(f)
    def call(*xs: Any) -> Any:
        return errors_ignored(f, *xs)

    return call  # type: ignore[return-value]


_VARIABLES: list[ContextVar[Any]] = [ERRORS]


def context_variable(name: str, default: T) -> ContextVar[T]:
    """A context variable that ``unwound`` functions put back."""
    variable = ContextVar(name, default=default)
    _VARIABLES.append(variable)
    return variable


def changed(before: Context) -> Iterator[tuple[ContextVar[Any], Any]]:
    """The scoped variables that have another value than in the context ``before``, each with its value there."""
    for variable in _VARIABLES:
        value = before.run(variable.get)
        if value is not variable.get():
            yield variable, value


def is_scoped(x: object) -> bool:
    """Whether an object is one of the scoped variables."""
    return any([x is variable for variable in _VARIABLES])


def put_back(before: Context) -> None:
    """Give every scoped variable the value that it has in the context ``before``."""
    for variable, value in changed(before):
        variable.set(value)


def unwound(f: F) -> F:
    """Decorator: an exception that leaves ``f`` finds the scoped variables as they were when ``f`` was called."""

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = copy_context()  # takes as long for any number of variables: 0.05 us
        try:
            return f(*args, **kwargs)
        except BaseException:
            put_back(before)
            raise

    return call
