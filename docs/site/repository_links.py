"""Sphinx extension: links to what is in the repository and no page: a copy of the file; a folder is named without link.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = "_files"


class RepositoryLinks(SphinxPostTransform):
    """Resolves the links whose target is a file or folder outside of the pages."""

    default_priority = 8  # before MyST looks for a page

    def run(self, **options: Any) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).resolve().parent
        for node in [*self.document.findall(pending_xref)]:
            name = node["reftarget"].partition("#")[0]
            if node.get("refdomain") == "doc":
                name += ".md"
            path = (folder / name).resolve() if not Path(name).is_absolute() else Path(name)
            outside = not path.is_relative_to(self.app.srcdir) and path.is_relative_to(ROOT)
            if outside and path.is_dir():
                node.replace_self(node.children)
            elif outside and path.is_file():
                node.replace_self(nodes.reference("", "", *node.children, refuri=self.copied(path.relative_to(ROOT))))

    def copied(self, path: Path) -> str:
        """The address, seen from the page, of a copy of a file of the repository."""
        target = Path(self.app.outdir) / FILES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
        up = "../" * self.env.docname.count("/")
        return f"{up}{FILES}/{path}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(RepositoryLinks)
    return {"parallel_read_safe": True}
