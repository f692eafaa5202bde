"""``handlax.stages``: the classes of what ``jit(f).trace(x).lower().compile()`` gives, step by step."""

from __future__ import annotations

from typing import TypeAlias

from .lowering.jit.ahead_of_time import ArgInfo as ArgInfo
from .lowering.jit.ahead_of_time import Compiled as Compiled
from .lowering.jit.ahead_of_time import Lowered as Lowered
from .lowering.jit.ahead_of_time import Traced as Traced
from .lowering.jit.ahead_of_time import Wrapped as Wrapped

CompilerOptions: TypeAlias = dict[str, str | bool]
