"""Emission of operations whose sizes are symbolic, as StableHLO's operations that take sizes as operands.

    slice x [0:b]       real_dynamic_slice x, [0], [b], [1]         where b is computed from the dimension variables

An operation whose sizes are numbers has its ordinary form. Once the dimension variables are known, shape refinement
turns the first into the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import NotExportable
from ...effects.core.arrays import as_array
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ...effects.types.extent import Extent
from ...effects.types.sized import extents_in
from ..xla.stablehlo_types import names, short_signature, storage, tensor

SIZE = array_type((), int32)


def size_value(emit: Any, size: Any) -> Any:
    """A size as an int32 number.

    Raises: NotExportable: it is that of a variable of no argument, as where a program with symbolic sizes is compiled.
    """
    if type(size) is not Extent:
        return emit.constant(size, SIZE)
    if size not in emit.constants:
        variables = sorted(size.lengths, key=str)
        unknown = [x for x in variables if x not in emit.symbols]
        if unknown:
            raise NotExportable(
                f"lower: symbolic sizes must be those of arguments of an exported function, got {size}.",
                hint="export.export(f); the exported function is called with arrays.",
            )
        value = lambda *given: as_array(size.at(dict(zip(variables, given))))
        emit.constants[size] = emit.decompose(value, *[emit.symbols[x] for x in variables])
    return emit.constants[size]


def sizes_vector(emit: Any, sizes: Sequence[Any], dtype: Any = int32) -> Any:
    """Sizes as a vector of integers."""
    if not extents_in(tuple(sizes)):
        return emit.constant(list(sizes), array_type((len(sizes),), dtype))
    return emit.convert(_vector(emit, [size_value(emit, size) for size in sizes]), dtype)


def _vector(emit: Any, numbers: Sequence[Any]) -> Any:
    """The vector of some int32 numbers."""
    parts = [emit.reshape(x, (1,)) for x in numbers]
    return emit.inline("concatenate", f"{names(parts)}, dim = 0", *parts, type=SIZE.update(shape=(len(parts),)))


def sized(
    emit: Any, name: str, values: Sequence[Any], sizes: Sequence[Sequence[Any]], type: ArrayType, **attributes: Any
) -> Any:
    """An operation that takes vectors of sizes as its last operands; attributes are numbers, lists of them, or texts.
    """
    text = ", ".join([f"{label} = {_attribute(value)}" for label, value in attributes.items()])
    return emit.op(name, *values, *[sizes_vector(emit, each) for each in sizes], attributes=text, type=type)


def _attribute(value: Any) -> str:
    if isinstance(value, int):
        return f"{value} : i64"
    return value if isinstance(value, str) else f"array<i64{': ' * bool(value)}{', '.join(map(str, value))}>"


def sliced(
    emit: Any, x: Any, start: Sequence[Any], limit: Sequence[Any], strides: Sequence[Any], type: ArrayType
) -> Any:
    """Elements at static places, of which the result has this type."""
    if extents_in((*start, *limit)):
        return sized(emit, "real_dynamic_slice", [x], [start, limit, strides], type)
    ranges = ", ".join([f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in zip(start, limit, strides)])
    return emit.inline("slice", f"{x.name} [{ranges}]", x, type=type)


def padded(emit: Any, x: Any, value: Any, config: Sequence[tuple[Any, Any, int]]) -> Any:
    """``x`` with ``value`` around: in each dimension so many below, above and between."""
    low, high, interior = [[each[k] for each in config] for k in range(3)]
    if extents_in((*low, *high)):
        return sized(emit, "dynamic_pad", [x, value], [low, high, interior], emit.made)
    return emit.inline("pad", f"{x.name}, {value.name}, low = {low}, high = {high}, interior = {interior}", x, value)


def slice_at(emit: Any, x: Any, starts: Sequence[Any], sizes: Sequence[Any], type: ArrayType) -> Any:
    """Elements from ``starts`` on, which are clamped so that all lie inside of ``x``."""
    if not extents_in(tuple(sizes)):
        operands = [x, *starts]
        return emit.inline("dynamic_slice", f"{names(operands)}, sizes = {list(sizes)}", *operands, type=type)
    last = sizes_vector(emit, [n - size for n, size in zip(storage(x.type)[0], sizes)])
    first = emit.binary("minimum", _vector(emit, [emit.convert(start, int32) for start in starts]), last)
    first = emit.binary("maximum", first, emit.constant(0, last.type))
    limit = emit.binary("add", first, sizes_vector(emit, sizes))
    return emit.op("real_dynamic_slice", x, first, limit, emit.constant(1, last.type), type=type)


def gathered(emit: Any, x: Any, index: Any, sizes: Sequence[Any], **attributes: str) -> Any:
    """Slices of these sizes at index vectors."""
    if extents_in(tuple(sizes)):
        return sized(emit, "dynamic_gather", [x, index], [sizes], emit.made, **attributes)
    text = ", ".join([f"{label} = {value}" for label, value in attributes.items()])
    return emit.op("gather", x, index, attributes=f"{text}, slice_sizes = {_attribute(list(sizes))}")


def top(emit: Any, x: Any, k: Any, types: Sequence[ArrayType]) -> list[Any]:
    """The ``k`` largest elements along the last dimension, as ``Emitter.top_k``: a call that refinement replaces."""
    given = [x, size_value(emit, k)]
    call = f"stablehlo.custom_call @stablehlo.dynamic_top_k({names(given)})"
    made: list[Any] = emit.results(f"{call} : {short_signature(given, types)}", types)
    return made


def reduced_windows(
    emit: Any,
    xs: Sequence[Any],
    starts: Sequence[Any],
    window: tuple[Sequence[Any], ...],
    types: Sequence[ArrayType],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    """Reductions over windows, as ``Emitter.reduce_window``: a call by name, which refinement replaces, with a private
    function.
    """
    sizes, strides, padding, base, dilation = window
    elements = [start.type for start in starts]
    region = emit.region([*elements, *elements], body, ends="func.return")
    declared = f"({', '.join(map(tensor, [*elements, *elements]))}) -> ({', '.join(map(tensor, elements))})"
    fields = f'sym_visibility = "private", function_type = {declared}'
    function = lambda symbol: f'  "func.func"() <{{sym_name = "{symbol}", {fields}}}> {region} : () -> ()\n'
    reducer = emit.defined(object(), "reducer", function)
    edges = emit.reshape(sizes_vector(emit, [n for pair in padding for n in pair]), (len(padding), 2))
    given = [*xs, *starts, *[sizes_vector(emit, each) for each in (sizes, strides, base, dilation)], edges]
    name = "stablehlo.dynamic_reduce_window"
    text = f"stablehlo.custom_call @{name}({names(given)}) {{called_computations = [@{reducer}]}}"
    made: list[Any] = emit.results(f"{text} : {short_signature(given, types)}", types)
    return made
