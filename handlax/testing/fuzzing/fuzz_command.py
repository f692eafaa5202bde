"""The command that fuzzes the targets of a project, each in a process of its own, which XLA or a hang in C may end.

    make fuzz ARGS="--seconds 600 --target parser"
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from ...effects.base.errors import BadArgument
from .fuzz_loop import fuzz, keep, read_corpus
from .fuzz_targets import Target

MODULE = "fuzz_targets"
_PATIENCE = 6  # so many times as long as an input may take in Python it may take in C: then the process ends
_REST = 3600.0  # seconds that a process has to make findings small, beside ten times those in which it looks for them


def main(words: Sequence[str]) -> int:
    """Fuzz the targets that the words of a command line name; gives the number of findings.

    They are in the mapping ``TARGETS`` of the module ``fuzz_targets``, in the working directory or in its ``tests``.
    Inputs that reach new lines, and findings, are kept in the folder of corpora if one is given.
    """
    targets = targets_here()
    parser = argparse.ArgumentParser(prog="python -m handlax.testing.fuzzing", description=main.__doc__)
    parser.add_argument("--target", action="append", choices=[*targets], help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpora", type=Path, help="a folder with a folder of inputs for each target")
    parser.add_argument("--here", type=Path, metavar="FILE", help="in this process, which writes each input to a file")
    chosen = parser.parse_args(words)
    names = chosen.target or [*targets]
    findings = 0
    for name in names:
        folder = chosen.corpora and chosen.corpora / name
        arguments = targets[name], folder, chosen.seconds / len(names), chosen.seed
        findings += _here(*arguments, chosen.here) if chosen.here else _apart(*arguments)
    return min(findings, 100)


def targets_here() -> Mapping[str, Target]:
    """The targets of the project in the working directory. Raises: BadArgument: it has none."""
    sys.path += [place for place in (os.getcwd(), os.path.abspath("tests")) if place not in sys.path]
    try:
        found: Mapping[str, Target] = import_module(MODULE).TARGETS
    except ModuleNotFoundError as error:
        if error.name != MODULE:
            raise
        raise BadArgument(
            f"fuzzing: {os.getcwd()} or its tests must have a module {MODULE}, got none.",
            hint=f"{MODULE}.py with TARGETS = {{name: Target(name, run)}}.",
        ) from None
    return found


def _here(target: Target, folder: Path | None, seconds: float, seed: int, file: Path) -> int:
    """Fuzz in this process, which ends when an input takes too long in C; ``file`` has this input."""

    def watched(data: bytes) -> None:
        file.write_bytes(data)
        faulthandler.dump_traceback_later(_PATIENCE * target.seconds, exit=True)
        try:
            target.run(data)
        finally:
            faulthandler.cancel_dump_traceback_later()

    corpus = read_corpus(folder) if folder else ()
    report = fuzz(target._replace(run=watched), corpus, seconds=seconds, seed=seed)
    file.unlink()
    if folder:
        for data in (*report.added, *[finding.data for finding in report.findings]):
            keep(folder, data)
    sys.stdout.write(f"{target.name}: {report}\n")
    return len(report.findings)


def _apart(target: Target, folder: Path | None, seconds: float, seed: int) -> int:
    """Fuzz in another process; the input at which it ends is a finding."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "input"
        command = [sys.executable, "-m", "handlax.testing.fuzzing", "--target", target.name, "--seconds", str(seconds)]
        options = ["--seed", str(seed), "--here", str(file), *(["--corpora", str(folder.parent)] if folder else [])]
        try:
            status = subprocess.run([*command, *options], check=False, timeout=10 * seconds + _REST).returncode
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL  # by which it was ended
        if not file.exists():
            return status if status >= 0 else 1  # ended by a signal, before its first input
        data = file.read_bytes()
    sys.stdout.write(f"{target.name}: the process ended with {status}\n    {data!r}\n")
    if folder:
        keep(folder, data)
    return 1
