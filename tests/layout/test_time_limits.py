"""Whatever waits for a process or a thread has a limit, and so has what pytest does after a failed test."""

import ast
import os
import subprocess
import sys

import pytest
from helpers.package_source import FILES, ROOT, last_word, name, nodes, tree

RUNS = {"run", "call", "check_call", "check_output"}


def endless_waits(module: ast.Module) -> list[str]:
    """Give the calls that may wait forever: runs of processes, joins, barriers and ends of pipes without a limit."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Call):
            last, limits = last_word(node.func), {word.arg for word in node.keywords} & {"timeout"}
            if not limits and (
                (last in RUNS and ast.unparse(node.func) == f"subprocess.{last}")
                or (last == "Barrier" and len(node.args) < 3) or last == "communicate"
                or (last == "join" and isinstance(node.func, ast.Attribute) and not node.args)
            ):
                found.append(f"{node.lineno} {ast.unparse(node.func)}")
    return found


def test_all_waits_have_a_limit():
    assert not [f"{name(file)}:{place}" for file in FILES if name(file).startswith(("tests/", "handlax/testing/"))
                for place in endless_waits(tree(file))]


@pytest.mark.parametrize(("source", "found"), [
    ("subprocess.run(command, check=True)", True),
    ("subprocess.run(command, check=True, timeout=60)", False),
    ("thread.join()", True),
    ("thread.join(60)", False),
    ("' '.join(words)", False),
    ("threading.Barrier(2)", True),
    ("Barrier(2, timeout=60)", False),
    ("process.communicate()", True),
    ("process.communicate(timeout=60)", False),
])
def test_a_wait_without_a_limit_is_found(source, found):
    assert bool(endless_waits(ast.parse(source))) == found


HANGS_AFTER_A_FAILURE = """
import threading, pytest

@pytest.fixture
def closing():
    yield
    threading.Event().wait()

def test_that_fails(closing):
    assert False
"""
HANGS_AT_THE_END = """
import threading

def test_that_leaves_a_thread():
    threading.Thread(target=threading.Event().wait, name="left").start()
"""


@pytest.mark.parametrize(("text", "line"), [(HANGS_AFTER_A_FAILURE, "in closing"), (HANGS_AT_THE_END, "in _shutdown")])
def test_a_hang_after_a_test_ends_the_process_which_says_where(text, line, tmp_path):
    (tmp_path / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "-p", "handlax_pytest",
         "-o", "handlax_devices=8", "-o", "faulthandler_timeout=3", "-o", "faulthandler_exit_on_timeout=true", "."],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1 and "Timeout (0:00:03)!" in done.stderr and line in done.stderr, done.stderr
