"""Reader: settings that a program reads by name, provided by a handler around it.

    handle(reader(temperature=t))(f)(x)        ask("temperature") == t everywhere in f
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....effects.base.errors import need_function
from ....effects.base.wrapping import wraps
from ....effects.control.callbacks import once_where_shared
from ....effects.core.arrays import perform
from ....effects.core.operation import effect
from ....effects.core.result_trees import AnswerTyped
from ...handlers.answer_types import perform_typed
from ...handlers.handle import handle
from ...handlers.handler import Handler, handler


# the setting of this name
@effect(vmap="per_lane")
class Ask(AnswerTyped):
    label: str
    like: Any = None
    remedy = "give the setting around the function: hx.handle(hx.library.reader(name=value))(f)."

    batch = once_where_shared


def ask(name: str) -> Any:
    """The setting of this name, from the innermost ``reader`` that has it.

    Raises: UnhandledEffect: no handler around has a setting of this name.
    """
    return perform_typed(Ask(name))


def reader(**settings: Any) -> Handler:
    """A handler that answers ``ask`` with these settings, trees of arrays; other names are forwarded.

    >>> from handlax import handle
    >>> handle(reader(rate=0.5))(lambda x: x * ask("rate"))(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return handler({Ask: lambda op: settings[op.label] if op.label in settings else perform(op)})


def local(name: str, change: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``local(name, change)(f)`` is ``f`` with ``ask(name)`` answered by ``change`` of the outer setting.

    Raises: UnhandledEffect: no handler around has a setting of this name.
    """
    need_function("local", change)
    changed = handler({Ask: lambda op: change(perform_typed(Ask(name))) if op.label == name else perform(op)})

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(f)(handle(changed)(f))

    return around
