"""Check the pages of the documentation as text; tests/docs/test_pages.py executes their examples.

Every relative link leads to a file, and to a heading where it names one; every page of ``docs/`` is reached from
``docs/index.md``; every page has one title and closes its fences; every Python block compiles.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def split_fences(text: str) -> tuple[list[str], list[tuple[str, int, str]], bool]:
    """Give the lines of prose, the blocks as (language, line of the fence, text), and whether all fences close."""
    prose: list[str] = []
    blocks: list[tuple[str, int, str]] = []
    inside: tuple[str, int, list[str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        if fence and inside is None:
            inside = (line.strip().strip("`").strip(), number, [])
        elif fence and inside is not None:
            blocks.append((inside[0], inside[1], "\n".join(inside[2])))
            inside = None
        elif inside is not None:
            inside[2].append(line)
        else:
            prose.append(line)
    return prose, blocks, inside is None


def anchor(heading: str) -> str:
    """Give the anchor that a heading gets: lower case, words joined by dashes, punctuation dropped."""
    plain = re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower())
    return plain.replace(" ", "-")


def headings(prose: list[str]) -> list[str]:
    return [line for line in prose if re.match(r"#{1,6} ", line)]


def links(prose: list[str]) -> Iterator[str]:
    """Give the targets of the links, those inside `code` left out."""
    for found in LINK.finditer(re.sub(r"`[^`\n]*`", "", "\n".join(prose))):
        yield found[1] or found[2]


def link_mistakes(page: Path, prose: list[str]) -> Iterator[str]:
    for target in links(prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"links to {target}, which does not exist"
        elif fragment and file.suffix == ".md":
            there = split_fences(file.read_text())[0]
            if fragment not in {anchor(heading) for heading in headings(there)}:
                yield f"links to {target}: {file.name} has no such heading"


def block_mistakes(blocks: list[tuple[str, int, str]]) -> Iterator[str]:
    for language, line, text in blocks:
        if language == "python" and ">>>" not in text:
            try:
                ast.parse(text)
            except SyntaxError as error:
                yield f"line {line + (error.lineno or 0)}: {error.msg}"


def text_of(page: Path) -> str:
    """Give the text of a page; of a notebook, that of its cells of Markdown."""
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    return "\n\n".join(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"])


def page_mistakes(page: Path) -> Iterator[str]:
    prose, blocks, closed = split_fences(text_of(page))
    titles = [line for line in headings(prose) if line.startswith("# ")]
    if len(titles) != 1:
        yield f"must have one title, has {len(titles)}"
    if not closed:
        yield "a fence is not closed"
    yield from link_mistakes(page, prose)
    yield from block_mistakes(blocks)


def unreached(pages: list[Path]) -> set[Path]:
    """Give the pages of docs/ that no chain of links from the index reaches."""
    waiting, seen = [DOCS / "index.md"], set()
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix not in (".md", ".ipynb") or not page.exists():
            continue
        seen.add(page)
        prose = split_fences(text_of(page))[0]
        waiting += [(page.parent / target.partition("#")[0]).resolve() for target in links(prose)]
    return {page for page in pages if page.is_relative_to(DOCS)} - seen


def main() -> int:
    pages = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.ipynb"))]
    mistakes = [f"{page.relative_to(ROOT)}: {mistake}" for page in pages for mistake in page_mistakes(page)]
    mistakes += [f"{page.relative_to(ROOT)}: not reached from docs/index.md" for page in sorted(unreached(pages))]
    print("\n".join(mistakes) if mistakes else f"{len(pages)} pages, every link leads somewhere")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
