"""Memoising: an operation on operands that it has met before is not performed again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ...effects.arrays import ConcreteArray, perform
from ...effects.errors import need_function
from ...effects.operations import Operation, is_pure
from ...effects.stack import current
from ...effects.wrapping import wraps
from ..handle import handle
from ..handler import handler


def memo(f: Callable[..., Any], *, over: Callable[[Operation], bool] = is_pure) -> Callable[..., Any]:
    """``memo(f)`` gives what ``f`` gives; equal pure operations on equal operands are performed once in each call.

    Arrays are compared by their bits, values of a program that is being traced by being the same. Loops, branches and
    compiled functions each remember for themselves.

    Args:
        over: which operations; all pure ones by default.

    >>> from handlax import make_program, numpy
    >>> len(make_program(memo(lambda x: numpy.sin(x) + numpy.sin(x)))(1.0).ops)
    2
    """
    need_function("memo", f)

    @wraps(f)
    def remembering(*args: Any, **kwargs: Any) -> Any:
        known: dict[Any, Any] = {}

        def once(op: Any, *operands: Any) -> Any:
            key = (current(), op, *map(_key, operands))
            if key not in known:
                known[key] = operands, perform(op, *operands)  # the operands live on, so that their identities stay
            return known[key][1]

        return handle(handler(otherwise=once, over=lambda op: not op.effects and over(op)))(f)(*args, **kwargs)

    return remembering


def _key(x: Any) -> Any:
    if isinstance(x, ConcreteArray):
        return x.type, hashlib.blake2b(x.value.tobytes(), digest_size=16).digest()
    return id(x)
