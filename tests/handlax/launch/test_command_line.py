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


def test_explain_runs_modules_and_tells_its_usage(script):
    ended = outcome("handlax.explain", "-m", "script", cwd=script.parent)
    assert ended.returncode == 0 and "[] __main__" in ended.stdout
    assert "usage: python -m handlax.explain (script.py | -m module)" in outcome("handlax.explain").stderr


def test_the_package_tells_of_itself():
    lines = dict(line.split(": ", 1) for line in outcome("handlax").stdout.splitlines())
    assert {"handlax", "jaxlib", "devices", "settings", "caches"} <= lines.keys()
