"""The classes of operations have one public home, by their names."""

import subprocess
import sys

import pytest
from helpers.package_source import ROOT

from handlax import operations
from handlax.effects.programs.operation_names import every_operation


def test_every_operation_of_the_package_is_found_by_the_name_of_its_class():
    package = [kind for kind in every_operation() if kind.__module__.startswith("handlax.")]
    assert len(package) > 150
    assert all(getattr(operations, kind.__name__) is kind for kind in package)
    assert set(dir(operations)) == {"Operation", *[kind.__name__ for kind in package]}


def test_an_operation_whose_module_is_not_loaded_is_loaded_when_it_is_asked_for():
    program = "import handlax as hx; print(hx.operations.Psum.__module__, hx.operations.Sow.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["handlax.effects.operations.collectives.collective", "Sow"]


def test_an_operation_is_loaded_without_the_modules_of_others():
    program = (
        "import sys, handlax as hx; linalg = 'handlax.effects.operations.linalg.'; hx.operations.Sin;"
        "print([name for name in sys.modules if name.startswith(linalg)]);"
        "hx.operations.Lu; print(linalg + 'lu' in sys.modules, linalg + 'eigh' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["[]", "True", "False"]


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = operations.Nonsense


def test_the_operations_of_modules_that_are_loaded_later_are_declared():
    code = [sys.executable, str(ROOT / "tools" / "late_operations.py"), "--check"]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
