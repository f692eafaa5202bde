"""Draw the layers and folders of the package, and list what each folder is for, from the source alone.

    python tools/architecture.py            write docs/explanation/architecture.svg and docs/reference/layout.md
    python tools/architecture.py --check    print which of the two is out of date, and fail if one is

A band is a layer, a box a folder with the number of its modules, an arrow an import. Arrows are those of the transitive
reduction; imports for type checkers alone are left out.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "explanation" / "architecture.svg"
PAGE = ROOT / "docs" / "reference" / "layout.md"
LAYERS = ("effects", "interpreters", "lowering", "handlax")
Edges = Mapping[str, frozenset[str]]


# The graph


class Folder(NamedTuple):
    """A folder of the package: the number of its own modules, and the folders in it."""

    path: str
    doc: str
    modules: int
    folders: tuple[Folder, ...]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_folder(folder: Path) -> Folder:
    inner = sorted(path.parent for path in folder.glob("*/__init__.py") if not path.parent.is_symlink())
    doc = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = len([path for path in folder.glob("*.py") if path.stem != "__init__"])
    return Folder(folder.relative_to(ROOT).as_posix(), " ".join(doc.split("\n\n")[0].split()), modules,
                tuple(map(read_folder, inner)))


def module_parts(file: Path) -> list[str]:
    """The components of the name under which a file is imported."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    parts = parts[1:] if parts[0] == "handlax" else parts
    return ["handlax", *(parts[:-1] if parts[-1] == "__init__" else parts)]


@functools.cache
def imported_names(file: Path) -> tuple[str, ...]:
    """The absolute names that a file imports at its top, ``package.name`` for ``from package import name``."""
    package = module_parts(file)
    package = package if file.stem == "__init__" else package[:-1]
    found: list[str] = []
    waiting = list(ast.parse(file.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            waiting += node.orelse if "TYPE_CHECKING" in ast.unparse(node.test) else [*node.body, *node.orelse]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            found += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(found)


def folder_imports(folders: Sequence[str]) -> Edges:
    """The folders that each folder imports; a file belongs to the deepest of the folders that contain it."""
    files = [file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))]
    owner = {}
    for file in files:
        path = file.relative_to(ROOT).as_posix()
        owner[".".join(module_parts(file))] = max([f for f in folders if path.startswith(f"{f}/")], key=len, default="")
    found: dict[str, set[str]] = {folder: set() for folder in folders}
    for file in files:
        here = owner[".".join(module_parts(file))]
        for name in imported_names(file):
            there = owner.get(name, owner.get(name.rpartition(".")[0], ""))
            if here and there and here != there:
                found[here].add(there)
    return {folder: frozenset(others) for folder, others in found.items()}


def ranks(edges: Edges) -> dict[str, int]:
    """The length of the longest chain of imports below each folder. Exits where folders import each other."""
    found: dict[str, int] = {}

    def rank(node: str, above: tuple[str, ...]) -> int:
        if node in above:
            sys.exit(f"folders import each other: {' -> '.join([*above[above.index(node):], node])}")
        if node not in found:
            found[node] = max([rank(other, (*above, node)) + 1 for other in sorted(edges[node])], default=0)
        return found[node]

    for node in edges:
        rank(node, ())
    return found


def reduced(edges: Edges) -> Edges:
    """The transitive reduction of a graph."""
    order = ranks(edges)
    below: dict[str, frozenset[str]] = {}
    for node in sorted(edges, key=order.__getitem__):
        below[node] = edges[node].union(*[below[other] for other in edges[node]])
    return {node: frozenset([b for b in others if not any(b in below[other] for other in others)])
            for node, others in edges.items()}


def within(edges: Edges, nodes: Sequence[str]) -> Edges:
    """The subgraph on some of the nodes."""
    return {node: edges[node] & frozenset(nodes) for node in nodes}


# The picture: sizes in the units of the view box, which is as wide as a page

WIDTH, MARGIN, PADDING, BETWEEN = 960, 4, 18, 34
BOX, HIGH, GAP, STEP = 134, 46, 16, 232  # STEP: from column to column at most
LINE, HEAD, FOOT = 27, 34, 3  # inside a box that has boxes
TITLE = 64  # of a band
INK = {  # class -> colours on light and on dark ground
    "text": ("#1f2328", "#e6edf3"), "soft": ("#59636e", "#9198a1"), "ground": ("#ffffff", "#0d1117"),
    "effects": ("#0969da", "#58a6ff"), "interpreters": ("#8250df", "#bc8cff"),
    "lowering": ("#bc4c00", "#f0883e"), "handlax": ("#1a7f37", "#3fb950"),
}


def style() -> str:
    def rules(shade: int) -> str:
        lines = [f"text {{ fill: {INK['text'][shade]}; }} .soft {{ fill: {INK['soft'][shade]}; }}"]
        for layer in LAYERS:
            ink, ground = INK[layer][shade], INK["ground"][shade]
            lines += [
                f".{layer} .band {{ fill: {ink}; fill-opacity: 0.07; stroke: {ink}; stroke-opacity: 0.35; }}",
                f".{layer} .box {{ fill: {ground}; stroke: {ink}; }} .{layer} .inner {{ fill: {ink}; }}",
                f".{layer} .arrow {{ stroke: {ink}; }} .{layer} .tip, .{layer} .title {{ fill: {ink}; }}",
            ]
        return "\n".join(lines)

    return "\n".join([
        "text { font: 14px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; }",
        ".title { font-size: 19px; font-weight: 600; } .name { font-weight: 600; } .small { font-size: 13px; }",
        ".box { stroke-width: 1.25; } .inner { fill-opacity: 0.1; } .arrow { fill: none; stroke-width: 1.5; }",
        rules(0), f"@media (prefers-color-scheme: dark) {{\n{rules(1)}\n}}",
    ])


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float, radius: int) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'


def modules(count: int) -> str:
    return f"{count} module{'' if count == 1 else 's'}"


def height(folder: Folder) -> int:
    return HEAD + LINE * len(folder.folders) + FOOT if folder.folders else HIGH


def drawn_folder(folder: Folder, x: float, y: float, edges: Edges) -> Iterator[str]:
    """A box; the folders in it from the bottom upwards, each above those that it imports."""
    yield box("box", x, y, BOX, height(folder), 8)
    if not folder.folders:
        yield text(x + BOX / 2, y + 20, folder.name, "name", "middle")
        yield text(x + BOX / 2, y + 37, modules(folder.modules), "small soft", "middle")
        return
    yield text(x + 10, y + 22, folder.name, "name")
    if folder.modules:
        yield text(x + BOX - 10, y + 22, f"+{folder.modules}", "small soft", "end")
    inner = within(edges, [each.path for each in folder.folders])
    order = ranks(inner)
    for i, each in enumerate(sorted(folder.folders, key=lambda each: (-order[each.path], each.path))):
        at = y + HEAD + LINE * i
        yield box("inner", x + 6, at, BOX - 12, LINE - 4, 5)
        yield text(x + 12, at + 16, each.name, "small")
        yield text(x + BOX - 12, at + 16, str(each.modules), "small soft", "end")


class Node(NamedTuple):
    """A box in its column, or a point on an arrow over several columns."""

    path: str
    column: int
    size: int


def columns_of(edges: Edges, size: Callable[[str], int]) -> tuple[list[list[Node]], list[tuple[Node, Node]]]:
    """Boxes by the length of the chain below them, and links between neighbouring columns."""
    order = ranks(edges)
    columns: list[list[Node]] = [[] for _ in range(max(order.values()) + 1)]
    nodes = {path: Node(path, rank, size(path)) for path, rank in sorted(order.items())}
    for node in nodes.values():
        columns[node.column].append(node)
    links = []
    for path, others in sorted(edges.items()):
        for other in sorted(others):
            last = nodes[path]
            for column in range(last.column - 1, nodes[other].column, -1):
                point = Node(f"{path} > {other}", column, 0)
                columns[column].append(point)
                links.append((last, point))
                last = point
            links.append((last, nodes[other]))
    for _ in range(4):  # near the mean position of its neighbours
        for column in [*columns[1:], *reversed(columns[:-1])]:
            column.sort(key=lambda node: (_mean(node, links, columns), node.path))
    return columns, links


def _mean(node: Node, links: Sequence[tuple[Node, Node]], columns: Sequence[Sequence[Node]]) -> float:
    ends = [b if a == node else a for a, b in links if node in (a, b)]
    at = [(columns[end.column].index(end) + 0.5) / len(columns[end.column]) for end in ends]
    return sum(at) / len(at) if at else 0.5


def drawn_layer(layer: Folder, outer: Edges, inner: Edges, top: float) -> tuple[list[str], float]:
    """A band with its boxes from left to right, each right of those that it imports; and its height."""
    known = {folder.path: folder for folder in boxes(layer)}
    columns, links = columns_of(reduced(within(outer, list(known))), lambda path: height(known[path]))
    inside = max([sum([node.size + GAP for node in column]) - GAP for column in columns])
    total = TITLE + inside + 20
    space = WIDTH - 2 * (MARGIN + PADDING) - BOX
    step = min(STEP, space / max(len(columns) - 1, 1))
    left = MARGIN + PADDING + (space - step * (len(columns) - 1)) / 2
    corner, centre = {}, {}
    for i, column in enumerate(columns):
        at = top + TITLE + (inside - sum([node.size + GAP for node in column]) + GAP) / 2
        for node in column:
            corner[node] = left + step * i, at
            centre[node] = at + node.size / 2
            at += node.size + GAP
    lines = [f'<g class="{layer.path}">', box("band", MARGIN, top, WIDTH - 2 * MARGIN, total, 12),
             text(MARGIN + PADDING, top + 29, layer.path, "title"),
             text(MARGIN + PADDING, top + 50, layer.doc, "small soft")]
    for a, b in links:
        x, y = corner[a][0], centre[a]
        end, target = corner[b][0] + BOX, centre[b]
        gap = (x - end) / 2
        if b.size:
            end += 7
        path = f"M{x:g},{y:g} C{x - gap:g},{y:g} {end + gap:g},{target:g} {end:g},{target:g}"
        lines.append(f'<path class="arrow" d="{path}{"" if b.size else f" h{-BOX}"}"/>')
        if b.size:
            lines.append(f'<path class="tip" d="M{end - 6:g},{target:g} l8,-4.5 v9 z"/>')
    for node, (x, y) in corner.items():
        if node.size:
            lines += drawn_folder(known[node.path], x, y, inner)
    return [*lines, "</g>"], total


def boxes(layer: Folder) -> list[Folder]:
    """The folders of a layer, and the layer itself where it has modules of its own."""
    return [*layer.folders, *([layer._replace(folders=())] if layer.modules else [])]


def band_arrow(layer: str, edges: Edges, top: float) -> list[str]:
    """From a band down to those that it imports."""
    below = {other.partition("/")[0] for path, others in edges.items() if path.startswith(layer) for other in others}
    words = f"imports {', '.join([name for name in reversed(LAYERS) if name in below - {layer}])}"
    x, end = WIDTH / 2, top + BETWEEN
    return [f'<g class="{layer}">', f'<path class="arrow" d="M{x:g},{top + 3:g} V{end - 12:g}"/>',
            f'<path class="tip" d="M{x:g},{end - 3:g} l-6,-10 h12 z"/>',
            text(x + 14, top + 22, words, "small soft"), "</g>"]


def picture(layers: Sequence[Folder]) -> str:
    folders = [folder for layer in layers for folder in boxes(layer)]
    outer = folder_imports([folder.path for folder in folders])
    inner = folder_imports([each.path for folder in folders for each in (folder, *folder.folders)])
    lines: list[str] = []
    top = float(MARGIN)
    for layer in reversed(layers):
        band, size = drawn_layer(layer, outer, inner, top)
        lines += band
        top += size
        if layer is not layers[0]:
            lines += band_arrow(layer.path, outer, top)
            top += BETWEEN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + MARGIN:g}" role="img">'
    title = "<title>The layers and folders of handlax, and what they import</title>"
    return "\n".join([head, title, f"<style>\n{style()}\n</style>", *lines, "</svg>"]) + "\n"


# The lists


def sentence(doc: str) -> str:
    return doc.replace("``", "`").rstrip(".") + "."


def listing(layer: Folder, edges: Edges) -> str:
    """The table of the folders of a layer, each after those that it imports, with its docstring."""

    def rows(folders: Sequence[Folder], above: str) -> Iterator[str]:
        order = ranks(within(edges, [folder.path for folder in folders]))
        for folder in sorted(folders, key=lambda folder: (order[folder.path], folder.path)):
            name = f"{above}{folder.name}"
            yield f"| [`{name}`](../../{folder.path}) | {folder.modules or ''} | {sentence(folder.doc)} |"
            yield from rows(folder.folders, f"{name}/")

    return "\n".join(["| folder | modules | |", "| --- | --- | --- |", *rows(layer.folders, "")])


def page(layers: Sequence[Folder]) -> str:
    """A table of folders for each layer."""
    lines = [
        "# Layout",
        "",
        "Made from the code by `python tools/architecture.py`.",
        "A layer imports the layers above it on this page, a folder those above it that its sentence names.",
        "[The architecture](../explanation/architecture.md) has the picture, and the functions a call goes through.",
        "",
    ]
    for layer in layers:
        own = f" It has {modules(layer.modules)} of its own." if layer.modules else ""
        edges = folder_imports([folder.path for each in boxes(layer) for folder in (each, *each.folders)])
        outer = folder_imports([folder.path for folder in boxes(layer)])
        lines += [f"## {layer.path}", "", f"{sentence(layer.doc)}{own}", "", listing(layer, {**edges, **outer}), ""]
    return "\n".join(lines)


def write_or_check(made: Mapping[Path, str], tool: str, subject: str, source: str, words: Sequence[str]) -> int:
    """Write the files of which the texts have changed; with ``--check`` among the words only say which these are.

    The exit status: 1 if something is found out of date. ``tool``: the script that makes them, of the ``subject``, from
    the ``source``.
    """
    stale = [path for path, new in made.items() if not path.exists() or path.read_text() != new]
    names = ", ".join([path.relative_to(ROOT).as_posix() for path in stale])
    if "--check" in words:
        print(f"out of date: {names}; run python tools/{tool}" if stale else f"{subject}: as the {source} says")
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path])
    print(f"{subject}: {names or 'nothing'} written")
    return 0


def main(words: Sequence[str]) -> int:
    layers = [read_folder(ROOT / layer) for layer in LAYERS]
    made = {PICTURE: picture(layers), PAGE: page(layers)}
    return write_or_check(made, "architecture.py", "architecture", "code", words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
