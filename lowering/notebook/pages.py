"""``page`` and ``treescope_node``: what a notebook, and a tree of treescope's, show of a value of a displayed class."""

from __future__ import annotations

from typing import Any

from ...effects.base.lazy_module import late_module
from . import placement_pages as placement_pages  # which register what they draw
from . import report_pages as report_pages
from . import value_pages as value_pages
from .page import describe


def page(x: Any) -> str:
    """The HTML that a notebook shows of a value: ``x._repr_html_()``."""
    return describe(x).html


def treescope_node(x: Any, path: str | None) -> Any:
    """The value in a tree of treescope's: the title of its page, which unfolds to the page; in text the title alone.

    ``NotImplemented`` leaves it to treescope where that knows the class, as it does those that stand for JAX's.
    """
    if late_module("treescope.type_registries").lookup_treescope_handler_for_type(type(x)) is not None:
        return NotImplemented
    parts = late_module("treescope.rendering_parts")
    described = describe(x)
    shown = parts.embedded_iframe(embedded_html=described.html, fallback_in_text_mode=parts.empty_part())
    return parts.build_custom_foldable_tree_node(
        label=parts.text(described.title),
        contents=parts.fold_condition(expanded=parts.indented_children([shown])),
        path=path,
        expand_state=parts.ExpandState.COLLAPSED if path else parts.ExpandState.EXPANDED,  # the root has no path
    )
