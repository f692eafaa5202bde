"""The notebooks of docs/ are executed, and show what their cells give."""

import importlib.util
import json
import subprocess
import sys

import pytest
from helpers.package_source import ROOT

TOOL = ROOT / "tools" / "notebook_outputs.py"
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
SPEC = importlib.util.spec_from_file_location("notebook_outputs", TOOL)
notebook_outputs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebook_outputs)


def test_the_outputs_of_notebooks_are_those_that_executing_gives():
    command = [sys.executable, str(TOOL), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.name for path in NOTEBOOKS])
def test_a_notebook_is_of_the_form_that_others_read(path):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code)
    assert not [word for word in ("/home/", "/tmp/", str(ROOT)) if word in path.read_text()]


def executed(*sources):
    """The outputs of cells with these sources."""
    cells = [{"cell_type": "code", "source": source.splitlines(True)} for source in sources]
    return [cell["outputs"] for cell in notebook_outputs.executed({"cells": cells})["cells"]]


def test_a_cell_gives_what_it_prints_and_its_last_expression():
    first, second, third = executed("n = 1\nprint('a')\nn + 1", "m = n", "import handlax as hx\nhx.numpy.ones(n)")
    assert [output.get("text", output.get("data")) for output in first] == [["a\n"], {"text/plain": ["2"]}]
    assert second == []
    assert third[0]["data"]["text/plain"] == ["[1.]"] and third[0]["data"]["text/html"]


def test_times_alone_may_differ():
    assert notebook_outputs.first_difference("in 3.5 ms\n1", "in 12 us\n1") == ""
    assert notebook_outputs.first_difference("f    tracing\nf  102 ms (2)", "f   tracing\nf  67 ms (2)") == ""
    assert notebook_outputs.first_difference("a\nin 3.5 ms", "a\nin 3.5 m") == "in 3.5 ms\nis now\nin 3.5 m"
    assert notebook_outputs.first_difference("a", "a\nb") == "the end\nis now\nb"
