"""The modules of ``handlax.scipy``, and what ``handlax.testing`` has: loaded when first asked for."""

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
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"


def test_a_module_that_there_is_not_is_an_error_that_is_named():
    with pytest.raises(AttributeError, match=r"module 'handlax.scipy' has no attribute 'linlag'") as caught:
        hx.scipy.linlag
    assert caught.value.name == "linlag"


LAZY = """
import sys, handlax
assert not any(name.startswith(("handlax.testing", "hypothesis", "pytest")) for name in sys.modules)
assert "testing" in dir(handlax)
handlax.testing
assert "hypothesis" not in sys.modules
handlax.testing.compare, handlax.testing.strategies.arrays
print("hypothesis" in sys.modules, *handlax.testing.__all__)
"""


def test_what_tests_use_is_an_attribute_that_is_loaded_when_it_is_asked_for():
    done = subprocess.run([sys.executable, "-P", "-c", LAZY], capture_output=True, text=True, check=True, timeout=300)
    loaded, *names = done.stdout.split()
    assert loaded == "True" and {"check_operation", "compare", "record_run", "strategies"} <= {*names}


def test_a_name_of_the_testing_package_is_no_module_that_it_loads():
    modules = {module.name for module in pkgutil.iter_modules(hx.testing.__path__)}
    assert modules & {*hx.testing.__all__} == {"faults", "fuzzing", "strategies"}
