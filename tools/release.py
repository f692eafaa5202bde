"""Make a release in ``build/release``: wheel, source archive and notes, after each was installed and tried.

    python tools/release.py                     with every Python from 3.11 to 3.14 that is on the path
    python tools/release.py python3.12          with these alone

The version stands in ``pyproject.toml``, ``handlax/__init__.py``, ``CITATION.cff`` and as the newest heading of the
changelog. Nothing is uploaded: ``twine upload build/release/*.whl build/release/*.tar.gz`` does that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
_TRIED = "import handlax as hx; assert hx.__version__ == {version!r}; assert hx.jit(hx.grad(lambda x: x * x))(3.0) == 6"


class NotReady(Exception):
    """The tree cannot be released as it is."""


def settings() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def said_versions() -> dict[str, str]:
    """Every place that says a version, and the version."""
    found = {"pyproject.toml": str(settings()["version"])}
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


def lowest(requirements: Sequence[str]) -> Iterator[str]:
    """The lowest version of each requirement."""
    for requirement in requirements:
        name, _, version = requirement.partition(">=")
        yield f"{name}=={version.partition(',')[0]}"


def command(*words: object, **options: object) -> None:
    """Run a command. Raises: NotReady: it failed."""
    print("+", *words, flush=True)
    if subprocess.run([*map(str, words)], **options).returncode:  # type: ignore[call-overload]
        raise NotReady(f"failed: {' '.join(map(str, words))}")


def build() -> list[Path]:
    """The wheel and the source archive, checked."""
    shutil.rmtree(RELEASE, ignore_errors=True)
    command(sys.executable, "-m", "build", "--outdir", RELEASE, ROOT)
    made = sorted([*RELEASE.glob("*.whl"), *RELEASE.glob("*.tar.gz")])
    command(sys.executable, "-m", "twine", "check", "--strict", *made)
    return made


def try_out(python: str, archive: Path, version: str, pins: Sequence[str] = ()) -> None:
    """Install an archive in a new environment, import it outside of the tree, and run the demo."""
    with tempfile.TemporaryDirectory() as folder:
        command(python, "-m", "venv", folder)
        own = Path(folder) / "bin" / "python"
        command(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{archive}[demo]", *pins)
        command(own, "-c", _TRIED.format(version=version), cwd=folder)
        command(own, "-m", "handlax", cwd=folder)
        command(own, ROOT / "examples" / "demo.py", cwd=folder)


def main(arguments: Sequence[str]) -> int:
    try:
        versions = said_versions()
        if len({*versions.values()}) > 1:
            raise NotReady(f"versions differ: {versions}")
        version = versions["pyproject.toml"]
        text = notes(version)
        made = build()
        for python in filter(shutil.which, arguments or PYTHONS):
            for archive in made:
                try_out(python, archive, version)
        lowest_python = next(filter(shutil.which, arguments or PYTHONS))
        try_out(lowest_python, made[0], version, [*lowest(settings()["dependencies"])])  # type: ignore[arg-type]
    except NotReady as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    (RELEASE / "notes.md").write_text(text)
    print(f"release: {version} is in {RELEASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
