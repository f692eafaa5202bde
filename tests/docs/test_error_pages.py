"""Each public class of errors has a page with its cause, a program that raises it, and a remedy.

The programs below prompts are executed by tests/docs/test_pages.py, those that need a process of their own here.
"""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest
from helpers.many_processes import launch

import handlax as hx

ROOT = Path(__file__).resolve().parents[2]
JOB = (hx.errors.ProcessesDiffer, hx.errors.NotAddressable)      # what only several processes have
ABSTRACT = {hx.errors.HandlaxError: hx.errors.ShapeMismatch, hx.errors.XlaError: hx.errors.CompileError}


@pytest.fixture(scope="module")
def tools():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        yield importlib.import_module("error_pages"), importlib.import_module("reference")


@pytest.fixture(scope="module")
def found(tools):
    pages, reference = tools
    return {kind: pages.parts(kind) for kind in pages.classes(reference.namespaces())}


def examples(paragraphs):
    return [example for text in paragraphs for example in doctest.DocTestParser().get_examples(text)]


def indented(paragraphs):
    return inspect.cleandoc("\n\n".join(paragraphs))


def test_every_public_class_of_errors_has_its_page_as_its_docstring_says(tools, found):
    pages, reference = tools
    assert {kind for kind in vars(hx.errors).values() if isinstance(kind, type)} < found.keys()
    there = {path.name: path.read_text() for path in (ROOT / "docs" / "errors").glob("*.md")}
    assert there == pages.pages(reference.namespaces())
    assert there.keys() == {"index.md", *(f"{kind.__name__}.md" for kind in found)}


def test_the_program_of_a_page_raises_its_class_and_that_of_the_remedy_does_not(found):
    for kind, page in found.items():
        if page.program[0].startswith(">>> "):
            raised = ABSTRACT.get(kind, kind)
            *before, last = examples(page.program)
            assert not [example for example in before if example.exc_msg], kind
            assert last.exc_msg.startswith(f"{raised.__module__}.{raised.__name__}: "), kind
            assert issubclass(raised, kind)
            assert examples(page.corrected), kind
            assert not [example for example in examples(page.corrected) if example.exc_msg], kind


def test_the_index_has_every_class_once(found):
    lines = (ROOT / "docs" / "errors" / "index.md").read_text().splitlines()
    assert sorted(line.split("`")[1] for line in lines if line.startswith("| [`")) == sorted(
        kind.__name__ for kind in found)


@pytest.mark.parametrize("name", [
    kind.__name__ for kind in (*JOB, hx.errors.JaxIsLoaded, hx.errors.MissingModule)])
def test_a_program_that_needs_processes_of_its_own_raises_the_class_and_the_corrected_one_ends_well(name, found):
    kind = getattr(hx.errors, name)
    page = found[kind]
    processes = 2 if kind in JOB else 1
    failed = launch(indented(page.program), processes, prefix="")
    said = [line for lines in failed.lines.values() for line in lines]
    assert failed.status != 0 and any(line.startswith(f"handlax.errors.{name}: ") for line in said), said
    done = launch(indented(page.corrected), processes, prefix="")
    assert done.status == 0, done.lines


def test_no_other_page_needs_a_process_of_its_own(found):
    alone = {kind for kind, page in found.items() if not page.program[0].startswith(">>> ")}
    assert alone == {*JOB, hx.errors.JaxIsLoaded, hx.errors.MissingModule}


def test_a_docstring_without_a_remedy_is_refused(tools):
    class Silent(hx.errors.HandlaxError):
        """Something.

        Its cause.

        >>> 1 / 0
        """

    with pytest.raises(LookupError, match="Silent has no remedy, corrected"):
        tools[0].parts(Silent)
