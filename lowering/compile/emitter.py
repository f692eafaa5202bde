"""Emission of programs as the text of StableHLO modules: the last handler.

The compiler parses and verifies the text in C++; no MLIR bindings are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.deep_calls import on_deep_stack
from ...effects.control.callbacks import Callback
from ...effects.core.arrays import Array
from ...effects.core.columns import LOWER, ElementwiseLowering
from ...effects.operations.foundations.foreign_call import ForeignCall
from ...effects.operations.foundations.half_precision import HALF
from ...effects.programs.program import Program
from ...effects.programs.program_cache import scopes_in
from ...effects.sharding.devices import KINDS_OF_SPACES
from ...effects.sharding.mesh import MeshAxes
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import UNCONSTRAINED
from ...effects.types.array_type import ArrayType, Space, array_type
from ...effects.types.dtypes import float4_e2m1fn, float32, is_bool, is_inexact, is_integer, is_unsigned, to_real
from ...effects.types.extent import Extent
from ...effects.types.sized import extents_in
from ...interpreters.core.record import record
from ..xla.compiler_calls import Inspection, UserPartitionCall
from ..xla.host_callbacks import HostCall
from ..xla.lazy import runtime
from ..xla.stablehlo_types import ELEMENT, dense, names, signature, storage, tensor, tensors
from .attributes import composite_text
from .extremes import BOUNDS, extreme, extreme_reduction
from .foreign_calls import foreign_call
from .host_calls import host_call, inspect_sharding, partitioned_call
from .manual_computation import device_number
from .scoped_locations import equations_to_emit
from .symbolic_sizes import gathered, padded, reduced_windows, size_value, sized, sizes_vector, slice_at, sliced, top


class SsaValue(NamedTuple):
    """An SSA value: its name and type."""

    name: str
    type: ArrayType


class Emitter:
    """The builder of one function of a module, which lowering rules append operations to.

    ``made`` is the type of the current equation's result, or a tuple of types; ``here`` is the current equation, as a
    program and an index. ``functions``, ``calls``, ``meshes`` and ``tables`` are the module's: its private functions by
    program, its host functions, the symbols of its meshes by their axes, and the names of tables of numbers by their
    texts; ``platform`` is that of its devices, "cpu" or "cuda"; ``mesh_of_all`` their mesh, None for one. ``manual`` is
    the mesh whose devices execute what is emitted on their own pieces, if any. ``constants`` are those of the function,
    or of the current region; ``symbols`` the values of the dimension variables; ``scopes`` those of the equation.
    """

    __slots__ = (
        "lines", "count", "made", "here", "functions", "calls", "meshes", "tables", "mesh_of_all", "platform", "manual",
        "cuts", "constants", "symbols", "scopes",
    )

    def __init__(self, module: Emitter | None = None, mesh: MeshAxes | None = None, platform: str = "cpu"):
        """The emitter of the first function of a module, or of another of the module that ``module`` builds."""
        self.lines: list[str] = []
        self.count = 0
        self.made: Any = None
        self.here: Any = None
        self.functions: dict[Any, Any] = {} if module is None else module.functions
        self.calls: list[HostCall | Inspection | UserPartitionCall] = [] if module is None else module.calls
        self.meshes: dict[Any, str] = {} if module is None else module.meshes
        self.cuts: dict[Any, str] = {} if module is None else module.cuts  # texts of constraints
        self.tables: dict[str, str] = {} if module is None else module.tables
        self.mesh_of_all: MeshAxes | None = mesh if module is None else module.mesh_of_all
        self.platform: str = platform if module is None else module.platform
        self.manual: Any = None if module is None else module.manual
        self.constants: dict[Any, SsaValue] = {}
        self.symbols: dict[Any, SsaValue] = {}
        self.scopes: tuple[str, ...] = ()

    size, sizes, slice, pad, dynamic_slice, gather = size_value, sizes_vector, sliced, padded, slice_at, gathered
    partitioned = partitioned_call

    def new(self, text: str, type: ArrayType) -> SsaValue:
        """Append a line ``%n = text``; gives its value, of this type."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = {text}")
        return SsaValue(name, type)

    def making(self, type: Any, f: Callable[[], Any]) -> Any:
        """``f()``, in which ``made`` is ``type``."""
        outer, self.made = self.made, type
        try:
            return f()
        finally:
            self.made = outer

    def on(self, platform: str, f: Callable[[], Any]) -> Any:
        """``f()``, in which programs are emitted for the devices of ``platform``."""
        outer, self.platform = self.platform, platform
        try:
            return f()
        finally:
            self.platform = outer

    def elementwise(self, name: str, *values: SsaValue, type: ArrayType | None = None) -> SsaValue:
        """An elementwise operation; operands of rank 0 are broadcast to the result's shape."""
        out = self.made if type is None else type
        same_shape = self.spread(*values, type=out)
        operands = names(same_shape)
        if name.startswith("chlo."):
            return self.new(f"{name} {operands} : {tensors(same_shape)} -> {tensor(out)}", out)
        if values[0].type.dtype != out.dtype:
            return self.new(f"stablehlo.{name} {operands} : {signature(same_shape, out)}", out)
        if name in BOUNDS:
            return extreme(self, name, same_shape[0], same_shape[1], out)
        return self.new(f"stablehlo.{name} {operands} : {tensor(out)}", out)

    def op(
        self, name: str, *values: SsaValue, attributes: str = "", type: ArrayType | None = None, regions: str = ""
    ) -> SsaValue:
        """Any operation in the generic form: ``"stablehlo.name"(operands) <{attributes}> ({region}) : types``."""
        out = self.made if type is None else type
        return self.new(_generic(name, values, attributes, regions, out), out)

    def ops(
        self, name: str, *values: SsaValue, types: Sequence[ArrayType], attributes: str = "", regions: str = ""
    ) -> list[SsaValue]:
        """``op`` with several results."""
        return self.results(_generic(name, values, attributes, regions, types), types)

    def results(self, text: str, types: Sequence[ArrayType]) -> list[SsaValue]:
        """Append an operation with any number of results of these types."""
        number = self.count
        self.count += 1
        if len(types) == 1:
            self.lines.append(f"    %{number} = {text}")
            return [SsaValue(f"%{number}", types[0])]
        self.lines.append(f"    {f'%{number}:{len(types)} = ' if types else ''}{text}")
        return [SsaValue(f"%{number}#{i}", t) for i, t in enumerate(types)]

    def inline(self, name: str, text: str, *values: SsaValue, type: ArrayType | None = None) -> SsaValue:
        """An operation in its own short form: ``stablehlo.name text : (types) -> type``, or ``: type`` alone."""
        out = self.made if type is None else type
        takes = f"({tensors(values)}) -> " if values else ""
        return self.new(f"stablehlo.{name} {text} : {takes}{tensor(out)}", out)

    def constant(self, value: Any, type: ArrayType) -> SsaValue:
        """A constant of this type: a number, a size, or an array of its shape; emitted once per function or region."""
        if isinstance(value, Extent):
            return self.spread(self.convert(self.size(value), type.dtype), type=type)[0]
        if type.ragged:
            return self.full(value, type)
        _, dtype = storage(type)
        data = np.asarray(value).astype(dtype)
        key = (data.tobytes(), type)
        constant = self.constants.get(key)
        if constant is None:
            constant = self.constants[key] = self.new(f"stablehlo.constant {dense(data)} : {tensor(type)}", type)
        return constant

    def broadcast_in_dim(self, x: SsaValue, shape: Sequence[int], dims: Sequence[int]) -> SsaValue:
        """``x`` broadcast to ``shape``; dimension ``i`` of ``x`` becomes ``dims[i]``."""
        out = array_type(tuple(shape), x.type.dtype, x.type.weak)
        dims = [*dims, *range(len(shape), len(shape) + len(x.type.dtype.shape))]  # of keys their words too
        if out.ragged:
            return sized(self, "dynamic_broadcast_in_dim", [x], [storage(out)[0]], out, broadcast_dimensions=dims)
        return self.inline("broadcast_in_dim", f"{x.name}, dims = {dims}", x, type=out)

    def reshape(self, x: SsaValue, shape: Sequence[int]) -> SsaValue:
        out = x.type.update(shape=tuple(shape))
        if out is x.type:
            return x
        if out.ragged:
            return sized(self, "dynamic_reshape", [x], [storage(out)[0]], out)
        return self.inline("reshape", x.name, x, type=out)

    def transpose(self, x: SsaValue, permutation: Sequence[int]) -> SsaValue:
        rank = len(permutation)
        if list(permutation) == list(range(rank)):
            return x
        out = x.type.update(shape=tuple([x.type.shape[d] for d in permutation]))
        order = [*permutation, *range(rank, rank + len(x.type.dtype.shape))]  # of keys their words too
        return self.inline("transpose", f"{x.name}, dims = {order}", x, type=out)

    def convert(self, x: SsaValue, dtype: Any) -> SsaValue:
        """Conversion by value, as ``astype``: to bool by ``!= 0``, from complex by the real part."""
        source = x.type.dtype
        out = x.type.update(dtype=dtype)
        if source == dtype:
            return x
        if dtype == np.bool_:
            return self.compare("NE", x, self.full(0, x.type))
        if source.kind == "c" and dtype.kind != "c":
            real = x.type.update(dtype=np.dtype("float32" if source.itemsize == 8 else "float64"))
            return self.convert(self.inline("real", x.name, x, type=real), dtype)
        if source == float4_e2m1fn and is_integer(dtype):  # where XLA saturates at 6, the largest number
            x = self.convert(x, float32)
        return self.inline("convert", x.name, x, type=out)

    def wide(self, x: SsaValue, f: Callable[[SsaValue], SsaValue]) -> SsaValue:
        """``f(x)``; of 16-bit floats computed in float32 and rounded once, as by ``half_precision.wide``."""
        dtype = x.type.dtype
        return self.convert(f(self.convert(x, float32)), dtype) if dtype in HALF else f(x)

    def compare(self, direction: str, x: SsaValue, y: SsaValue, total: bool = False) -> SsaValue:
        """``direction``: EQ, NE, LT, LE, GT, GE; ``total`` orders NaNs too."""
        dtype = x.type.dtype
        if is_inexact(dtype):
            kind = "TOTALORDER" if total else "FLOAT"
        else:
            kind = "UNSIGNED" if is_unsigned(dtype) or is_bool(dtype) else "SIGNED"
        out = x.type.update(dtype=np.dtype(bool), weak=False)
        return self.inline("compare", f"{direction}, {x.name}, {y.name}, {kind}", x, y, type=out)

    def select(self, which: SsaValue, on_true: SsaValue, on_false: SsaValue) -> SsaValue:
        types = f"{tensor(which.type)}, {tensor(on_true.type)}"
        return self.new(f"stablehlo.select {which.name}, {on_true.name}, {on_false.name} : {types}", on_true.type)

    def spread(self, *values: SsaValue, type: ArrayType | None = None) -> list[SsaValue]:
        """The values, those of rank 0 broadcast to the shape of ``type``, by default the current result's."""
        shape = (self.made if type is None else type).shape
        return [v if v.type.shape == shape else self.broadcast_in_dim(v, shape, ()) for v in values]

    def aligned(self, mask: SsaValue, type: ArrayType) -> SsaValue:
        """A mask in the storage shape of a type: for random keys it is broadcast over their key data."""
        shape, _ = storage(type)
        if mask.type.shape in ((), shape):
            return mask
        return self.broadcast_in_dim(mask, shape, range(len(mask.type.shape)))

    def parts(self, x: SsaValue) -> tuple[SsaValue, SsaValue]:
        """The real and imaginary parts of a complex value."""
        out = x.type.update(dtype=to_real(x.type.dtype))
        return self.inline("real", x.name, x, type=out), self.inline("imag", x.name, x, type=out)

    def iota(self, type: ArrayType, dimension: int) -> SsaValue:
        if type.ragged:
            return sized(self, "dynamic_iota", [], [type.shape], type, iota_dimension=dimension)
        return self.new(f"stablehlo.iota dim = {dimension} : {tensor(type)}", type)

    def full(self, value: Any, type: ArrayType) -> SsaValue:
        """An array whose elements are all ``value``."""
        single = self.constant(value, type.update(shape=()))
        return self.broadcast_in_dim(single, type.shape, ()) if type.shape else single

    def binary(self, name: str, x: SsaValue, y: SsaValue) -> SsaValue:
        """An elementwise operation of two equal types whose result has that type too."""
        return self.elementwise(name, x, y, type=x.type)

    def unary(self, name: str, x: SsaValue) -> SsaValue:
        return self.new(f"stablehlo.{name} {x.name} : {tensor(x.type)}", x.type)

    def dot_general(
        self, x: SsaValue, y: SsaValue, numbers: Any, precision: tuple[str, str, Any], out: ArrayType
    ) -> SsaValue:
        """A contraction; ``precision``: that of each operand, and the algorithm's fields or None."""
        inner, batch = numbers
        lhs, rhs, algorithm = precision
        text = f"stablehlo.dot_general {x.name}, {y.name},"
        if batch[0]:
            text += f" batching_dims = {list(batch[0])} x {list(batch[1])},"
        text += f" contracting_dims = {list(inner[0])} x {list(inner[1])}, precision = [{lhs}, {rhs}]"
        if algorithm is not None:
            fields = [str(field).lower() if isinstance(field, bool) else field for field in algorithm]
            fields[:3] = [ELEMENT.get(np.dtype(t).name if t != "tf32" else t, t) for t in fields[:3]]
            text += f", algorithm = <{', '.join([f'{k} = {v}' for k, v in zip(algorithm._fields, fields)])}>"
        return self.new(f"{text} : ({tensor(x.type)}, {tensor(y.type)}) -> {tensor(out)}", out)

    def reduce(self, name: str, x: SsaValue, unit: Any, axes: Sequence[int], keeps_nan: bool = True) -> SsaValue:
        """A reduction by a named operation with unit ``unit``; one without ``keeps_nan`` may pass over NaN."""
        if keeps_nan and name in BOUNDS:
            return extreme_reduction(self, name, x, unit, axes)
        element = x.type.update(shape=())
        out = x.type.update(shape=tuple([n for i, n in enumerate(x.type.shape) if i not in axes]))
        start = self.constant(unit, element)
        types = f"({tensor(x.type)}, {tensor(element)}) -> {tensor(out)}"
        text = f"stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{name} across dimensions = "
        return self.new(f"{text}{list(axes)} : {types}", out)

    def fold(
        self, xs: Sequence[SsaValue], starts: Sequence[SsaValue], axes: Sequence[int],
        body: Callable[..., Sequence[SsaValue]],
    ) -> list[SsaValue]:
        """A joint reduction of several arrays: ``body(*left, *right)`` combines two elements of each."""
        elements = [start.type for start in starts]
        shape = tuple([n for i, n in enumerate(xs[0].type.shape) if i not in axes])
        out = [t.update(shape=shape) for t in elements]
        attributes = f"dimensions = array<i64{': ' if axes else ''}{', '.join(map(str, axes))}>"
        region = self.region([*elements, *elements], body)
        return self.ops("reduce", *xs, *starts, types=out, attributes=attributes, regions=region)

    def reduce_window(
        self, xs: Sequence[SsaValue], starts: Sequence[SsaValue],
        window: tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]], Sequence[int], Sequence[int]],
        types: Sequence[ArrayType], body: Callable[..., Sequence[SsaValue]],
    ) -> list[SsaValue]:
        """Reductions over windows; ``window``: sizes, strides, padding, and the dilations of base and window."""
        sizes, strides, padding, base, dilation = window
        if not sizes:  # windows of scalars: as vectors of one element, since XLA has none of rank 0
            vectors = [self.reshape(x, (1,)) for x in xs]
            one = ((1,), (1,), ((0, 0),), (1,), (1,))
            wide = [t.update(shape=(1,)) for t in types]
            return [self.reshape(y, ()) for y in self.reduce_window(vectors, starts, one, wide, body)]
        if extents_in((*sizes, *padding)):
            return reduced_windows(self, xs, starts, window, types, body)
        rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
        labels = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
        fields = zip(labels, (sizes, strides, base, dilation))
        attributes = ", ".join([f"{name} = array<i64: {', '.join(map(str, numbers))}>" for name, numbers in fields])
        attributes += f", padding = dense<[{rows}]> : tensor<{len(sizes)}x2xi64>"
        elements = [start.type for start in starts]
        region = self.region([*elements, *elements], body)
        return self.ops("reduce_window", *xs, *starts, types=types, attributes=attributes, regions=region)

    def top_k(self, x: SsaValue, k: Any) -> list[SsaValue]:
        """The ``k`` largest elements along the last dimension, and their indices."""
        types = [x.type.update(shape=(*x.type.shape[:-1], k))] * 2
        types[1] = types[1].update(dtype=np.dtype("int32"), weak=False)
        if extents_in((k,)):
            return top(self, x, k, types)
        gives = f"({', '.join(map(tensor, types))})"
        return self.results(f"chlo.top_k({x.name}, k = {k}) : {tensor(x.type)} -> {gives}", types)

    def region(
        self, types: Sequence[ArrayType], body: Callable[..., Sequence[SsaValue]], ends: str = "stablehlo.return"
    ) -> str:
        """The text of a region ``({ ^bb0(...): ... })``; ``body`` emits its operations and gives those returned."""
        outer, outer_constants = self.lines, self.constants
        self.lines, self.constants = [], {}
        first = self.count
        self.count += len(types)
        values = [SsaValue(f"%{first + i}", t) for i, t in enumerate(types)]
        try:
            results = self.making(self.made, lambda: on_deep_stack(body, *values))
            inner = self.lines
        finally:
            self.lines, self.constants = outer, outer_constants
        head = ", ".join([f"{v.name}: {tensor(v.type)}" for v in values])
        block = f"\n    ^bb0({head}):" if values else ""
        body_text = "\n".join(inner)
        return f"({{{block}\n{body_text}\n    {ends} {_typed(results)}\n    }})"

    def program(self, program: Program, values: Sequence[SsaValue]) -> list[SsaValue]:
        """Emit the equations of a program inline; gives its results."""
        outputs = program.count - len(values)
        consts = [self.constant(const.value, const.type) for const in program.consts]
        # names and types in two lists: the inlined lines below then create no SsaValue
        ids = [*[v.name for v in values], *[""] * outputs, *[v.name for v in reversed(consts)]]
        types: list[Any] = [*[v.type for v in values], *[None] * outputs, *[v.type for v in reversed(consts)]]
        number = len(values)
        lines = self.lines
        rules: dict[Any, tuple[Any, str | None, bool]] = {}
        far = Space.Host in [t.memory_space for t in program.numbered_types()]
        near: dict[int, SsaValue] = {}  # copies, in the device's memory, of values that lie in the host's
        for i, (op, args, out) in enumerate(equations_to_emit(self, program)):
            kind = type(op)
            rule, mnemonic, every = rules.get(kind) or rules.setdefault(kind, _rule(kind))
            # most equations are plain operations on one or two operands of the result's type: emitted inline, for speed
            plain = mnemonic is not None and 0 < len(args) < 3 and types[args[0]] is out is types[args[-1]]
            if plain and (every or out.dtype.kind != "c"):
                name = ids[number] = f"%{self.count}"
                types[number] = out
                self.count += 1
                given = ids[args[0]] if len(args) == 1 else f"{ids[args[0]]}, {ids[args[1]]}"
                lines.append(f"    {name} = {mnemonic} {given} : {tensor(out)}")
                number += 1
                continue
            self.made = out
            self.here = program, i
            operands = [SsaValue(ids[n], types[n]) for n in args]
            if far and not (op.keeps_memory or op.bodied):
                for n, v in zip(args, operands):
                    if n not in near:
                        near[n] = self.in_memory(v, Space.Device)
                operands = [near[n] for n in args]
            y = rule(op, self, *operands)
            for name, t in op.as_results(y):
                ids[number] = name
                types[number] = t
                number += 1
        return [SsaValue(ids[n], types[n]) for n in program.outs]

    def decompose(self, f: Callable[..., Any], *values: SsaValue) -> Any:
        """Emit the operations that ``f`` performs on arrays of these types: a rule in terms of other operations.

        Gives a value where ``f`` returns an array, and a list of values where it returns a sequence.
        """
        is_array = False

        def as_list(*xs: Any) -> Any:
            nonlocal is_array
            y = f(*xs)
            is_array = isinstance(y, Array)
            return [y] if is_array else y

        results = self.making(None, lambda: self.program(record(as_list, _types(values)), values))
        return results[0] if is_array else results

    def loop(self, more: Callable[..., Any], step: Callable[..., Sequence[Any]], *values: SsaValue) -> list[SsaValue]:
        """A while loop: apply ``step`` while ``more`` holds; both are functions of arrays, which are recorded."""
        types = _types(values)
        test, body = record(lambda *xs: [more(*xs)], types), record(step, types)
        return self.repeat(lambda *vs: self.program(test, vs)[0], lambda *vs: self.program(body, vs), *values)

    def repeat(
        self, more: Callable[..., SsaValue], step: Callable[..., Sequence[SsaValue]], *values: SsaValue
    ) -> list[SsaValue]:
        """A while loop: apply ``step`` while ``more`` holds; both emit operations on values."""
        types = [v.type for v in values]
        if not types:  # without a carry the test gives the same each time: a loop that ends has no iteration
            return []
        test = self.region(types, lambda *vs: [more(*vs)])
        return self.ops("while", *values, types=types, regions=f"({test[1:-1]}, {self.region(types, step)[1:-1]})")

    def case(
        self, index: SsaValue, branches: Sequence[Callable[[], Sequence[SsaValue]]], types: Sequence[ArrayType]
    ) -> Any:
        """The branch ``index``, the last one for an index out of range; each branch emits its operations."""
        if len(branches) == 1:
            return branches[0]()
        regions = ", ".join([self.region((), branch)[1:-1] for branch in branches])
        return self.ops("case", index, types=types, regions=f"({regions})")

    def at(self, x: SsaValue, index: SsaValue) -> SsaValue:
        """``x[index]`` along the first axis."""
        sizes = [1, *storage(x.type)[0][1:]]
        one = x.type.update(shape=(1, *x.type.shape[1:]))
        y = self.dynamic_slice(x, [index, *[self.constant(0, index.type)] * (len(sizes) - 1)], sizes, one)
        return self.reshape(y, x.type.shape[1:])

    def put(self, x: SsaValue, y: SsaValue, index: SsaValue) -> SsaValue:
        """``x`` with ``y`` as ``x[index]``."""
        row = self.reshape(y, (1, *y.type.shape))
        rank = len(storage(x.type)[0])
        operands = [x, row, index, *[self.constant(0, index.type)] * (rank - 1)]
        return self.inline("dynamic_update_slice", names(operands), *operands, type=x.type)

    def host_call(self, op: Callback, values: Sequence[SsaValue]) -> list[SsaValue]:
        """A call of the host function of a callback, which is added to the module's ``calls``."""
        return host_call(self, op, values)

    def inspect_sharding(self, op: Any, x: SsaValue) -> None:
        """The request to call ``op.inspected`` with the sharding of a value, added to the module's ``calls``."""
        inspect_sharding(self, op, x)

    def foreign_call(self, call: ForeignCall, values: Sequence[SsaValue]) -> list[SsaValue]:
        """A call of a function that XLA finds by its name."""
        return foreign_call(self, call, values)

    def mesh(self, mesh: MeshAxes) -> str:
        """The symbol of a mesh, ``@mesh``, ``@mesh_1``, ..., which the module declares once for equal axes."""
        return self.meshes.setdefault(mesh.shape_tuple, f"@mesh_{len(self.meshes)}" if self.meshes else "@mesh")

    def table(self, text: str) -> str:
        """The name of an attribute, ``#table``, ``#table_1``, ..., which the module has once for all its uses."""
        return self.tables.setdefault(text, f"#table_{len(self.tables)}" if self.tables else "#table")

    def sharding(self, sharding: NamedSharding, type: ArrayType) -> str:
        """How a value of this type is cut, in Shardy's text: ``<@mesh, [{"a"}, {}]>``."""
        return f"<{self.mesh(sharding.mesh)}, {sharding.sdy(len(storage(type)[0]))}>"

    def sharding_constraint(self, x: SsaValue, sharding: NamedSharding) -> SsaValue:
        """The value, cut so; itself where that says nothing."""
        cut = self.cuts.get(key := (sharding, x.type))
        if cut is None:
            nothing = sharding.mesh.size == 1 or {*sharding.spec} == {UNCONSTRAINED}
            cut = self.cuts[key] = "" if nothing else f"{self.sharding(*key)} : {tensor(x.type)}"
        return self.new(f"sdy.sharding_constraint {x.name} {cut}", x.type) if cut else x

    def in_memory(self, x: SsaValue, space: Space) -> SsaValue:
        """The value in this memory; itself where it lies there."""
        if x.type.memory_space is space:
            return x
        kind = f'{{_xla_buffer_placement = "{KINDS_OF_SPACES[space]}"}}'
        attributes = f"{{has_side_effect = true, mhlo.frontend_attributes = {kind}}}"
        moved = f"stablehlo.custom_call @annotate_device_placement({x.name}) {attributes} : {signature([x], x.type)}"
        return self.new(moved, x.type.lying_in(space))

    def device_number(self) -> SsaValue:
        """The number of the device that executes the region of a ``ShardMap``, in its mesh."""
        return device_number(self)

    def private(self, program: Program, label: str, exact: bool = False) -> str:
        """The symbol of the private function of ``program``, which the module defines once; ``exact``: the label."""
        text = lambda symbol: on_deep_stack(function, Emitter(self), program, f"private @{symbol}")
        return self.defined((program, scopes_in(program), exact), label, text, exact)

    def defined(self, key: Any, label: str, text: Callable[[str], str], exact: bool = False) -> str:
        """The symbol of a private function, which the module defines once for equal keys, by ``text(symbol)``.

        For each platform and each set of devices anew.
        """
        key = key, self.manual, self.platform
        if key not in self.functions:
            free = exact and label not in [name for name, _ in self.functions.values()]
            name = label if free else f"{identifier(label)}_{len(self.functions)}"
            self.functions[key] = name, ""  # numbers the functions that its body calls after it
            self.functions[key] = name, text(name)
        return str(self.functions[key][0])

    def call(self, program: Program, label: str, values: Sequence[SsaValue]) -> list[SsaValue]:
        """A call of the private function of ``program``; for symbolic sizes, which belong to a function, inline."""
        if self.symbols:
            return self.program(program, values)
        return self.call_of(self.private(program, label), values, program.out_types)

    def call_of(self, symbol: str, values: Sequence[SsaValue], types: Sequence[ArrayType]) -> list[SsaValue]:
        """A call of the function with this symbol, whose results have these types."""
        return self.results(f"func.call @{symbol}({names(values)}) : {signature(values, types)}", types)

    def boundary(self, values: Sequence[SsaValue]) -> list[SsaValue]:
        """The same values, across which no kernel is fused.

        A barrier; where XLA removes barriers before it fuses, the call of an identity that is not inlined.
        """
        types = [v.type for v in values]
        if runtime.KEEPS_BARRIERS:
            return self.ops("optimization_barrier", *values, types=types)
        identity = self.private(Program(types, (), (), (), range(len(types))), "boundary")
        kept = '{mhlo.frontend_attributes = {inlineable = "false"}}'
        return self.results(f"func.call @{identity}({names(values)}) {kept} : {signature(values, types)}", types)

    def stored(self, *values: SsaValue) -> list[SsaValue]:
        """The same values, computed once rather than again in each kernel that reads one of them."""
        if self.platform == "cpu" and self.mesh_of_all is None:
            return self.boundary(values)
        return self.ops("optimization_barrier", *values, types=_types(values))

    def composite(self, op: Any, values: Sequence[SsaValue]) -> list[SsaValue]:
        """An operation by name, of which a private function is the decomposition; for symbolic sizes inline."""
        if self.symbols:
            return self.program(op.bodies[0], values)
        decomposition = self.private(op.bodies[0], op.label, exact=True)
        return self.results(composite_text(op, decomposition, values), op.bodies[0].out_types)


def _generic(
    name: str, values: Sequence[SsaValue], attributes: str, regions: str, results: ArrayType | Sequence[ArrayType]
) -> str:
    """The generic form of an operation, ``"name"(operands) <{attributes}> regions : signature``."""
    head = f'"{name if "." in name else "stablehlo." + name}"({names(values)})'
    attributes = f" <{{{attributes}}}>" if attributes else ""
    return f"{head}{attributes}{regions and ' ' + regions} : {signature(values, results)}"


def _typed(values: Sequence[SsaValue]) -> str:
    """The operands of a terminator, ``names : types``; empty without values."""
    return f"{names(values)} : {tensors(values)}" if values else ""


def _types(values: Sequence[SsaValue]) -> list[ArrayType]:
    """The types in which rules compute with the values: strong, since weak ones would follow the default dtypes."""
    return [v.type.strong() for v in values]


def _rule(kind: Any) -> tuple[Any, str | None, bool]:
    """The lowering rule in force; the StableHLO operation that it only applies; whether to complex operands too."""
    rule = LOWER.find(kind)
    if type(rule) is ElementwiseLowering and rule.is_stablehlo:
        return rule, f"stablehlo.{rule.name}", rule.of_complex is None
    return rule, None, True


def identifier(label: str) -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c == "_" else "_" for c in label) or "f"


def function(
    emit: Emitter,
    program: Program,
    head: str,
    arguments: Sequence[str] = (),
    results: Sequence[str] = (),
) -> str:
    """The text of one function of the module; ``arguments`` and ``results``: the attributes of each."""
    body = lambda *values: emit.program(program, values)
    return function_text(emit, program.in_types, body, head, arguments, results)


def function_text(
    emit: Emitter,
    types: Sequence[ArrayType],
    body: Callable[..., Sequence[SsaValue]],
    head: str,
    arguments: Sequence[str] = (),
    results: Sequence[str] = (),
) -> str:
    """The text of a function of these types; ``body`` emits its operations and gives those returned."""
    values = [SsaValue(f"%arg{i}", t) for i, t in enumerate(types)]
    made = body(*values)
    takes = ", ".join([f"{v.name}: {tensor(v.type)}{note}" for v, note in zip(values, arguments or [""] * len(types))])
    gives = ", ".join([f"{tensor(v.type)}{note}" for v, note in zip(made, results or [""] * len(made))])
    gives = gives if len(made) == 1 and not any(results) else f"({gives})"
    lines = "\n".join(emit.lines)
    return f"  func.func {head}({takes}) -> {gives} {{\n{lines}\n    return {_typed(made)}\n  }}\n"
