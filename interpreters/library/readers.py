"""Reader: settings that a program asks for where it needs them, given by whoever calls it.

    handle(reader(temperature=t))(f)(x)        ask("temperature") == t everywhere in f
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...effects.arrays import perform
from ...effects.errors import need_function
from ...effects.operations import effect
from ...effects.stack import current
from ...effects.wrapping import wraps
from ..asking import answer_type
from ..asking import ask as asked
from ..handle import handle
from ..handler import Handler, handler


# the setting of this name
@effect(vmap="per_lane")
class Ask:
    label: str
    like: Any = None
    remedy = "give the setting around the function: hx.handle(hx.library.reader(name=value))(f)."

    def result_type(op):
        return answer_type(op)

    def batch(op, dims):
        y = current().answer(op, ())  # all lanes are given the same
        return y, (None,) * len(y)


def ask(name: str) -> Any:
    """The setting of this name, from the innermost ``reader`` that has it.

    Raises: UnhandledEffect: no handler around has a setting of this name.
    """
    return asked(Ask(name))


def reader(**settings: Any) -> Handler:
    """A handler that answers ``ask`` with these settings, trees of arrays; it passes on what it is asked for else.

    >>> from handlax import handle
    >>> handle(reader(rate=0.5))(lambda x: x * ask("rate"))(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return handler({Ask: lambda op: settings[op.label] if op.label in settings else perform(op)})


def local(name: str, change: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``local(name, change)(f)`` is ``f`` in which ``ask(name)`` gives ``change`` of what it gives outside.

    Raises: UnhandledEffect: no handler around has a setting of this name.
    """
    need_function("local", change)
    changed = handler({Ask: lambda op: change(asked(Ask(name))) if op.label == name else perform(op)})

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(f)(handle(changed)(f))

    return around
