"""What a module exports at run time, a type checker lets users import too."""

import ast
import importlib
from pathlib import Path

import pytest
from helpers.package_source import ROOT


@pytest.fixture(scope="module")
def reference():
    """The tool that knows which names of a module are public."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module("reference")


def hidden(source):
    """Give the names that a file imports and does not export: not as ``import x as x``, or in a list ``__all__``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names if alias.asname != alias.name}
    return found - {"*"}


def test_public_names_are_exported_for_checkers(reference):
    for name in [*reference.NAMESPACES, "handlax.operations"]:
        module = reference.loaded(name)
        if module is not None:
            names = dir(module) if name == "handlax.operations" else reference.public_names(module)
            assert not {*names} & hidden(Path(module.__file__).read_text()), name


def test_a_name_that_is_not_exported_is_found():
    assert hidden("from a import b as c, d, e as e\nimport f.g\nfrom h import *") == {"c", "d", "f"}
    assert hidden("from a import b\n__all__ = ['b']") == set()


@pytest.mark.parametrize("name", ["errors", "core"])
def test_names_of_other_modules_are_not_offered(reference, name):
    module = reference.loaded(f"handlax.{name}")
    assert {word for word in dir(module) if word[0] not in "_@"} == {*reference.public_names(module)}
