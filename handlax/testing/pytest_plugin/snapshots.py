"""Programs recorded beside the tests, and compared with what functions are traced to now.

    snapshot = Snapshots(folder, "test_step", stablehlo)
    snapshot(f)(x)         # compares with folder/test_step.mlir

What is no part of the program is not recorded: the name of its module, locations, the numbers of values, which are
counted from 0 in the order of the text. So the text depends on the operations and their parameters alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from ...interpreters.transformations.make_program import make_program
from ...lowering.jit.jit import jit

MOST_LINES = 40  # of a difference that is shown
_VALUE = re.compile(r"%(?!arg\d)[\w$.-]+")
_LOCATION = re.compile(r"\s*\bloc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)|^#loc.*\n", re.MULTILINE)
_MODULE = re.compile(r"^module @\S+(?: attributes \{(.*)\})? \{$", re.MULTILINE)
_USUAL = re.compile(r"mhlo\.num_(?:partitions|replicas) = 1 : i32(?:, )?")
_UNSAFE = re.compile(r"[^\w.\[\]=-]+")  # in the name of a file


class SnapshotKind(NamedTuple):
    """What is recorded of a function: the text of its program for some arguments, in files with this suffix."""

    suffix: str
    text: Callable[..., str]


def _stablehlo(f: Any, *args: Any, **kwargs: Any) -> str:
    return normalized((f if hasattr(f, "lower") else jit(f)).lower(*args, **kwargs).as_text())


def _program(f: Any, *args: Any, **kwargs: Any) -> str:
    return f"{make_program(f)(*args, **kwargs)}\n"


STABLEHLO, PROGRAM = SnapshotKind(".mlir", _stablehlo), SnapshotKind(".program", _program)


def normalized(text: str) -> str:
    """A module's text without what is no part of the program; values are counted from 0 in each function.

    >>> print(normalized("%7 = stablehlo.sine %arg0 : tensor<f32> loc(#loc1)"))
    %0 = stablehlo.sine %arg0 : tensor<f32>
    """
    text = _MODULE.sub(_heading, _LOCATION.sub("", text))
    parts = re.split(r"^(?=\s*func\.func)", text, flags=re.MULTILINE)
    return "".join([_numbered(part) for part in parts])


def _heading(module: re.Match[str]) -> str:
    attributes = _USUAL.sub("", module[1] or "").removesuffix(", ")
    return f"module attributes {{{attributes}}} {{" if attributes else "module {"


def _numbered(text: str) -> str:
    numbers: dict[str, str] = {}
    return _VALUE.sub(lambda value: numbers.setdefault(value[0], f"%{len(numbers)}"), text)


class Snapshots:
    """The snapshots of one test: functions, compared with the files that ``folder`` has of them.

    ``update``: the files are written anew.
    """

    __slots__ = ("folder", "test", "kind", "update", "names", "compared")

    def __init__(self, folder: Path, test: str, kind: SnapshotKind = STABLEHLO, update: bool = False):
        self.folder = folder
        self.test = _UNSAFE.sub("_", test)
        self.kind = kind
        self.update = update
        self.names: set[str] = set()
        self.compared: set[str] = set()

    def __call__(self, f: Callable[..., Any], name: str = "") -> Callable[..., str]:
        """``snapshot(f)(*args)`` compares the program of ``f`` for such arguments with the recorded one, and gives it.

        A second function in a test has a ``name``. A function that is jitted already has its static arguments.

        Raises: AssertionError: none is recorded, or another one; or a name is used twice in a test.
        """
        __tracebackhide__ = True
        title = f"{self.test}.{_UNSAFE.sub('_', name)}" if name else self.test
        if title in self.names:
            raise AssertionError(f"{title} must be the name of one snapshot.\n  hint: snapshot(f, name='...')(x).")
        self.names.add(title)

        def compared(*args: Any, **kwargs: Any) -> str:
            __tracebackhide__ = True
            self.compared.add(title)
            text = self.kind.text(f, *args, **kwargs)
            self.compare(self.folder / f"{title}{self.kind.suffix}", text)
            return text

        return compared

    def end(self) -> None:
        """Raises: AssertionError: functions were given, and never called, so that nothing of them is compared."""
        __tracebackhide__ = True
        if forgotten := sorted(self.names - self.compared):
            raise AssertionError(
                f"{', '.join(forgotten)}: a snapshot must be compared, got a function without arguments.\n"
                "  hint: snapshot(f)(x)."
            )

    def compare(self, file: Path, text: str) -> None:
        """Raises: AssertionError: the file does not exist, or has another text; not where it is to be updated."""
        __tracebackhide__ = True
        recorded = file.read_text() if file.exists() else None
        if recorded == text:
            return
        if self.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif recorded is None:
            raise AssertionError(
                f"{file.name}: a snapshot must be recorded.\n  hint: pytest --handlax-update writes it."
            )
        else:
            raise AssertionError(
                f"{file.name}: the program must be the recorded one.\n{difference(recorded, text)}\n"
                "  hint: where the new one is right, pytest --handlax-update writes it."
            )


def difference(before: str, after: str) -> str:
    """The lines of two texts that differ, the numbers of values not counted, unless nothing else does.

    >>> print(difference("%0 = a\\n%1 = b %0", "%0 = c\\n%1 = a\\n%2 = b %1"))
      line 1
      + %0 = c
    """
    lines = list(_differing(before.splitlines(), after.splitlines(), lambda line: _VALUE.sub("%", line)))
    lines = lines or list(_differing(before.splitlines(), after.splitlines(), str))
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"  and {more} lines more"] if more > 0 else [])])


def _differing(before: list[str], after: list[str], key: Callable[[str], str]) -> Iterator[str]:
    matcher = SequenceMatcher(None, [*map(key, before)], [*map(key, after)])
    for word, start, end, new_start, new_end in matcher.get_opcodes():
        if word != "equal":
            yield f"  line {start + 1}"
            yield from [f"  - {line.strip()}" for line in before[start:end]]
            yield from [f"  + {line.strip()}" for line in after[new_start:new_end]]
