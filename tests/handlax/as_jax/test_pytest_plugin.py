"""``pytest -p handlax.as_jax.pytest_plugin``: tests, their conftest and plugins named later import handlax as jax."""

import os
import subprocess
import sys

import pytest

CONFTEST = """
import jax
import pytest

@pytest.fixture
def key():
    return jax.random.key(0)
"""

TEST = """
import jax, handlax

def test_it(key):
    assert jax.jit is handlax.jit and handlax.typeof(key) == handlax.typeof(handlax.random.key(0))
"""


@pytest.mark.parametrize(("arguments", "environment"), [
    (["-p", "handlax.as_jax.pytest_plugin"], {}),
    ([], {"PYTEST_ADDOPTS": "-p handlax.as_jax.pytest_plugin"}),
], ids=["option", "variable"])
def test_tests_run_on_handlax(arguments, environment, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], cwd=tmp_path, check=False,
        env=os.environ | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
