"""The examples in docstrings, each module under the name by which it is imported.

Collected by path, ``effects/types/array_type.py`` would be imported a second time as
``effects.types.array_type``, and with it every registry; so pytest's own collection of doctests is not used.
"""

import doctest
import importlib
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def module_names() -> list[str]:
    names = []
    for package, folder in FOLDERS.items():
        for file in sorted((ROOT / folder).glob("*.py")):
            names.append(package if file.stem == "__init__" else f"{package}.{file.stem}")
    return [name for name in names if not name.endswith(".__main__")]


@pytest.mark.parametrize("name", module_names())
def test_examples_in_docstrings_give_what_they_show(name, capsys, monkeypatch):
    # operations and effects of examples are not the library's: they have a module of their own
    monkeypatch.setitem(sys.modules, "examples", ModuleType("examples"))
    module = importlib.import_module(name)
    report = doctest.testmod(module, optionflags=FLAGS, extraglobs={"__name__": "examples"})
    assert report.failed == 0, capsys.readouterr().out


def test_no_module_is_imported_a_second_time_by_its_folder():
    for name in module_names():
        importlib.import_module(name)
    inside = {str(Path(module.__file__).resolve()): name for name, module in list(sys.modules.items())
              if getattr(module, "__file__", None) and name.split(".")[0] == "handlax"}
    outside = [name for name, module in list(sys.modules.items()) if name.split(".")[0] != "handlax"
               and getattr(module, "__file__", None) and str(Path(module.__file__).resolve()) in inside]
    assert not outside
