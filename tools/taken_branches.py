"""The branches of the package that a process takes, which it notes at its end."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections import defaultdict
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:       # a process that a test starts has no need of it
    import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / ".branches"
FOLDERS = ("effects", "interpreters", "lowering", "handlax")
TOOL = 0            # of debuggers, by PEP 669: the fuzzer and runs of mutants, under test, have 4 and 5, Hypothesis 3
# Parts of names of tests: at the recursion limit no call of ours has room, and a process whose writes are counted, or
# that ends at each moment, is not to write at its end.
UNWATCHED = ("test_cpp_pytrees", "test_deep_calls", "test_kills", "test_exits", "faults.kills", "faults.exits")
FIRST, SAME = 1000, 20      # a jump that always goes the same way is noted so often, and then so often in a test


class TakenBranches:
    """The branches of the package that this process takes; as a plug-in of pytest, those of its tests.

    They are written at its end, by ``os._exit`` too, with which forked processes end.
    """

    def __init__(self) -> None:
        self.python_path = os.environ.get("PYTHONPATH", "")
        self.paths: dict[str, str] = {}
        self.targets: dict[tuple[CodeType, int], set[int]] = defaultdict(set)
        self.counts: dict[tuple[CodeType, int], int] = defaultdict(int)
        monitoring = sys.monitoring
        monitoring.use_tool_id(TOOL, "branch_coverage")
        monitoring.register_callback(TOOL, monitoring.events.BRANCH, self.branch)
        monitoring.set_events(TOOL, monitoring.events.BRANCH)
        atexit.register(self.write)
        end = os._exit

        def write_and_end(status: int) -> NoReturn:
            self.write()
            end(status)

        os._exit = write_and_end

    def path(self, file: str) -> str:
        """The path of a file below the root, if it is one of the package; else an empty text."""
        if file not in self.paths:
            real = Path(os.path.realpath(file))
            inside = real.is_relative_to(ROOT) and real.relative_to(ROOT).parts[0] in FOLDERS
            self.paths[file] = real.relative_to(ROOT).as_posix() if inside else ""
        return self.paths[file]

    def branch(self, code: CodeType, offset: int, target: int) -> Any:
        if not self.path(code.co_filename):
            return sys.monitoring.DISABLE
        jump = (code, offset)
        self.targets[jump].add(target)
        self.counts[jump] += 1
        ended = len(self.targets[jump]) == 2 or (self.counts[jump] > FIRST and self.counts[jump] % SAME == 0)
        return sys.monitoring.DISABLE if ended else None

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        sys.monitoring.restart_events()
        unwatched = any([word in item.nodeid for word in UNWATCHED])
        sys.monitoring.set_events(TOOL, 0 if unwatched else sys.monitoring.events.BRANCH)
        os.environ["PYTHONPATH"] = "" if unwatched else self.python_path

    def write(self) -> None:
        sys.monitoring.set_events(TOOL, 0)
        found: dict[str, list[list[Any]]] = defaultdict(list)
        for (code, offset), targets in list(self.targets.items()):
            line, _, column, _ = next(islice(code.co_positions(), offset // 2, None))  # its name may have been changed
            for target in targets:
                found[self.path(code.co_filename)].append([line, column, offset, target])
        NOTES.mkdir(exist_ok=True)
        notes = NOTES / f"{time.time_ns()}-{os.getpid()}"
        notes.write_text(json.dumps(found))
        notes.rename(notes.with_suffix(".json"))    # whole, or not there: a process may be killed meanwhile


@cache
def taken_branches() -> TakenBranches:
    """Those of this process, which is watched from the first call."""
    return TakenBranches()
