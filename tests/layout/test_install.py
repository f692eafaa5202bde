"""The package as pyproject.toml describes it, against the tree and against what is installed."""

import importlib
import importlib.metadata
import importlib.resources
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]


def folders_with_files() -> set[str]:
    """Give the folders of the four layers that hold Python files."""
    files = [file for layer in ("effects", "interpreters", "lowering", "api") for file in (ROOT / layer).rglob("*.py")]
    return {file.parent.relative_to(ROOT).as_posix() for file in files}


def test_every_folder_of_the_package_is_listed():
    assert set(FOLDERS.values()) == folders_with_files()
    assert sorted(PACKAGES) == sorted(FOLDERS)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_imported_from_the_folder_it_is_mapped_to(package):
    assert (ROOT / FOLDERS[package] / "__init__.py").exists()
    assert importlib.import_module(package).__name__ == package


def test_every_sub_package_has_the_name_of_its_folder():
    inner = {package: folder for package, folder in FOLDERS.items() if package != "handlax"}
    assert all(folder.removeprefix("api/").replace("/", ".") == package.removeprefix("handlax.")
               for package, folder in inner.items())


def test_types_are_announced_to_type_checkers():
    assert importlib.resources.files("handlax").joinpath("py.typed").is_file()


def test_the_installed_version_is_the_one_of_the_project():
    assert importlib.metadata.version("handlax") == PROJECT["project"]["version"]
