"""``handlax.testing.faults``: interrupts, failing compilers and disks, forks, exits; after each the library is whole.

    for fault in interrupts(f): ...        f() is interrupted once in each turn, at a later moment each time
"""

from __future__ import annotations

from .deaths import deaths as deaths
from .exits import exits as exits
from .failures import failing_compilations as failing_compilations
from .failures import failing_files as failing_files
from .failures import full_disk as full_disk
from .forks import forks as forks
from .injection import Fault as Fault
from .kills import kills as kills
from .left_behind import IN_FORCE as IN_FORCE
from .left_behind import Before as Before
from .moments import interrupts as interrupts
from .wholeness import whole as whole
