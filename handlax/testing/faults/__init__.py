"""``handlax.testing.faults``: interrupts, failing compilers and disks; after each of them the library is whole.

    for fault in interrupts(f): ...        f() is interrupted once in each turn, at a later moment each time
"""

from __future__ import annotations

from .failures import failing_compilations as failing_compilations
from .failures import failing_files as failing_files
from .failures import full_disk as full_disk
from .injection import Fault as Fault
from .kills import kills as kills
from .moments import interrupts as interrupts
from .wholeness import Before as Before
from .wholeness import whole as whole
