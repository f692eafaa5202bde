"""``handlax.stages``: the classes of what ``jit(f).trace(x).lower().compile()`` gives, step by step."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from .lowering.jit.ahead_of_time import ArgInfo as ArgInfo
from .lowering.jit.ahead_of_time import Compiled as Compiled
from .lowering.jit.ahead_of_time import Lowered as Lowered
from .lowering.jit.ahead_of_time import Traced as Traced

CompilerOptions: TypeAlias = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """What ``jit`` returns: a function that is traced, lowered and compiled when it is called, or step by step.

    >>> from handlax import jit
    >>> isinstance(jit(abs), Wrapped), isinstance(abs, Wrapped)
    (True, False)
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for these arguments."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The function traced for arguments of these types."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function in StableHLO for arguments of these types."""
