"""``handlax.extend.core.primitives``: the primitives of all operations; ``add_p`` is that of ``lax.add``."""

from ...effects.programs.primitives import __getattr__ as __getattr__
from ...effects.programs.primitives import primitive_names


def __dir__() -> list[str]:
    return [f"{name}_p" for name in primitive_names()]
