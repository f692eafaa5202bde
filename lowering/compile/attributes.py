"""The text of MLIR's attributes: the constants of a composite, and of a call of a foreign function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...effects.operations.foundations.attributes import ArrayAttribute, NamedAttributes
from ...effects.types.array_type import array_type
from ..xla.stablehlo_types import ELEMENT, dense, names, short_signature, tensor


def quoted(text: str) -> str:
    """A string literal of MLIR."""
    plain = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in text.encode()]
    return f'"{"".join(plain)}"'


def bare(name: str) -> str:
    """An identifier in MLIR's text: bare if it consists of letters, digits and underscores, else in quotes."""
    return name if name.isascii() and name.isidentifier() else quoted(name)


def dictionary_text(attributes: Mapping[str, Any]) -> str:
    """A dictionary of attributes: ``{name = value, ...}``."""
    return f"{{{', '.join([f'{bare(name)} = {attribute_text(value)}' for name, value in attributes.items()])}}}"


def attribute_text(value: Any) -> str:
    """An attribute of MLIR: Python's numbers have 64 bits, those in tuples too."""
    if isinstance(value, ArrayAttribute):
        return f"{dense(value.value)} : {tensor(array_type(value.shape, value.dtype))}"
    if isinstance(value, NamedAttributes):
        return dictionary_text(dict(value.items))
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, (str, bytes)):
        return quoted(value if isinstance(value, str) else value.decode())
    if isinstance(value, np.dtype):
        return ELEMENT[value.name]
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    element = ELEMENT[value.dtype.name] if isinstance(value, np.generic) else "i64" if isinstance(value, int) else "f64"
    return f"{float_text(value) if element.startswith(('f', 'bf')) else int(value)} : {element}"


def float_text(value: Any) -> str:
    """A number as a literal of its dtype, by its bits where it is not finite."""
    if np.isfinite(value):
        text = repr(float(value))
        return text if "." in text else text.replace("e", ".0e")
    return "0x" + np.asarray(value).tobytes()[::-1].hex().upper()


def composite_text(op: Any, decomposition: str, values: Sequence[Any]) -> str:
    """``stablehlo.composite "name" operands {composite_attributes = {...}, decomposition = @symbol} : types``."""
    fields = [f"decomposition = @{decomposition}", *([f"version = {op.version} : i32"] if op.version else [])]
    if op.attributes:
        fields.insert(0, f"composite_attributes = {dictionary_text(dict(op.attributes))}")
    types = short_signature(values, op.bodies[0].out_types)
    return f"stablehlo.composite {quoted(op.label)} {names(values)} {{{', '.join(fields)}}} : {types}"
