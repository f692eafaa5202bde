"""Sphinx extension: on each page the first use of a word of the glossary leads to its entry."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

PAGE = "glossary"
EVERYDAY = frozenset((  # words that pages use in their everyday sense too, so that a link would mislead
    "answer", "base", "block", "body", "boundary", "box", "bucket", "choice", "composition", "constant", "container",
    "coordinate", "costs", "default", "direct", "format", "forward", "installed", "invariant", "key", "known",
    "label", "layout", "link", "mark", "outer", "part", "plan", "policy", "rate", "record", "repeat", "resolved",
    "result", "root", "rotate", "run", "settings", "site", "spec", "stack", "state", "step", "stream", "support",
    "table", "template", "test", "tiles", "traffic", "type", "unknown", "variable", "verdict", "weak", "world",
))
_LEFT_ALONE = (nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.term, nodes.caption)


class Anchors(SphinxPostTransform):
    """Gives each word of the glossary's tables an anchor."""

    default_priority = 700

    def run(self, **options: Any) -> None:
        if self.env.docname == PAGE:
            for row in self.document.findall(nodes.row):
                if not isinstance(row.parent, nodes.thead):
                    first = row.next_node(nodes.entry)
                    row["ids"].extend([anchor(word) for word in words(first.astext())])


class GlossaryLinks(SphinxPostTransform):
    """Links the first use of each word on a page."""

    default_priority = 701

    def run(self, **options: Any) -> None:
        if self.env.docname == PAGE or self.env.docname.startswith("reference/"):
            return
        left = set(self.env.glossary_words)
        for text in [*self.document.findall(nodes.Text)]:
            if left and not inside(text, _LEFT_ALONE):
                self.link(text, left)

    def link(self, text: nodes.Text, left: set[str]) -> None:
        pattern = re.compile(r"\b(" + "|".join(sorted(map(re.escape, left), key=len, reverse=True)) + r")s?\b")
        found = next((m for m in pattern.finditer(text) if m[1] in left), None)
        if found is None:
            return
        left.discard(found[1])
        uri = self.app.builder.get_relative_uri(self.env.docname, PAGE) + f"#{anchor(found[1])}"
        before, after = nodes.Text(text[: found.start()]), nodes.Text(text[found.end() :])
        link = nodes.reference("", found[0], refuri=uri, classes=["glossary"])
        text.parent.replace(text, [before, link, after])
        self.link(after, left)


def words(cell: str) -> list[str]:
    """The words of an entry, which may be several with commas between them."""
    return [word.strip() for word in cell.split(",")]


def anchor(word: str) -> str:
    return "word-" + re.sub(r"\W+", "-", word.lower()).strip("-")


def inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Whether a node is part of one of these kinds."""
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False


def read(app: Sphinx) -> None:
    """Read the words of the glossary."""
    rows = re.findall(r"^\| ([^|`]+?) \|", (app.srcdir / f"{PAGE}.md").read_text(), re.MULTILINE)
    app.env.glossary_words = frozenset(word for row in rows for word in words(row)) - EVERYDAY - {"word", "---"}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", read)
    app.add_post_transform(Anchors)
    app.add_post_transform(GlossaryLinks)
    return {"parallel_read_safe": True}
