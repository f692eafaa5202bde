"""The package as it is built and installed, and as it is imported from a checkout, wherever that lies."""

import importlib.metadata
import importlib.resources
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from helpers.package_source import LAYERS, PACKAGE, ROOT, module_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKS = [layer for layer in LAYERS if layer != "handlax"]
# The files of the package, by their places below the folder that holds ``handlax``.
INSTALLED = {"handlax/py.typed", "handlax_pytest.py"} | {
    "/".join(module_name(file).split(".")) + ("/__init__.py" if file.name == "__init__.py" else ".py")
    for file in PACKAGE}


def copied(to: Path, *more: str) -> Path:
    """A copy of what the package is built from, and of some other files and folders, with its links."""
    for place in [*LAYERS, "handlax_pytest.py", "pyproject.toml", "README.md", "LICENSE", *more]:
        (to / place).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / place).is_dir():
            shutil.copytree(ROOT / place, to / place, symlinks=True)  # with what is compiled, which is kept
        else:
            shutil.copy(ROOT / place, to / place)
    return to


def run(*command, cwd=None, **environment):
    done = subprocess.run([*map(str, command)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True,
                          check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_layers_are_linked_into_the_public_folder():
    assert {path.name: os.readlink(path) for path in (ROOT / "handlax").rglob("*") if path.is_symlink()} == {
        layer: f"../{layer}" for layer in LINKS}


def test_types_are_announced_to_type_checkers():
    assert importlib.resources.files("handlax").joinpath("py.typed").is_file()


def test_the_installed_version_is_the_one_of_the_project():
    assert importlib.metadata.version("handlax") == PROJECT["project"]["version"]


# Built

IN_AN_ENVIRONMENT = """
import handlax as hx, importlib.metadata as metadata
assert hx.__file__.startswith({prefix!r}), hx.__file__
assert float(hx.jit(hx.grad(lambda x: x**3))(2.0)) == 12.0
print(*[file for file in metadata.files("handlax") if file.suffix in (".py", ".typed")])
"""


def without_root(name: str) -> str:
    return name.partition("/")[2]


def built(kind: str, tree: Path) -> Path:
    """The archive of a kind that is built from a tree."""
    build = f"from setuptools.build_meta import build_{kind} as build; print(build('dist'))"
    return tree / "dist" / run(sys.executable, "-c", build, cwd=tree).split()[-1]


def sources(files: Iterable[str]) -> list[str]:
    return sorted(file for file in files if file.endswith((".py", "py.typed")))


@pytest.mark.sweep  # as one that is made of a source archive, below
def test_a_wheel_has_every_file_once(tmp_path):
    assert sources(zipfile.ZipFile(built("wheel", copied(tmp_path / "tree"))).namelist()) == sorted(INSTALLED)


def test_a_source_archive_has_every_file_once_and_what_is_installed_of_it_works(tmp_path):
    archive = built("sdist", copied(tmp_path / "tree"))
    with tarfile.open(archive) as opened:
        assert all(member.isfile() or member.isdir() for member in opened)
        assert sources(without_root(member.name) for member in opened if member.isfile()) == sorted(INSTALLED)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "new")
    python = tmp_path / "new" / "bin" / "python"
    (site,) = (tmp_path / "new").rglob("site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-build-isolation", "--no-compile",
        archive, PYTHONPATH="")
    program = IN_AN_ENVIRONMENT.format(prefix=str(tmp_path / "new"))
    assert {*run(python, "-P", "-c", program, PYTHONPATH="").split()} == INSTALLED
    project = shutil.copytree(ROOT / "examples" / "tested_project", tmp_path / "project")
    assert "9 passed" in run(python, "-P", "-m", "pytest", "-q", cwd=project, PYTHONPATH="")


# Imported from a checkout with an awkward path, by files with awkward paths

SUITE = ("tests/conftest.py", "tests/helpers", "tests/effects/base/test_source_locations.py",
         "tests/effects/base/test_tracebacks.py")
TESTS = """
import sys, pytest
failed = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"])
import handlax  # after pytest, which rewrites the modules of a distribution with a plug-in when it imports them
assert handlax.__file__.startswith(sys.argv[1]), handlax.__file__
sys.exit(failed)
"""


@pytest.mark.parametrize("folder", [pytest.param("api/effects", marks=pytest.mark.sweep), "handlax/handlax", "a link"])
def test_a_checkout_passes_its_tests_under_any_name(folder, tmp_path):
    checkout = copied(tmp_path / ("its target, with spaces" if folder == "a link" else folder), *SUITE)
    if folder == "a link":
        (tmp_path / folder).symlink_to(checkout, target_is_directory=True)
    root = tmp_path / folder
    said = run(sys.executable, "-P", "-c", TESTS, root, cwd=root, PYTHONPATH=str(root))
    assert re.search(r"\d{2,} passed", said)


MISTAKE = """
import handlax as hx
from handlax import lax
from handlax import numpy as hnp

def model(x):
    return lax.add(x, hnp.ones(2))

def line():
    try:
        hx.grad(model)(hnp.ones(3))
    except hx.errors.ShapeMismatch as error:
        return str(error).splitlines()[1].strip()
"""


@pytest.mark.parametrize("place", [
    *[pytest.param(place, marks=pytest.mark.sweep) for place in ("handlax_models/model.py", "handlax/model.py")],
    "handlax/effects/model.py", "interpreters/handlax.effects/model.py"])
def test_the_line_of_a_user_is_found_wherever_it_stands(place, tmp_path):
    script = tmp_path / place
    script.parent.mkdir(parents=True)
    script.write_text(MISTAKE + "\nprint(line())\n")
    assert run(sys.executable, "-P", script).startswith("at model.py:7")


def test_the_line_of_a_users_package_of_a_similar_name_is_found(tmp_path):
    package = tmp_path / "handlax_models"
    package.mkdir()
    (package / "__init__.py").write_text(MISTAKE)
    said = run(sys.executable, "-P", "-c", "import handlax_models; print(handlax_models.line())",
               PYTHONPATH=str(tmp_path))
    assert said.startswith("at __init__.py:7")


def test_the_package_is_imported_from_an_archive(tmp_path):
    archive = tmp_path / "handlax.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for place in sorted(INSTALLED):
            opened.write(ROOT / place, place)
    script = tmp_path / "model.py"
    script.write_text(MISTAKE + "\nassert '.zip' in hx.__file__, hx.__file__\nprint(line())\n")
    assert run(sys.executable, "-P", script, PYTHONPATH=str(archive)).startswith("at model.py:7")
