"""The branches of the package that its tests take: a plug-in of pytest notes them, and a report lists the others.

    PYTHONPATH=$PWD/tools pytest -p branch_coverage   notes, beside what earlier runs have noted, in .branches/
    python tools/branch_coverage.py                   the part of each folder that is taken
    python tools/branch_coverage.py --list effects    also the branches below ``effects`` that no test takes

A branch is an outcome of a conditional jump: of a statement, an expression, a loop or a comprehension. Those that the
compiler adds do not count: whether a ``with`` block's context manager swallows an exception, whether an ``except``
clause matches, and the failure of an ``assert``. Processes that tests start are watched from their start, where they
inherit ``PYTHONPATH``, by ``sitecustomize``; what one takes that ends by a signal is not noted.

coverage.py counts branches by a tracer where Python is older than 3.14, which takes three times as long;
``sys.monitoring`` (PEP 669) tells of them since Python 3.12.
"""

from __future__ import annotations

import argparse
import dis
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import NamedTuple

import pytest
from taken_branches import FOLDERS, NOTES, ROOT, taken_branches

WORDS = {           # what a conditional jump finds where it jumps, and where it does not
    "POP_JUMP_IF_FALSE": ("false", "true"),
    "POP_JUMP_IF_TRUE": ("true", "false"),
    "POP_JUMP_IF_NONE": ("None", "not None"),
    "POP_JUMP_IF_NOT_NONE": ("not None", "None"),
    "FOR_ITER": ("the end", "an element"),
}
ADDED = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH", "WITH_EXCEPT_START"}     # the compiler adds the jump that follows


class Jump(NamedTuple):
    """A conditional jump: where its condition stands, and its offset in the function, of which it may have copies."""

    line: int
    column: int
    offset: int


class Branch(NamedTuple):
    """An outcome of a condition: where the condition stands, and what is found. Copies by the compiler are one."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    found: str


def pytest_configure(config: pytest.Config) -> None:
    """As a plug-in of pytest: tests are watched one by one."""
    config.pluginmanager.register(taken_branches(), "taken-branches")


def functions(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions, classes and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions(constant)


def jumps(path: str) -> Iterator[tuple[Jump, int, Branch, Branch | None]]:
    """The conditional jumps of a file, each with the offset after it, and its branches: it jumps, it does not.

    An ``assert`` that fails is no branch.
    """
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    for code in functions(compile(text, path, "exec", dont_inherit=True)):
        instructions = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
        names = ["", "", *[each.opname for each in instructions], "", ""]
        for i, each in enumerate(instructions[:-1]):
            if each.opname not in WORDS or ADDED.intersection(names[i:i + 2]) or each.positions is None:
                continue
            line, end_line, column, end_column = each.positions
            if line is None or lines[line - 1].partition("#")[0].strip() == "if TYPE_CHECKING:":
                continue
            jumped, passed = (Branch(path, line, column, end_line, end_column, word) for word in WORDS[each.opname])
            asserts = "LOAD_ASSERTION_ERROR" in names[i + 3:i + 5]
            yield Jump(line, column, each.offset), instructions[i + 1].offset, jumped, None if asserts else passed


def noted() -> Mapping[str, Mapping[Jump, set[int]]]:
    """What the runs have noted: by file, where the jumps led."""
    found: dict[str, dict[Jump, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in NOTES.glob("*.json"):
        for path, each in json.loads(file.read_text()).items():
            for *jump, target in each:
                found[path][Jump(*jump)].add(target)
    return found


def branches() -> dict[Branch, bool]:
    """The branches of the package in their order, and whether a test takes them."""
    found: dict[Branch, bool] = {}
    targets = noted()
    for file in [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]:
        if file == file.resolve():                              # the layers are links in ``handlax``
            path = file.relative_to(ROOT).as_posix()
            for jump, after, jumped, passed in jumps(path):
                led = targets.get(path, {}).get(jump, set())
                found[jumped] = found.get(jumped, False) or bool(led - {after})
                if passed is not None:
                    found[passed] = found.get(passed, False) or after in led
    return dict(sorted(found.items()))


def share(found: Mapping[Branch, bool]) -> str:
    return f"{100 * sum(found.values()) / len(found):6.2f} %  {sum(found.values()):6} of {len(found):6} branches"


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", nargs="*", default=[], metavar="PATH", help="where those not taken are listed")
    asked = parser.parse_args(words)
    found = branches()
    for branch, taken in found.items():
        if not taken and branch.path.startswith(tuple(asked.list)):
            text = (ROOT / branch.path).read_text().splitlines()[branch.line - 1].strip()
            print(f"{branch.path}:{branch.line}: {branch.found}: {text}")
    parts = {"/".join(branch.path.split("/")[:2]) for branch in found}
    for part in [*sorted(parts), *FOLDERS]:
        inside = {branch: taken for branch, taken in found.items() if branch.path.startswith(f"{part}/")}
        if inside:
            print(f"{part:36} {share(inside)}")


if __name__ == "__main__":
    main(sys.argv[1:])
