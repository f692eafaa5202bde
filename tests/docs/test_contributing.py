"""The recipes of CONTRIBUTING.md: each diff applies to the tree, and the program below it runs on what that makes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.package_source import LAYERS, ROOT, module_name

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
SECTION = re.compile(r"^### (.+)\n((?:(?!###).*\n)*)", re.MULTILINE)
FENCE = re.compile(r"^```(diff|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBERS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}
RECIPES = {name: (text, dict(FENCE.findall(text))) for name, text in SECTION.findall(PAGE.partition("## Recipes")[2])}


def run(command: list[str], cwd: Path, **more: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **more}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def changed_copy(diff: str, where: Path) -> Path:
    """A folder from which handlax is imported as it is after a diff."""
    tree = where / "tree"
    for folder in ("effects", "interpreters", "lowering", "handlax", "tests/laws"):
        shutil.copytree(ROOT / folder, tree / folder, symlinks=True)  # with what is compiled, most of which is kept
    (where / "recipe.diff").write_text(diff)
    run(["git", "apply", "--verbose", "../recipe.diff"], tree, GIT_CEILING_DIRECTORIES=str(where))
    return tree


# After the program: that it ran on the copy, and that the examples in the docstrings of what was changed are right.
CHECKS = """
import doctest, importlib, handlax
assert handlax.__file__.startswith({tree!r})
for module in {modules!r}:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not doctest.testmod(importlib.import_module(module), optionflags=flags).failed
"""


def changed_modules(diff: str) -> list[str]:
    files = [ROOT / name for name in re.findall(r"^\+\+\+ b/(.+)", diff, re.MULTILINE)]
    return [module_name(file) for file in files if file.relative_to(ROOT).parts[0] in LAYERS]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_applies_and_its_program_runs(name, tmp_path):
    blocks = RECIPES[name][1]
    tree = changed_copy(blocks["diff"], tmp_path)
    checks = CHECKS.format(tree=str(tree), modules=changed_modules(blocks["diff"]))
    (tmp_path / "program.py").write_text(blocks["python"] + checks)
    run([sys.executable, "-P", "program.py"], tmp_path, PYTHONPATH=str(tree))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_counts_its_files(name):
    text, blocks = RECIPES[name]
    said = re.search(r"^(\w+) files?:", text, re.MULTILINE)
    assert said is not None
    assert NUMBERS[said[1]] == len(re.findall(r"^\+\+\+ b/", blocks["diff"], re.MULTILINE))


def test_there_are_recipes():
    assert len(RECIPES) == 8


def test_a_recipe_for_another_tree_is_found(tmp_path):
    diff = RECIPES["A handler"][1]["diff"].replace("nan_origin", "nowhere")
    with pytest.raises(AssertionError, match="patch does not apply"):
        changed_copy(diff, tmp_path)
