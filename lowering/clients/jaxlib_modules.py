"""The modules of jaxlib's runtime: every other file imports them from here, never from jaxlib."""

from typing import Any, TypeAlias

import jaxlib.version
from jaxlib import _jax, _profiler
from jaxlib import xla_client as xc

Client: TypeAlias = Any
Device: TypeAlias = xc.Device
JAXLIB_VERSION: str = jaxlib.version.__version__
HAS_MUTUAL_TLS: bool = "mtls_cert_file" in str(_jax.get_distributed_runtime_client.__doc__)
RuntimeFailure: type[RuntimeError] = _jax.JaxRuntimeError
"""What executing a program or reading a buffer raises; at compile time it is translated to ``CompileError``."""
