"""The base of all errors; a message has three lines.

    dot_general: contracting sizes must agree, got 4 (lhs f32[3,4], dim 1) and 2 (rhs f32[2,5], dim 0).
      at model.py:17, under vmap('batch') > grad
      hint: rhs would fit transposed.

What must hold and what was found; the user's line and the handlers in force, taken from the stack when the error is
created; the remedy, where one is known, else the page of the class.

That page is the docstring of the class: a sentence, the cause, a program that raises it, and after ``Remedy:`` one
that does not. ``help(hx.errors.ShapeMismatch)`` shows it, and so does ``python -m pydoc``, called with what a traceback
prints, ``handlax.errors.ShapeMismatch``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self


def shortened(text: str, most: int) -> str:
    """``text``, without its middle if it is longer than ``most`` characters.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 14)
    'abcdef ... xyz'
    """
    if len(text) <= most:
        return text
    tail = (most - 5) // 3
    return f"{text[: most - 5 - tail]} ... {text[len(text) - tail :]}"


class HandlaxError(Exception):
    """The base of all errors of handlax.

    It is caught where a program goes on after any of them; what is raised is always one of the classes below it.
    ``what`` says what must hold and what was found, ``where`` the user's line and the handlers in force, as ``place()``
    gives it, ``hint`` the remedy, or None: then the last line of the message names the page of the class.
    ``what`` loses its middle beyond 1200 characters, and ``hint`` beyond 700, unless ``quotes``: the text is the
    user's, or XLA's.

    >>> hnp.ones(2) + hnp.ones(3)
    Traceback (most recent call last):
    handlax.errors.ShapeMismatch: add: shapes must broadcast, got (2,) and (3,).
      at ...
      hint: sizes 2 and 3 differ and neither is 1; shapes are aligned at their last dimension.

    Remedy: catch the class that you expect, or a builtin exception that it is too.

    >>> try:
    ...     hnp.ones(2) + hnp.ones(3)
    ... except ValueError as error:
    ...     print(error.what)
    add: shapes must broadcast, got (2,) and (3,).

    Elsewhere: JAX raises builtin exceptions, and a few of its own for traced values.
    Its ``JAXTypeError`` is another name of this class.
    """

    quotes = False
    place: ClassVar[Callable[[], str]]
    page: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}."):  # one of hx.errors, which is its name in tracebacks too
            _publish(cls)

    def __init__(self, what: str, *, hint: str | None = None):
        self.what = what if self.quotes else shortened(what, 1200)
        self.where = HandlaxError.place()
        self.hint = hint if hint is None or self.quotes else shortened(hint, 700)
        super().__init__(str(self))

    def __str__(self) -> str:
        return f"{self.what}\n  {self.where}\n  hint: {self.hint or self.page}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)

    def moved(self, where: str) -> Self:
        """The error itself, which now says ``where``: another line than the one at which it was created."""
        self.where = where
        self.args = (str(self),)
        return self


def _publish(cls: type[HandlaxError]) -> None:
    """Make a class one of ``handlax.errors``; classes derived elsewhere keep its page."""
    cls.__module__ = "handlax.errors"
    cls.page = f"help(hx.errors.{cls.__name__}) explains it."


_publish(HandlaxError)


def _rebuild(cls: type[HandlaxError], what: str, where: str, hint: str | None) -> HandlaxError:
    return cls(what, hint=hint).moved(where)
