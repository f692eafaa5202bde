"""The commands that are put before a program: ``python -m handlax``, ``handlax.explain``; what the program sees."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import handlax as hx
import handlax.explain
double = hx.jit(lambda x: x * 2)
double(1.0), double(2)
print(sys.argv[1:], __name__, handlax.explain(double).splitlines()[0])
sys.exit(len(sys.argv) - 1)
"""


def outcome(*words, **options):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_explain_prints_a_table_after_the_program(script):
    ended = outcome("handlax.explain", str(script), "a", "b")
    first, *table = ended.stdout.splitlines()
    assert ended.returncode == 2, ended.stderr
    assert first == "['a', 'b'] __main__ <lambda>: compiled for 2 kinds of calls"
    assert any(line.startswith("jit(<lambda>)") and line.count("(2)") == 3 for line in table)
    assert table[-1].endswith("(x: dtype from float32 to int32)")


LATER = """
import threading, time
import handlax as hx

def later():
    threading.main_thread().join(60)
    f(1.0).block_until_ready()

f = hx.jit(lambda x: x * 2)
threading.Thread(target=later).start()
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise KeyboardInterrupt", "raise ValueError"])
def test_explain_counts_what_threads_do_after_the_program_and_all_of_one_that_fails(tmp_path, end):
    (tmp_path / "script.py").write_text(LATER + end)
    table = outcome("handlax.explain", str(tmp_path / "script.py")).stdout
    (row,) = [line for line in table.splitlines() if line.startswith("jit(<lambda>)")]
    assert row.count("(1)") == 3 and len(row.split()) == 12, table  # three steps with counts, and executing


def test_a_program_that_profiles_itself_is_told_why_it_cannot_under_explain(tmp_path):
    (tmp_path / "script.py").write_text("import handlax as hx\nwith hx.profile(): pass")
    ended = outcome("handlax.explain", str(tmp_path / "script.py"))
    assert ended.returncode == 1 and "within hx.profile, python -m handlax.explain" in ended.stderr


def test_explain_runs_modules_and_tells_its_usage(script):
    ended = outcome("handlax.explain", "-m", "script", cwd=script.parent)
    assert ended.returncode == 0 and "[] __main__" in ended.stdout
    assert "usage: python -m handlax.explain (script.py | -m module)" in outcome("handlax.explain").stderr


def test_the_package_tells_of_itself():
    lines = dict(line.split(": ", 1) for line in outcome("handlax").stdout.splitlines())
    assert {"handlax", "jaxlib", "devices", "settings", "caches"} <= lines.keys()


@pytest.mark.parametrize(("words", "status", "said"), [
    (("handlax", "--help"), 0, "usage: python -m handlax"), (("handlax", "more"), 2, "unrecognized arguments: more"),
    (("handlax.explain", "nothing.py"), 2, "error: there is no file nothing.py"),
    (("handlax.as_jax", "nothing.py", "word"), 2, "error: there is no file nothing.py"),
])
def test_words_that_a_command_does_not_know_are_an_error_of_usage(words, status, said):
    ended = outcome(*words)
    assert ended.returncode == status and said in ended.stdout + ended.stderr
    assert "devices:" not in ended.stdout and "Traceback" not in ended.stderr
