"""``handlax.testing.fuzzing``: any bytes are a result or an error with its lines, in bounded time, and leave nothing.

    python -m handlax.testing.fuzzing --seconds 60 --target parser --corpora tests/corpora

fuzzes the targets of a project: ``TARGETS``, by name, in its package ``fuzz_targets``.
"""

from __future__ import annotations

from .byte_choices import ByteChoices as ByteChoices
from .damage import damaged as damaged
from .damage import reworded as reworded
from .damage import smaller_bytes as smaller_bytes
from .fuzz_command import main as main
from .fuzz_loop import Finding as Finding
from .fuzz_loop import FuzzReport as FuzzReport
from .fuzz_loop import fuzz as fuzz
from .fuzz_loop import read_corpus as read_corpus
from .fuzz_targets import OverTime as OverTime
from .fuzz_targets import Target as Target
from .fuzz_targets import check_input as check_input
