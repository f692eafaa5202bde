"""The modules of ``handlax.scipy``: loaded when first asked for."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import handlax as hx


def test_every_module_is_there_and_type_checkers_see_it():
    assert all(getattr(hx.scipy, name) is importlib.import_module(f"handlax.scipy.{name}") for name in hx.scipy.__all__)
    blocks = [node for node in ast.parse(Path(hx.scipy.__file__).read_text()).body if isinstance(node, ast.If)]
    assert [alias.name for node in blocks[0].body for alias in node.names] == hx.scipy.__all__
    assert {*hx.scipy.__all__} <= {*dir(hx.scipy)}


def test_none_is_loaded_before():
    program = "import sys, handlax.scipy; print([m for m in sys.modules if m.startswith(('handlax.scipy.', 'scipy'))])"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_module_that_there_is_not_is_an_error_that_is_named():
    with pytest.raises(AttributeError, match=r"module 'handlax.scipy' has no attribute 'linlag'") as caught:
        hx.scipy.linlag
    assert caught.value.name == "linlag"
