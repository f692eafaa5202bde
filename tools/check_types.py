"""Check the types of the package with mypy, in the layout in which it is installed.

The folders of this repository have other names than the packages they become. This program builds
``build/types/handlax`` from links to them, runs mypy there, and prints its lines with the paths of the repository.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FARM = ROOT / "build" / "types"


def package_folders() -> dict[str, str]:
    """Give the package-dir mapping of pyproject.toml: ``{"handlax.effects": "effects", ...}``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return dict(settings["package-dir"])


def link_farm(folders: dict[str, str]) -> None:
    """Rebuild the tree of links: a folder per package, a link per file, so that no package shadows another."""
    shutil.rmtree(FARM, ignore_errors=True)
    for package, folder in folders.items():
        target = FARM.joinpath(*package.split("."))
        target.mkdir(parents=True, exist_ok=True)
        for file in (ROOT / folder).iterdir():
            if file.suffix in {".py", ".pyi"} or file.name == "py.typed":
                (target / file.name).symlink_to(file)


def in_repository(line: str, folders: dict[str, str]) -> str:
    """Replace the installed path at the start of a message by the one in the repository."""
    found = re.match(r"(handlax(?:/\w+)*)/(\w+\.pyi?:)", line)
    if found is None:
        return line
    folder = folders.get(found[1].replace("/", "."), found[1])
    return f"{folder}/{found[2]}{line[found.end():]}"


def main() -> int:
    folders = package_folders()
    link_farm(folders)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"),
               "--cache-dir", str(ROOT / ".mypy_cache"), *sys.argv[1:]]
    done = subprocess.run(command, cwd=FARM, env={**os.environ, "MYPYPATH": str(FARM)}, text=True, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in done.stdout.splitlines():
        print(in_repository(line, folders))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
