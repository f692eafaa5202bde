"""The text of composites: operations by name, with attributes and the function that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..xla.stablehlo_types import names, short_signature
from .attributes import dictionary_text, quoted


def composite_text(op: Any, decomposition: str, values: Sequence[Any]) -> str:
    """``stablehlo.composite "name" operands {composite_attributes = {...}, decomposition = @symbol} : types``."""
    fields = [f"decomposition = @{decomposition}", *([f"version = {op.version} : i32"] if op.version else [])]
    if op.attributes:
        fields.insert(0, f"composite_attributes = {dictionary_text(dict(op.attributes))}")
    types = short_signature(values, op.bodies[0].out_types)
    return f"stablehlo.composite {quoted(op.label)} {names(values)} {{{', '.join(fields)}}} : {types}"
