"""Make a release in ``build/release``: wheel, source archive and notes, after each was installed and tried.

    python tools/release.py                     with every Python from 3.11 to 3.14 that is on the path
    python tools/release.py python3.12          with these alone

The lowest versions that ``pyproject.toml`` allows are tried with Python 3.11, the first one for which they are. All
that changed must be committed, and stand in the changelog under the version. The version stands in ``pyproject.toml``,
``handlax/__init__.py``, ``CITATION.cff`` and as the newest heading of the changelog. Nothing is uploaded:
``twine upload build/release/*.whl build/release/*.tar.gz`` does that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import lowest_versions

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
PYTHON_OF_LOWEST = "python3.11"
_TRIED = "import handlax as hx; assert hx.__version__ == {version!r}; assert hx.jit(hx.grad(lambda x: x * x))(3.0) == 6"


class NotReady(Exception):
    """The tree cannot be released as it is."""


def said_versions() -> dict[str, str]:
    """Every place that says a version, and the version."""
    found = {"pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]}
    for name, pattern in (
        ("handlax/__init__.py", r'^__version__ = "(.+)"'), ("CITATION.cff", r"^version: (.+)"),
        ("CHANGELOG.md", r"^## \[(?!Unreleased)([^\]]+)\]"),
    ):
        match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def notes(version: str) -> str:
    """The part of the changelog on a version. Raises: NotReady: there is none."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\].*\n((?:(?!## ).*\n?)*)", text, re.MULTILINE)
    if found is None:
        raise NotReady(f"CHANGELOG.md has no part on {version}")
    return found[1].strip() + "\n"


def check_committed(status: str, changelog: str) -> None:
    """Raises: NotReady: the tree has changes by Git's status, or the changelog has some that are not released."""
    if status.strip():
        raise NotReady(f"not all is committed:\n{status.rstrip()}")
    found = re.search(r"^## \[Unreleased\].*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    if found is not None and re.search(r"^(?!#).*\S", found[1], re.MULTILINE):
        raise NotReady("CHANGELOG.md has text under Unreleased, which belongs under the version")


def runs(python: str) -> bool:
    """Whether a command is a Python: a version manager has one on the path also for versions that it does not start."""
    return bool(shutil.which(python)) and not subprocess.run([python, "-I", "-c", ""], capture_output=True).returncode


def interpreters(asked: Sequence[str]) -> list[str]:
    """The interpreters to try with: those asked for, or all that are on the path. Raises: NotReady: one is missing."""
    missing = [python for python in (*asked, PYTHON_OF_LOWEST) if not runs(python)]
    if missing:
        raise NotReady(f"not on the path: {', '.join(missing)}")
    return [python for python in asked or PYTHONS if runs(python)]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without those of Python, such as PYTHONPATH, by which the tree might be tried for the archive."""
    return {name: value for name, value in variables.items() if not name.startswith("PYTHON")}


def command(*words: object, **options: object) -> None:
    """Run a command. Raises: NotReady: it failed."""
    print("+", *words, flush=True)
    if subprocess.run([*map(str, words)], env=environment(os.environ), **options).returncode:  # type: ignore[call-overload]
        raise NotReady(f"failed: {' '.join(map(str, words))}")


def build(folder: Path) -> list[Path]:
    """The wheel and the source archive, made in a folder and checked."""
    command(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    made = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    command(sys.executable, "-m", "twine", "check", "--strict", *made)
    return made


def try_out(python: str, archive: Path, version: str, pins: Sequence[str] = ()) -> None:
    """Install an archive in a new environment, import it outside of the tree, and run the demo."""
    with tempfile.TemporaryDirectory() as folder:
        command(python, "-I", "-m", "venv", folder)
        own = (Path(folder) / "bin" / "python", "-I")  # without the folder of the tree
        command(*own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{archive}[demo]", *pins)
        command(*own, "-c", _TRIED.format(version=version), cwd=folder)
        command(*own, "-m", "handlax", cwd=folder)
        command(*own, ROOT / "examples" / "demo.py", cwd=folder)


def publish(made: Sequence[Path], text: str) -> None:
    """Move what was tried to ``build/release``, in place of what was there."""
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    for archive in made:
        shutil.move(archive, RELEASE)
    (RELEASE / "notes.md").write_text(text)


def main(arguments: Sequence[str]) -> int:
    try:
        versions = said_versions()
        if len({*versions.values()}) > 1:
            raise NotReady(f"versions differ: {versions}")
        version = versions["pyproject.toml"]
        text, pythons = notes(version), interpreters(arguments)
        status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
        check_committed(status.stdout, (ROOT / "CHANGELOG.md").read_text())
        with tempfile.TemporaryDirectory() as folder:
            made = build(Path(folder))
            for python in pythons:
                for archive in made:
                    try_out(python, archive, version)
            try_out(PYTHON_OF_LOWEST, made[0], version, lowest_versions.pins())
            publish(made, text)
    except NotReady as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    print(f"release: {version} is in {RELEASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
