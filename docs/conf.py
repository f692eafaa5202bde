"""Settings of Sphinx, which builds the site from the pages of this folder: ``make docs``."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "site"), str(HERE.parent / "tools"), str(HERE.parent)]

import handlax  # noqa: E402

project = "handlax"
author = "The handlax authors"
project_copyright = author
release = version = handlax.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton",
    "reference_pages", "docstrings", "navigation", "repository_links", "glossary_links", "mathml",
    "notebook_pages",
]
exclude_patterns = ["array-api-skips.txt", "site"]
suppress_warnings = ["ref.python"]          # short names of types that several classes have as fields

html_theme = "furo"
html_title = f"handlax {release}"
html_theme_options = {"source_directory": "docs/"}
html_math_renderer = "mathml"
html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "native"

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "attrs_inline"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
html_static_path = ["site/static"]
html_css_files = ["handlax.css"]
