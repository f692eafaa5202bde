"""Programs of users that mypy and pyright accept, and mistakes that they refuse, line by line.

A comment ``# error: CODE ..., RULE ...`` names mypy's codes and pyright's rules of the mistake in its line; there are
no others. Programs that are accepted are run too, and their values are of the types that the checkers find.
"""

import json
import os
import re
import runpy
import subprocess
import sys
import typing
from collections import defaultdict
from pathlib import Path

import pytest
from helpers.package_source import ROOT

HERE = Path(__file__).parent
ACCEPTED, REFUSED = (sorted(HERE.glob(f"{word}_*.py")) for word in ("accepted", "refused"))
EXPECTED = re.compile(r"# error: ([a-z-]+(?: [a-z-]+)*), (report\w+(?: report\w+)*)$")
MYPY = ("mypy", "--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary", "--hide-error-context",
        f"--cache-dir={ROOT / '.mypy_cache' / 'programs'}")


def expected(text):
    """Give the codes of mypy and the rules of pyright by line, as the comments of a program say them."""
    found = {n: EXPECTED.search(line) for n, line in enumerate(text.splitlines(), 1)}
    codes = {n: set(match[1].split()) for n, match in found.items() if match}
    return codes, {n: set(match[2].split()) for n, match in found.items() if match}


def run(*command):
    """Run a checker on all programs, with this package on its path as an installed one."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", *command, *map(str, ACCEPTED + REFUSED)], capture_output=True, text=True, check=False,
        cwd=HERE, env=os.environ | {"MYPYPATH": str(ROOT), "PYTHONPATH": paths}, timeout=550)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found():
    """Give what the checkers say: checker -> file -> line -> codes."""
    said = {checker: defaultdict(lambda: defaultdict(set)) for checker in ("mypy", "pyright")}
    for line in run(*MYPY).splitlines():
        match = re.fullmatch(r"(?:.*/)?(\w+\.py):(\d+): error: .* \[([a-z-]+)\]", line)
        if match:
            said["mypy"][match[1]][int(match[2])].add(match[3])
    report = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable))
    for mistake in report["generalDiagnostics"]:
        if mistake["severity"] == "error":
            said["pyright"][Path(mistake["file"]).name][mistake["range"]["start"]["line"] + 1].add(mistake["rule"])
    return said


@pytest.mark.parametrize("program", ACCEPTED + REFUSED, ids=lambda path: path.stem)
def test_checkers_find_the_mistakes_and_no_others(found, program):
    codes, rules = expected(program.read_text())
    assert bool(codes) == (program in REFUSED)
    assert found["mypy"][program.name] == codes
    assert found["pyright"][program.name] == rules


def is_a(value, kind):
    """Say whether a value is of a type, the items of tuples, lists and dictionaries included."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any or origin is None:
        return kind in (typing.Any, None) or isinstance(value, kind)
    if not isinstance(value, origin):
        return False
    if origin is tuple and arguments[-1] is not ...:
        return len(value) == len(arguments) and all(map(is_a, value, arguments))
    if origin in (tuple, list, dict):
        return all(is_a(item, arguments[-1 if origin is dict else 0]) for item in (
            value.values() if origin is dict else value))
    return True


@pytest.mark.parametrize("program", ACCEPTED, ids=lambda path: path.stem)
def test_values_are_of_the_types_that_checkers_find(monkeypatch, program):
    seen = []

    def checked(value, kind, /):
        assert is_a(value, kind), f"{value!r} is no {kind}"
        seen.append(kind)
        return value

    monkeypatch.setattr(typing, "assert_type", checked)
    runpy.run_path(str(program))
    assert len(seen) >= program.read_text().count("assert_type(") - 2


@pytest.mark.parametrize(("value", "kind", "found"), [
    (1, int, True), (1, str, False), ((1, "a"), tuple[int, str], True), ((1, 2), tuple[int, str], False),
    ((1,), tuple[int, str], False), ((1, 2), tuple[int, ...], True), ({"a": 1}, dict[str, str], False),
    ([1], list[int], True), ([1], tuple[int], False), (object(), typing.Any, True),
])
def test_a_value_of_another_type_is_found(value, kind, found):
    assert is_a(value, kind) == found


def test_comments_are_read():
    text = "f(1)\nf(2)  # error: arg-type, reportArgumentType reportCallIssue"
    assert expected(text) == ({2: {"arg-type"}}, {2: {"reportArgumentType", "reportCallIssue"}})
