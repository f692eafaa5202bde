"""NumPy's handling of floating-point errors, switched off around evaluate rules: infinities and NaNs are values.

    token = ERRORS.set(SILENT)
    try: ...                     # no warning for 1 / 0
    finally: ERRORS.reset(token)
"""

from __future__ import annotations

from typing import Any

import numpy as np


class ErrorState:
    """The interface of a ``ContextVar``, ``set`` and ``reset``, on the public ``numpy.errstate``."""

    def set(self, value: dict[str, Any]) -> Any:
        state = np.errstate(**value)
        state.__enter__()
        return state

    def reset(self, token: Any) -> None:
        token.__exit__(None, None, None)


def error_state(core: Any) -> tuple[Any, Any]:
    """The variable of NumPy's error handling, and the value of it that ignores all errors.

    It is the context variable that ``numpy.errstate`` sets, where NumPy's private module ``core`` exposes it: setting
    it to a value created once is four times as fast. Else it is an ``ErrorState``.
    """
    try:
        return core.umath._extobj_contextvar, core.umath._make_extobj(all="ignore")
    except AttributeError:
        return ErrorState(), {"all": "ignore"}


ERRORS, SILENT = error_state(getattr(np, "_core", None))
