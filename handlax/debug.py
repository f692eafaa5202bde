"""``handlax.debug``: callbacks, printing and progress bars inside compiled programs."""

from .effects.control.debug_callbacks import DebugCallback as DebugCallback
from .effects.control.debug_callbacks import DebugPrint as DebugPrint
from .effects.control.debug_callbacks import callback as callback
from .effects.control.debug_callbacks import log as log
from .effects.control.debug_callbacks import print as print
from .interpreters.inspection.breakpoint import breakpoint as breakpoint
from .interpreters.inspection.sharding_picture import inspect_array_sharding as inspect_array_sharding
from .interpreters.inspection.sharding_picture import visualize_array_sharding as visualize_array_sharding
from .interpreters.inspection.sharding_picture import visualize_sharding as visualize_sharding
from .interpreters.library.effectful.progress import progress as progress
from .interpreters.library.effectful.progress import tick as tick
