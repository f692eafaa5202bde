"""Write docs/walk.svg, the picture of README.md: the function ``walk`` of its example as a program.

    python tools/readme_picture.py            write it
    python tools/readme_picture.py --check    fail if it is out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import handlax as hx

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "walk.svg"


def drawn() -> str:
    """The picture of ``walk``; sites name the lines of the example."""
    text = (ROOT / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    before_use = example[1].partition("\nkeys = ")[0]
    names: dict[str, object] = {}
    exec(compile(before_use, "README.md", "exec"), names)  # the example is ours
    return hx.draw(names["walk"])(1.0).svg  # type: ignore[arg-type]


def main(arguments: list[str]) -> int:
    picture = drawn()
    fresh = PICTURE.exists() and PICTURE.read_text() == picture
    if "--check" in arguments:
        print(f"docs/walk.svg: {'as README.md says' if fresh else 'out of date; run python tools/readme_picture.py'}")
        return 0 if fresh else 1
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
