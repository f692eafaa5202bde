"""Foreign functions: operations that call a function of another language, which XLA knows by the name of its target.

    FfiCall     a function of its arguments alone: may be removed, merged and repeated, as any pure operation
    FfiEffect   a function with side effects: called each time that it is performed

A compiled program calls the function on the memory of its arrays, without Python. There is no other meaning than that
of the device: eager calls are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..base.errors import BadArgument, NotDifferentiable, need_one_of
from ..base.stack import perform
from ..core.arrays import as_array
from ..core.operation import Operation, effect, operation
from ..operations.foundations.attributes import attributes
from ..operations.foundations.foreign_call import BATCH_PARTITIONABLE, ForeignCall
from ..trees import pytrees
from ..types.array_type import ArrayType
from .callbacks import declared_types
from .vmap_methods import by_vmap_method, need_vmap_method

# of an array the dimensions in memory, the one whose neighbours are adjacent last; None: row-major
DimensionOrder = tuple[int, ...] | None


# (y, ...) = target(x, ...), a function outside of the program, which depends on its operands and attributes alone
@operation
class FfiCall(Operation):
    target: str
    results: tuple[ArrayType, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    vmap_method: str | None = None
    operand_layouts: tuple[DimensionOrder, ...] | None = None
    result_layouts: tuple[DimensionOrder, ...] | None = None
    aliases: tuple[tuple[int, int], ...] = ()
    api_version: int = 4
    config: str | None = None
    batch_dims: int = 0  # leading dimensions of all operands and results along which lanes are
    multiple_results = True
    exempt: ClassVar[dict[str, str]] = {
        "evaluate": "the function is executed by compiled programs alone",
        "jvp": "a foreign function has no known derivative; custom_jvp and custom_vjp give it one",
        "transpose": "a foreign function is not known to be linear",
    }

    def result_type(op, *types):
        return op.results

    batch = by_vmap_method

    def batched(op, size, mapped):
        """The operation on all lanes at once, the lanes along the first axis, which is the slowest in memory."""
        laid = op.operand_layouts
        return replace(
            op,
            results=tuple([t.update(shape=(size, *t.shape)) for t in op.results]),
            operand_layouts=laid and tuple([_with_lanes(each) if yes else each for each, yes in zip(laid, mapped)]),
            result_layouts=op.result_layouts and tuple(map(_with_lanes, op.result_layouts)),
            batch_dims=op.batch_dims + (op.vmap_method == "broadcast_all"),
        )

    def jvp(op, primals, tangents):
        raise NotDifferentiable(
            f"ffi_call: a foreign function has no known derivative, and one of {op.target!r} is needed.",
            hint="give it one with hx.custom_vjp or hx.custom_jvp, or stop here: lax.stop_gradient(x).",
        )

    def lower(op, emit, *values):
        call = ForeignCall(
            op.target, op.results, dict(op.attributes), op.operand_layouts, op.result_layouts, dict(op.aliases),
            op.batch_dims if op.target in BATCH_PARTITIONABLE else 0,
            side_effect=op.effectful, api_version=op.api_version, config=op.config,
        )
        return emit.foreign_call(call, values)


# (y, ...) = target(x, ...), called exactly once each time that it is performed
@effect
class FfiEffect(FfiCall):
    calls_host = True


# In lanes that diverge a function that is called for each lane is so for those that take the branch.
FfiEffect.vmap = property(  # type: ignore[assignment]
    lambda op: "per_lane" if (op.vmap_method or "").startswith("sequential") else "once"
)


def _with_lanes(layout: DimensionOrder) -> DimensionOrder:
    """The layout with one more dimension, the first and slowest."""
    return None if layout is None else (0, *[d + 1 for d in layout])


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """The foreign function ``target_name``, as a function of arrays by position and attributes by keyword.

        ffi_call("f", y, ...)(x, n=3) == f(x, n=3), of the shape and dtype of y

    Effects: with ``has_side_effect`` it is an effect, which is never removed, merged or repeated; two of them without
    a dependence may be exchanged. In lanes without a mapped operand it is performed once. Over several devices it is
    refused, except in ``shard_map``, where each device calls it, on its pieces.

    Args:
        target_name: what ``register_ffi_target`` registered it under.
        result_shape_dtypes: a tree of ``ShapeDtypeStruct`` or arrays: shapes and dtypes of the results.
        vmap_method: how it is called on lanes. ``sequential``: on each lane, in a loop; ``sequential_unrolled``:
            without a loop. The others call it once, with the lanes along the first axis; operands that are not mapped
            get a leading axis of size 1 (``expand_dims``), are broadcast (``broadcast_all``), or stay as they are
            (``legacy_vectorized``).
        input_layouts: of each operand the order of its dimensions in memory, the one whose neighbours are adjacent
            last; None: row-major. ``(1, 0)`` is a column-major matrix.
        output_layouts: the same of each result; of a single result its order itself.
        input_output_aliases: operand to result: a result that the function writes over that operand.
        custom_call_api_version: 4 is the typed interface, whose functions take attributes.
        legacy_backend_config: the text that functions of versions before 4 take instead.

    The function takes as attributes numbers, strings, NumPy arrays and scalars, tuples and dictionaries of these;
    Python's numbers have 64 bits.

    Raises: ExecutionError: the function returned an error; where a result is read. CompileError: no function of this
    name is registered. CannotCross: under ``vmap`` without a method. NotDifferentiable: under a derivative.

    >>> import numpy as np
    >>> from handlax import ShapeDtypeStruct, numpy
    >>> x = numpy.array([[4.0, 2.0], [2.0, 5.0]])
    >>> cholesky = ffi_call("lapack_spotrf_ffi", (x, ShapeDtypeStruct((), "int32")), input_layouts=[(1, 0)],
    ...                     output_layouts=[(1, 0), None], input_output_aliases={0: 0})
    >>> numpy.tril(cholesky(x, uplo=np.uint8(ord("L")))[0])
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    where = f"ffi_call {target_name!r}"
    need_vmap_method(where, vmap_method)
    need_one_of(f"{where}: custom_call_api_version", custom_call_api_version, (1, 2, 3, 4))
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise BadArgument(
            f"{where}: legacy_backend_config is for custom_call_api_version < 4, got {custom_call_api_version}.",
            hint="pass attributes by keyword: ffi_call(...)(x, n=3).",
        )
    results, tree = declared_types(where, result_shape_dtypes)
    if output_layouts is not None and pytrees.treedef_is_leaf(tree):
        output_layouts = (output_layouts,)
    result_layouts = _layouts(f"{where}: output_layouts", output_layouts, results)
    kind = FfiEffect if has_side_effect else FfiCall

    def call(*args: Any, **named: Any) -> Any:
        if named and custom_call_api_version < 4:
            raise BadArgument(f"{where}: attributes need custom_call_api_version=4, got {', '.join(named)}.")
        xs = [as_array(x) for x in args]
        types = [x.type for x in xs]
        layouts = _layouts(f"{where}: input_layouts", input_layouts, types)
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        _check_aliases(where, aliases, (types, layouts), (results, result_layouts))
        return pytrees.unflatten(tree, perform(kind(
            target_name, results, attributes(where, named), vmap_method, layouts, result_layouts, aliases,
            custom_call_api_version, legacy_backend_config,
        ), *xs))

    return call


def _layouts(where: str, layouts: Any, types: Sequence[ArrayType]) -> tuple[DimensionOrder, ...] | None:
    """The layouts of arrays of these types; None: all are row-major.

    Raises: BadArgument: there are more or fewer, or one does not name each dimension once.
    """
    if layouts is None:
        return None
    if len(layouts) != len(types):
        raise BadArgument(f"{where} must be one for each array, got {len(layouts)} for {len(types)}.")
    orders = [getattr(layout, "major_to_minor", layout) for layout in layouts]
    for order, t in zip(orders, types):
        if order is not None and sorted(order) != [*range(len(t.shape))]:
            raise BadArgument(f"{where} must be orders of the dimensions, got {order} for {t}.")
    named = tuple([None if order is None or [*order] == sorted(order) else tuple(order) for order in orders])
    return None if all([order is None for order in named]) else named


Placed = tuple[Sequence[ArrayType], tuple[DimensionOrder, ...] | None]


def _check_aliases(where: str, aliases: Sequence[tuple[int, int]], operands: Placed, results: Placed) -> None:
    """Raises BadArgument unless each pair is that of an operand and a result of one shape, dtype and layout."""

    def place(side: Placed, i: int) -> Any:
        types, layouts = side
        if i not in range(len(types)):
            return None
        return types[i].shape, types[i].dtype, layouts and layouts[i]

    for pair in aliases:
        taken, given = place(operands, pair[0]), place(results, pair[1])
        if taken is None or taken != given:
            raise BadArgument(
                f"{where}: input_output_aliases must be an operand and a result of the same shape, dtype and layout, "
                f"got {pair[0]}: {pair[1]} for operands {', '.join(map(str, operands[0]))} and results "
                f"{', '.join(map(str, results[0]))}."
            )


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    has_side_effect: bool = False,
    operand_output_aliases: Mapping[int, int] | None = None,
    api_version: int = 4,
) -> Callable[..., list[Any]]:
    """A function for rules of ``lower``, ``call(op, emit, *values, **attributes)``, which emits a foreign call.

    It returns the results as a list; they have the types of those of ``op``.

    Args:
        operand_layouts: of each operand the order of its dimensions in memory, the one whose neighbours are adjacent
            first, as XLA has it: ``(0, 1)`` is a column-major matrix; None: row-major. An object with
            ``major_to_minor`` says it itself.
        result_layouts: the same of each result.
        backend_config: further attributes; of ``api_version`` below 4 the text that the function takes instead.
        has_side_effect: it is called also where no result is used, as that of an effect is in any case.
        operand_output_aliases: operand to result: a result that the function writes over that operand.
    """
    where = f"ffi_lowering {call_target_name!r}"
    text = backend_config if isinstance(backend_config, str) else None
    constants = {} if backend_config is None or isinstance(backend_config, str) else dict(backend_config)
    if (text is not None) == (api_version >= 4) and backend_config is not None:
        raise BadArgument(f"{where}: backend_config must be a mapping for api_version=4, before it a text.")

    def call(op: Any, emit: Any, *values: Any, **named: Any) -> list[Any]:
        results = op.as_results(emit.made)
        taken, given = [
            _layouts(f"{where}: {word}", layouts and [_majors(layout) for layout in layouts], types)
            for word, layouts, types in (
                ("operand_layouts", operand_layouts, [x.type for x in values]),
                ("result_layouts", result_layouts, results),
            )
        ]
        return emit.foreign_call(ForeignCall(
            call_target_name, results, dict(attributes(where, {**constants, **named})), taken, given,
            dict(operand_output_aliases or {}), 0, has_side_effect or op.effectful, api_version, text,
        ), values)

    return call


def ffi_lowering(call_target_name: str, **options: Any) -> Callable[..., Any]:
    """The rule of ``lower`` of an operation that is a foreign function; its fields are the attributes of the call.

    The options are those of ``build_ffi_lowering_function``. An operation without ``evaluate`` is executed by compiled
    programs alone. An effect declares ``calls_host = True``, so that ``effects_barrier`` waits until it was called.

    >>> import numpy as np
    >>> from handlax import numpy, operation, perform
    >>> @operation
    ... class Gtsv:                                     # the solution of tridiagonal systems, by LAPACK
    ...     multiple_results = True
    ...     def result_type(op, lower, diagonal, upper, b):
    ...         return lower, diagonal, upper, b, lower.update(shape=(), dtype=np.dtype("int32"))
    ...     lower = ffi_lowering("lapack_sgtsv_ffi", operand_output_aliases={0: 0, 1: 1, 2: 2, 3: 3})
    >>> ones, b = numpy.ones(2), numpy.array([[5.0], [4.0]])
    >>> perform(Gtsv(), ones, 2 * ones, ones, b)[3].ravel()
    Array([2., 1.], dtype=float32)
    """
    call = build_ffi_lowering_function(call_target_name, **options)

    def lower(op: Any, emit: Any, *values: Any) -> Any:
        results = call(op, emit, *values, **dict(zip(op._names, op.fields)))
        return results if op.multiple_results else results[0]

    return lower


def _majors(layout: Any) -> Any:
    """A layout from one whose first dimension is that with adjacent neighbours."""
    return layout if layout is None or hasattr(layout, "major_to_minor") else tuple(layout)[::-1]
