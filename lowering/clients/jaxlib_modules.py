"""jaxlib's modules, imported once XLA's log level is set.

XLA reads the level when its library is loaded: every other file imports these modules from here, never from jaxlib.
"""

import os
from typing import Any, TypeAlias

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import jaxlib.version
from jaxlib import _jax, _profiler
from jaxlib import xla_client as xc

Client: TypeAlias = Any
Device: TypeAlias = xc.Device
JAXLIB_VERSION: str = jaxlib.version.__version__
RuntimeFailure: type[RuntimeError] = _jax.JaxRuntimeError
"""What executing a program or reading a buffer raises; at compile time it is translated to ``CompileError``."""
