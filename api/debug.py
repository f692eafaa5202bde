"""Looking into programs while they run."""

from .effects.debugging import DebugCallback as DebugCallback
from .effects.debugging import DebugPrint as DebugPrint
from .effects.debugging import callback as callback
from .effects.debugging import log as log
from .effects.debugging import print as print
from .interpreters.library.progress import progress as progress
from .interpreters.library.progress import tick as tick
