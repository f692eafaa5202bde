"""Every example of README.md and docs/ runs, page by page, each page in one namespace from top to bottom.

A block marked ``python`` is executed; one with prompts (``>>>``, in ``python`` or ``pycon``) is compared with what it
shows, messages of errors included. A program that is only to be looked at is marked ``text``.
"""

import doctest
import linecache
import os
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(python|pycon)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str) -> list[tuple[int, str]]:
    """Give the Python blocks of a page with the number of lines before each."""
    return [(text.count("\n", 0, found.start(2)), found[2]) for found in FENCE.finditer(text)]


def run_examples(source: str, space: dict[str, object], name: str, file: str, line: int) -> None:
    """Compare a block with prompts with what it shows; its names stay in ``space``."""
    test = doctest.DocTestParser().get_doctest(source, space, name, file, line)
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert not result.failed, "".join(said)
    space.update(test.globs)


def run_page(text: str, space: dict[str, object], file: str) -> int:
    """Run the blocks of one page and give their number; errors point to lines of the page."""
    found = blocks(text)
    for line, source in found:
        if ">>>" in source:
            name = f"{Path(file).name}:{line}"      # of its own: tracebacks find the lines of an example by it
            run_examples(source, space, name, file, line)
        else:
            exec(compile("\n" * line + source, file, "exec"), space)
    return len(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_a_page_run(page, monkeypatch, tmp_path):
    module = types.ModuleType("page")        # a real module: dataclasses and pickle look their classes up in one
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)              # what a page writes is not left behind
    linecache.checkcache(str(page))
    run_page(page.read_text(), module.__dict__, str(page))


def test_the_readme_shows_a_program():
    assert blocks((ROOT / "README.md").read_text())


def test_the_program_of_the_readme_has_at_most_twelve_lines():
    _, program = blocks((ROOT / "README.md").read_text())[0]
    assert len([line for line in program.splitlines() if line.strip()]) <= 12


def test_blocks_share_names_and_point_to_their_lines():
    page = "# T\n```python\nx = 1\n```\nwords\n```pycon\n>>> x + 1\n2\n>>> y = 3\n```\n```python\nassert y == 4\n```\n"
    with pytest.raises(AssertionError) as caught:
        run_page(page, {}, "page.md")
    assert (caught.traceback[-1].lineno + 1, str(caught.traceback[-1].path).split(os.sep)[-1]) == (12, "page.md")


def test_an_example_that_shows_something_else_fails():
    with pytest.raises(AssertionError, match="Expected"):
        run_page("```python\n>>> 1 + 1\n3\n```\n", {}, "page.md")
