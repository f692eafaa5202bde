"""``handlax.api_util``: functions of trees as functions of leaves, under JAX's names."""

from .flat_functions import DebugInfo as DebugInfo
from .flat_functions import debug_info as debug_info
from .flat_functions import flatten_fun as flatten_fun
from .flat_functions import flatten_fun_nokwargs as flatten_fun_nokwargs
from .flat_functions import rebase_donate_argnums as rebase_donate_argnums
from .flat_functions import safe_map as safe_map
from .flat_functions import shaped_abstractify as shaped_abstractify
