"""The examples in docstrings, each module under the name by which it is imported.

Collected by path, ``effects/types/array_type.py`` would be imported a second time as
``effects.types.array_type``, and with it every registry; so pytest's own collection of doctests is not used.
"""

import doctest
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from helpers.package_source import PACKAGE, module_name

NAMES = [name for name in map(module_name, PACKAGE) if not name.endswith(".__main__")]
SHOWN = [name for name, file in zip(map(module_name, PACKAGE), PACKAGE) if ">>>" in file.read_text()]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("name", SHOWN)
def test_examples_in_docstrings_give_what_they_show(name, capsys, monkeypatch):
    # operations and effects of examples are not the library's: they have a module of their own
    monkeypatch.setitem(sys.modules, "examples", ModuleType("examples"))
    module = importlib.import_module(name)
    report = doctest.testmod(module, optionflags=FLAGS, extraglobs={"__name__": "examples"})
    assert report.failed == 0, capsys.readouterr().out


def test_no_module_is_imported_a_second_time_by_its_folder():
    for name in NAMES:
        importlib.import_module(name)
    inside = {str(Path(module.__file__).resolve()): name for name, module in list(sys.modules.items())
              if getattr(module, "__file__", None) and name.split(".")[0] == "handlax"}
    outside = [name for name, module in list(sys.modules.items()) if name.split(".")[0] != "handlax"
               and getattr(module, "__file__", None) and str(Path(module.__file__).resolve()) in inside]
    assert not outside
