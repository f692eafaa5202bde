"""Libraries written for JAX, run with JAX and with handlax in its place; ``make libraries`` writes their table.

Each file of ``library_cases`` is run in two processes, and what its programs return is compared leaf by leaf.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

TOOLS = Path(__file__).resolve().parent
PAGE = TOOLS.parent / "docs" / "libraries.md"
DISTRIBUTIONS = {"e3nn": "e3nn-jax", "haiku": "dm-haiku", "orbax": "orbax-checkpoint"}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}  # of solvers in 32 bits, whose steps amplify rounding
HEAD = """# Libraries written for JAX

Programs of [`tools/library_cases`](../tools/library_cases) on handlax, by [`as_jax`](reference/handlax.as_jax.md):
how many of them return what they return on JAX {jax}.
`make libraries` writes this page.

| library | version | programs | equal | otherwise |
| --- | --- | --- | --- | --- |
"""


def results(library: str, *how: str) -> dict[str, Any]:
    """What the programs of a library return, or why it cannot be imported."""
    command = [sys.executable, *how, str(TOOLS / "run_library_cases.py"), library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line[:1].strip()]
        return {"import": next((line for line in reversed(said) if "Error" in line or "Module" in line), "failed")}
    return json.loads(done.stdout.splitlines()[-1])


def same(ours: Any, theirs: Any) -> bool:
    """Whether two lists of leaves have equal shapes and nearly equal numbers."""
    if isinstance(ours, str) or isinstance(theirs, str) or len(ours) != len(theirs):
        return False
    leaves = zip(ours, theirs)
    return all([x == y if isinstance(x, str) else x[0] == y[0] and np.allclose(x[1], y[1], **TOLERANCE, equal_nan=True)
                for x, y in leaves])


def row(library: str) -> str:
    """The row of a library: how many programs give what they give on JAX, and what becomes of the others."""
    theirs, ours = results(library), results(library, "-m", "handlax.as_jax")
    whole = ours.get("import")
    others = [f"`{name}`: {ours[name] if isinstance(ours[name], str) else 'other values'}"
              for name in theirs if whole is None and not same(ours[name], theirs[name])]
    said = f"import: {whole}" if whole else "; ".join(others)
    equal = 0 if whole else len(theirs) - len(others)
    escaped = said.replace("|", "\\|")
    return f"| {library} | {version(DISTRIBUTIONS.get(library, library))} | {len(theirs)} | {equal} | {escaped} |"


def main() -> None:
    names = sorted(path.stem.removesuffix("_cases") for path in (TOOLS / "library_cases").glob("*_cases.py"))
    rows = []
    for name in sys.argv[1:] or names:
        rows.append(row(name))
        print(rows[-1], flush=True)
    if not sys.argv[1:]:
        PAGE.write_text(HEAD.format(jax=version("jax")) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
