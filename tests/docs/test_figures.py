"""Numbers that pages state of the package are those of the package."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
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
