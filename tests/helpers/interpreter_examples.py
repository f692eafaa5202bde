"""The programs of examples/interpreters as modules, which import each other as programs of one folder do."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.columns_apart import columns_apart

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "interpreters"


@pytest.fixture(scope="module", autouse=True)
def folder():
    """Imported by a module of tests: these find the programs, and what they register is theirs alone."""
    sys.path.insert(0, str(FOLDER))
    with columns_apart():
        yield
    sys.path.remove(str(FOLDER))
    for file in FOLDER.glob("*.py"):
        sys.modules.pop(file.stem, None)


def example(name: str) -> Any:
    return importlib.import_module(name)
