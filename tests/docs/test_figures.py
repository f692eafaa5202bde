"""Numbers, names and pictures on pages are those of the package."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.package_source import PACKAGE

from handlax.effects.core.operation import Operation
from handlax.effects.core.parameters import OF_EFFECTS, OF_EVERY_OPERATION
from handlax.testing.mutants.outcomes import Outcomes

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COLUMN = re.compile(r'= Column\(\s*"(\w+)"')
LENGTH = re.compile(r"\b\d+ lines\b")


def text(name: str) -> str:
    return (ROOT / name).read_text()


def stated_lengths(page: str) -> list[str]:
    """The numbers of lines that a page states outside of its programs."""
    return LENGTH.findall(re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", ["README.md", "docs/dependencies.md"])
def test_as_many_packages_are_needed_as_a_page_says(page):
    needed = tomllib.loads(text("pyproject.toml"))["project"]["dependencies"]
    assert re.findall(r"\[?(\w+) packages\b", text(page))[0] == WORDS[len(needed)]


def test_no_page_states_the_length_of_a_file():
    pages = [ROOT / "README.md", *[file for file in (ROOT / "docs").rglob("*.md") if file.parent.name != "reference"]]
    found = {page.name: stated_lengths(page.read_text()) for page in pages}
    assert not {name: lengths for name, lengths in found.items() if lengths}


def test_a_stated_length_is_found():
    assert stated_lengths("The stack is about 150 lines.\n```text\n10 lines\n```\n") == ["150 lines"]


def test_a_page_lists_every_name_that_means_something_in_a_block():
    section = text("docs/how-to/names-of-effects.md").partition("| --- |")[2]
    rows = [re.findall(r"`([a-z_]+)`", row) for row in section.splitlines()[1:6]]
    said, rules, arguments, declared, fixed = rows
    assert set(rules) == {name for file in PACKAGE for name in COLUMN.findall(file.read_text())}
    assert set(arguments) == OF_EFFECTS and set(fixed) == OF_EVERY_OPERATION
    own = {name for name in dir(Operation) if name[0] != "_"}
    assert {*said, *declared} == own - OF_EFFECTS - OF_EVERY_OPERATION


def test_each_reason_is_that_of_a_mutant_which_no_test_sees():
    outcomes = Outcomes(ROOT / "tests" / "mutants" / "results.jsonl")
    reasons = tomllib.loads(text("tests/mutants/reasons.toml"))
    assert {*reasons} <= {key for key, outcome in outcomes.by_key.items() if outcome.is_open}


def test_the_programs_beside_other_systems_give_what_they_should():
    script = ROOT / "benchmarks" / "effects_beside" / "outcomes.py"
    found = json.loads(subprocess.run(
        [sys.executable, script, "handlax"], capture_output=True, check=True, timeout=300
    ).stdout)
    assert found["programs"] == found["expected"]
    rows = re.findall(r"^\| `(\w+)` \| `.*?` \| \*\*yes\*\*", text("docs/effects-beside.md"), re.MULTILINE)
    explained = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", text("docs/effects-beside.md"), re.MULTILINE)
    assert rows == explained == [*found["expected"]]
