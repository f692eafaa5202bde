"""The modules of ``handlax.scipy``: loaded when first asked for."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import handlax as hx


def test_every_module_is_there():
    assert {*hx.scipy.__all__} == {module.name for module in pkgutil.iter_modules(hx.scipy.__path__)}
    assert all(getattr(hx.scipy, name) is importlib.import_module(f"handlax.scipy.{name}") for name in hx.scipy.__all__)
    assert {*hx.scipy.__all__} <= {*dir(hx.scipy)}


def test_none_is_loaded_before():
    program = "import sys, handlax.scipy; print([m for m in sys.modules if m.startswith(('handlax.scipy.', 'scipy'))])"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_module_that_there_is_not_is_an_error_that_is_named():
    with pytest.raises(AttributeError, match=r"module 'handlax.scipy' has no attribute 'linlag'") as caught:
        hx.scipy.linlag
    assert caught.value.name == "linlag"
