"""``handlax.interop.jax`` without JAX: it is loaded when it is asked for, imports nothing, and says what is missing.

What it does with JAX is tested in ``tests/beside_jax/test_interop.py``.
"""

import importlib.util
import subprocess
import sys

import pytest

from handlax.errors import MissingModule, NotAFunction
from handlax.interop import jax_modules
from handlax.interop.jax import from_jax, to_jax

CONVERSIONS = [from_jax, to_jax]


def in_new_process(source):
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_without_jax_the_error_says_how_to_get_it(convert, monkeypatch):
    monkeypatch.setattr(jax_modules, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(MissingModule, match=rf"{convert.__name__}: JAX itself is needed, and it is not installed"):
        convert(lambda x: x)


def test_behind_as_jax_the_error_says_that_nothing_is_to_be_converted():
    in_new_process("""
import handlax.as_jax
handlax.as_jax.install()
from handlax.errors import MissingModule
from handlax.interop.jax import from_jax, to_jax
for convert in (from_jax, to_jax):
    try:
        convert(lambda x: x)
    except MissingModule as error:
        assert "handlax stands for it" in error.what and "already" in error.hint
    else:
        raise AssertionError(convert)
""")


def test_neither_import_loads_jax():
    in_new_process("""
import sys
import handlax as hx
assert "handlax.interop" not in sys.modules
hx.interop.jax
assert "handlax.interop.jax" in sys.modules and "jax" not in sys.modules
""")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("convert", CONVERSIONS)
def test_a_function_is_needed(convert):
    with pytest.raises(NotAFunction, match=convert.__name__):
        convert(3)
