"""The classes of operations have one public home, by their names."""

import subprocess
import sys

import pytest

import handlax as hx
from handlax import operations
from handlax.effects.programs.operation_names import every_operation


def test_every_operation_of_the_package_is_found_by_the_name_of_its_class():
    package = [kind for kind in every_operation() if kind.__module__.startswith("handlax.")]
    assert len(package) > 150
    assert all(getattr(operations, kind.__name__) is kind for kind in package)
    assert set(dir(operations)) == {"Operation", *[kind.__name__ for kind in package]}


def test_an_operation_whose_module_is_not_loaded_is_loaded_when_it_is_asked_for():
    program = "import handlax as hx; print(hx.operations.Psum.__module__, hx.operations.Sow.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["handlax.effects.operations.collectives.collective", "Sow"]


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = operations.Nonsense


_NOT_LOADED = """
import pkgutil, sys
from importlib import import_module

import handlax
from handlax.effects.core.operation import OPERATIONS

loaded = set(sys.modules)
for module in pkgutil.walk_packages(handlax.__path__, "handlax."):
    import_module(module.name)
for kind in {kind for kind in OPERATIONS.values() if kind.__module__ not in loaded}:
    print(kind.__module__, kind.__name__)
"""


def test_the_operations_of_modules_that_are_loaded_later_are_declared():
    code = [sys.executable, "-P", "-c", _NOT_LOADED]
    lines = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, set[str]] = {}
    for module, name in map(str.split, lines):
        if not module.startswith("handlax.testing."):  # a user's program has none of these
            found.setdefault(module.removeprefix("handlax."), set()).add(name)
    declared = {module: set(names.split()) for module, names in hx._DECLARED.items()}
    wrong = [
        f'"{module}": "{" ".join(sorted(found[module]))}",' if module in found else f'no line for "{module}"'
        for module in sorted({*found, *declared})
        if found.get(module) != declared.get(module)
    ]
    assert not wrong, "_DECLARED of handlax/__init__.py needs: " + "; ".join(wrong)
