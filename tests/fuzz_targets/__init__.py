"""The fuzz targets of the package: its readers of texts and bytes, and the arguments of its public functions.

    TARGETS["parser"].run(b"program f() -> () { return () }")
"""

from fuzz_targets.arguments import ARGUMENTS
from fuzz_targets.readers import READERS

TARGETS = {target.name: target for target in (*READERS, *ARGUMENTS)}
