"""Emit: the last handler. A program becomes the text of a StableHLO module.

Text goes straight to the compiler, which parses and verifies it in C++; no MLIR binding is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects.arrays import Array, ConcreteArray
from ..effects.callbacks import Callback
from ..effects.closing import LIFTED_BYTES
from ..effects.columns import LOWER, Word
from ..effects.dtypes import ExtendedDType, to_real
from ..effects.programs import Program
from ..effects.types import ArrayType, array_type
from ..interpreters.record import record
from .callbacks import HOST_CALL, HostCall
from .stablehlo import ELEMENT, dense, storage, tensor


class Value(NamedTuple):
    """An SSA value: its name and type."""

    name: str
    type: ArrayType


class Module(NamedTuple):
    """A module's text, the arrays that its entry takes before the program's own, and what it calls on the host."""

    text: str
    consts: tuple[ConcreteArray, ...]
    calls: tuple[HostCall, ...] = ()


class Emitter:
    """What rules of the column ``lower`` speak to; one for each function of the module.

    ``made`` is the type of the current equation's result, or a tuple of types; ``here`` is where it stands: a program
    and the number of the equation. ``calls`` is what the module calls on the host.
    """

    __slots__ = ("lines", "count", "made", "here", "functions", "calls", "constants")

    def __init__(self, functions: dict[Program, str] | None = None, calls: list[HostCall] | None = None):
        self.lines: list[str] = []
        self.count = 0
        self.made: Any = None
        self.here: Any = None
        self.functions: dict[Program, Any] = functions if functions is not None else {}
        self.calls: list[HostCall] = calls if calls is not None else []
        self.constants: dict[Any, Value] = {}

    def new(self, text: str, type: ArrayType) -> Value:
        """One more line ``%n = text``, whose value has this type."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = {text}")
        return Value(name, type)

    def elementwise(self, name: str, *values: Value) -> Value:
        """An operation on elements; an operand of rank 0 is spread over the result's shape."""
        made = self.made
        shape = made.shape
        spread = [v if v.type.shape == shape else self.broadcast_in_dim(v, shape, ()) for v in values]
        operands = ", ".join([v.name for v in spread])
        if name.startswith("chlo."):
            takes = ", ".join([tensor(v.type) for v in spread])
            return self.new(f"{name} {operands} : {takes} -> {tensor(made)}", made)
        if values[0].type.dtype == made.dtype:
            return self.new(f"stablehlo.{name} {operands} : {tensor(made)}", made)
        takes = ", ".join([tensor(v.type) for v in spread])
        return self.new(f"stablehlo.{name} {operands} : ({takes}) -> {tensor(made)}", made)

    def op(
        self, name: str, *values: Value, attributes: str = "", type: ArrayType | None = None, regions: str = ""
    ) -> Value:
        """Any operation in the generic form: ``"stablehlo.name"(operands) <{attributes}> ({region}) : types``."""
        made = self.made if type is None else type
        head = f'"{name if "." in name else "stablehlo." + name}"({", ".join([v.name for v in values])})'
        takes = ", ".join([tensor(v.type) for v in values])
        attributes = f" <{{{attributes}}}>" if attributes else ""
        return self.new(f"{head}{attributes}{regions and ' ' + regions} : ({takes}) -> {tensor(made)}", made)

    def ops(
        self, name: str, *values: Value, types: Sequence[ArrayType], attributes: str = "", regions: str = ""
    ) -> list[Value]:
        """The same with several results."""
        head = f'"{name if "." in name else "stablehlo." + name}"({", ".join([v.name for v in values])})'
        takes = ", ".join([tensor(v.type) for v in values])
        attributes = f" <{{{attributes}}}>" if attributes else ""
        gives = ", ".join(map(tensor, types))
        whole = self.count
        self.count += 1
        text = f"{head}{attributes}{regions and ' ' + regions} : ({takes}) -> ({gives})"
        if len(types) == 1:
            self.lines.append(f"    %{whole} = {text}")
            return [Value(f"%{whole}", types[0])]
        self.lines.append(f"    {f'%{whole}:{len(types)} = ' if types else ''}{text}")
        return [Value(f"%{whole}#{i}", t) for i, t in enumerate(types)]

    def inline(self, name: str, text: str, *values: Value, type: ArrayType | None = None) -> Value:
        """An operation in its own short form: ``stablehlo.name text : (types) -> type``, or ``: type`` alone."""
        made = self.made if type is None else type
        takes = f"({', '.join([tensor(v.type) for v in values])}) -> " if values else ""
        return self.new(f"stablehlo.{name} {text} : {takes}{tensor(made)}", made)

    def constant(self, value: Any, type: ArrayType) -> Value:
        """A constant of this type: a number, or an array of its shape; written once in a function."""
        _, dtype = storage(type)
        data = np.asarray(value).astype(dtype)
        key = (data.tobytes(), data.shape, type)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.new(f"stablehlo.constant {dense(data)} : {tensor(type)}", type)
        return found

    def broadcast_in_dim(self, x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        made = array_type(tuple(shape), x.type.dtype, x.type.weak)
        dims = list(dims)
        if isinstance(x.type.dtype, ExtendedDType):
            dims += range(len(shape), len(shape) + len(x.type.dtype.shape))
        return self.new(
            f"stablehlo.broadcast_in_dim {x.name}, dims = {dims} : ({tensor(x.type)}) -> {tensor(made)}", made
        )

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        made = x.type.update(shape=tuple(shape))
        if made is x.type:
            return x
        return self.new(f"stablehlo.reshape {x.name} : ({tensor(x.type)}) -> {tensor(made)}", made)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        made = x.type.update(shape=tuple(x.type.shape[d] for d in permutation))
        order = list(permutation)
        if isinstance(x.type.dtype, ExtendedDType):
            order += range(len(order), len(order) + len(x.type.dtype.shape))
        return self.new(f"stablehlo.transpose {x.name}, dims = {order} : ({tensor(x.type)}) -> {tensor(made)}", made)

    def convert(self, x: Value, dtype: Any) -> Value:
        """Conversion by value, as ``astype``: to bool is ``!= 0``, from complex takes the real part."""
        source = x.type.dtype
        made = x.type.update(dtype=dtype)
        if source == dtype:
            return x
        if dtype == np.bool_:
            return self.compare("NE", x, self.full(0, x.type))
        if source.kind == "c" and dtype.kind != "c":
            real = x.type.update(dtype=np.dtype("float32" if source.itemsize == 8 else "float64"))
            x = self.new(f"stablehlo.real {x.name} : ({tensor(x.type)}) -> {tensor(real)}", real)
            if real.dtype == dtype:
                return x
        return self.new(f"stablehlo.convert {x.name} : ({tensor(x.type)}) -> {tensor(made)}", made)

    def compare(self, direction: str, x: Value, y: Value, total: bool = False) -> Value:
        """``direction``: EQ, NE, LT, LE, GT, GE; ``total`` orders NaNs too."""
        dtype = x.type.dtype
        kind = "UNSIGNED" if dtype.kind in "ub" or dtype.name.startswith("uint") else "SIGNED"
        if dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name):
            kind = "TOTALORDER" if total else "FLOAT"
        made = x.type.update(dtype=np.dtype(bool), weak=False)
        types = f"({tensor(x.type)}, {tensor(y.type)}) -> {tensor(made)}"
        return self.new(f"stablehlo.compare {direction}, {x.name}, {y.name}, {kind} : {types}", made)

    def select(self, which: Value, on_true: Value, on_false: Value) -> Value:
        types = f"{tensor(which.type)}, {tensor(on_true.type)}"
        return self.new(f"stablehlo.select {which.name}, {on_true.name}, {on_false.name} : {types}", on_true.type)

    def spread(self, *values: Value) -> list[Value]:
        """The values, those of rank 0 spread over the shape of the current result."""
        shape = self.made.shape
        return [v if v.type.shape == shape else self.broadcast_in_dim(v, shape, ()) for v in values]

    def aligned(self, mask: Value, type: ArrayType) -> Value:
        """A mask for values of this type: repeated over the words of keys."""
        shape, _ = storage(type)
        if mask.type.shape in ((), shape):
            return mask
        return self.broadcast_in_dim(mask, shape, range(len(mask.type.shape)))

    def parts(self, x: Value) -> tuple[Value, Value]:
        """The real and imaginary parts of a complex value."""
        made = x.type.update(dtype=to_real(x.type.dtype))
        types = f"({tensor(x.type)}) -> {tensor(made)}"
        real = self.new(f"stablehlo.real {x.name} : {types}", made)
        return real, self.new(f"stablehlo.imag {x.name} : {types}", made)

    def iota(self, type: ArrayType, dimension: int) -> Value:
        return self.new(f"stablehlo.iota dim = {dimension} : {tensor(type)}", type)

    def full(self, value: Any, type: ArrayType) -> Value:
        """An array whose elements are all ``value``."""
        single = self.constant(value, type.update(shape=()))
        return self.broadcast_in_dim(single, type.shape, ()) if type.shape else single

    def binary(self, name: str, x: Value, y: Value) -> Value:
        """An elementwise operation of two equal types whose result has that type too."""
        return self.new(f"stablehlo.{name} {x.name}, {y.name} : {tensor(x.type)}", x.type)

    def unary(self, name: str, x: Value) -> Value:
        return self.new(f"stablehlo.{name} {x.name} : {tensor(x.type)}", x.type)

    def dot_general(
        self, x: Value, y: Value, numbers: Any, precision: tuple[str, str, Any], made: ArrayType
    ) -> Value:
        """A contraction; ``precision`` names that of each operand, and holds the algorithm's fields, or None."""
        inner, batch = numbers
        lhs, rhs, algorithm = precision
        text = f"stablehlo.dot_general {x.name}, {y.name},"
        if batch[0]:
            text += f" batching_dims = {list(batch[0])} x {list(batch[1])},"
        text += f" contracting_dims = {list(inner[0])} x {list(inner[1])}, precision = [{lhs}, {rhs}]"
        if algorithm is not None:
            words = [str(word).lower() if isinstance(word, bool) else word for word in algorithm]
            words[:3] = [ELEMENT.get(np.dtype(w).name if w != "tf32" else w, w) for w in words[:3]]
            text += f", algorithm = <{', '.join([f'{k} = {v}' for k, v in zip(algorithm._fields, words)])}>"
        return self.new(f"{text} : ({tensor(x.type)}, {tensor(y.type)}) -> {tensor(made)}", made)

    def reduce(self, name: str, x: Value, unit: Any, axes: Sequence[int]) -> Value:
        """A reduction by a named operation, whose unit is the number ``unit``."""
        element = x.type.update(shape=())
        made = x.type.update(shape=tuple([n for i, n in enumerate(x.type.shape) if i not in axes]))
        start = self.constant(unit, element)
        types = f"({tensor(x.type)}, {tensor(element)}) -> {tensor(made)}"
        return self.new(
            f"stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{name} across dimensions = {list(axes)}"
            f" : {types}",
            made,
        )

    def fold(
        self, xs: Sequence[Value], starts: Sequence[Value], axes: Sequence[int], body: Callable[..., Sequence[Value]]
    ) -> list[Value]:
        """A reduction of several arrays at once: ``body(*left, *right)`` gives the elements combined."""
        elements = [start.type for start in starts]
        shape = tuple([n for i, n in enumerate(xs[0].type.shape) if i not in axes])
        made = [t.update(shape=shape) for t in elements]
        attributes = f"dimensions = array<i64{': ' if axes else ''}{', '.join(map(str, axes))}>"
        region = self.region([*elements, *elements], body)
        return self.ops("reduce", *xs, *starts, types=made, attributes=attributes, regions=region)

    def reduce_window(
        self,
        xs: Sequence[Value],
        starts: Sequence[Value],
        window: tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]], Sequence[int], Sequence[int]],
        types: Sequence[ArrayType],
        body: Callable[..., Sequence[Value]],
    ) -> list[Value]:
        """Reductions over windows; ``window``: sizes, strides, padding, and the dilations of base and window."""
        sizes, strides, padding, base, dilation = window
        rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
        names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
        words = zip(names, (sizes, strides, base, dilation))
        attributes = ", ".join([f"{name} = array<i64: {', '.join(map(str, numbers))}>" for name, numbers in words])
        attributes += f", padding = dense<[{rows}]> : tensor<{len(sizes)}x2xi64>"
        elements = [start.type for start in starts]
        region = self.region([*elements, *elements], body)
        return self.ops("reduce_window", *xs, *starts, types=types, attributes=attributes, regions=region)

    def top_k(self, x: Value, k: int) -> list[Value]:
        """The largest ``k`` along the last dimension, and their places."""
        types = [x.type.update(shape=(*x.type.shape[:-1], k))] * 2
        types[1] = types[1].update(dtype=np.dtype("int32"), weak=False)
        whole = self.count
        self.count += 1
        gives = ", ".join(map(tensor, types))
        self.lines.append(f"    %{whole}:2 = chlo.top_k({x.name}, k = {k}) : {tensor(x.type)} -> ({gives})")
        return [Value(f"%{whole}#{i}", t) for i, t in enumerate(types)]

    def region(self, types: Sequence[ArrayType], body: Callable[..., Sequence[Value]]) -> str:
        """The text of a region ``({ ^bb0(...): ... })``: ``body`` maps this emitter's values to those returned."""
        outer, outer_constants, outer_made = self.lines, self.constants, self.made
        self.lines, self.constants = [], {}
        first = self.count
        self.count += len(types)
        values = [Value(f"%{first + i}", t) for i, t in enumerate(types)]
        try:
            results = body(*values)
            inner = self.lines
        finally:
            self.lines, self.constants, self.made = outer, outer_constants, outer_made
        head = ", ".join([f"{v.name}: {tensor(v.type)}" for v in values])
        block = f"\n    ^bb0({head}):" if values else ""
        back = ", ".join([v.name for v in results])
        gives = ", ".join([tensor(v.type) for v in results])
        back = f"{back} : {gives}" if results else ""
        body_text = "\n".join(inner)
        return f"({{{block}\n{body_text}\n    stablehlo.return {back}\n    }})"

    def program(self, program: Program, values: Sequence[Value]) -> list[Value]:
        """The equations of a program in place; gives its results."""
        results = sum([len(t) if op.multiple else 1 for op, t in zip(program.ops, program.types)])
        consts = [self.captured(const) for const in program.consts]
        # names and types apart: a line that is written here makes no Value
        names = [*[v.name for v in values], *[""] * results, *[v.name for v in reversed(consts)]]
        types: list[Any] = [*[v.type for v in values], *[None] * results, *[v.type for v in reversed(consts)]]
        number = len(values)
        lines = self.lines
        rules: dict[Any, tuple[Any, str | None]] = {}
        for i, (op, args, made) in enumerate(zip(program.ops, program.args, program.types)):
            kind = type(op)
            rule, word = rules.get(kind) or rules.setdefault(kind, _rule(kind))
            # most equations are words on one or two operands of the result's type: their lines are written here
            if word is not None and 0 < len(args) < 3 and types[args[0]] is made is types[args[-1]]:
                name = names[number] = f"%{self.count}"
                types[number] = made
                self.count += 1
                operands = names[args[0]] if len(args) == 1 else f"{names[args[0]]}, {names[args[1]]}"
                lines.append(f"    {name} = {word} {operands} : {tensor(made)}")
                number += 1
                continue
            self.made = made
            self.here = program, i
            y = rule(op, self, *[Value(names[n], types[n]) for n in args])
            for name, t in y if op.multiple else (y,):
                names[number] = name
                types[number] = t
                number += 1
        return [Value(names[n], types[n]) for n in program.outs]

    def captured(self, const: ConcreteArray) -> Value:
        """A constant of a program: written in place, or an argument of the entry where it is large."""
        return self.constant(const.value, const.type)

    def decompose(self, f: Callable[..., Any], *values: Value) -> Any:
        """Emit what ``f`` performs on arrays of these types: a rule by other operations.

        Gives a value where ``f`` gives an array, and a list of them where it gives a sequence.
        """
        made = self.made
        alone = False

        def listed(*xs: Any) -> Any:
            nonlocal alone
            y = f(*xs)
            alone = isinstance(y, Array)
            return [y] if alone else y

        results = self.program(record(listed, [v.type for v in values]), values)
        self.made = made
        return results[0] if alone else results

    def loop(self, more: Callable[..., Any], step: Callable[..., Sequence[Any]], *values: Value) -> list[Value]:
        """``step`` on the values as long as ``more`` holds: what both perform on arrays of the values' types."""
        types = [v.type for v in values]
        test, body = record(lambda *xs: [more(*xs)], types), record(step, types)
        return self.repeat(lambda *vs: self.program(test, vs)[0], lambda *vs: self.program(body, vs), *values)

    def repeat(self, more: Callable[..., Value], step: Callable[..., Sequence[Value]], *values: Value) -> list[Value]:
        """``step`` on the values as long as ``more`` holds: what both emit."""
        types = [v.type for v in values]
        if not types:  # nothing can tell one round from the next: the body has no effect, so no round is needed
            return []
        test = self.region(types, lambda *vs: [more(*vs)])
        return self.ops("while", *values, types=types, regions=f"({test[1:-1]}, {self.region(types, step)[1:-1]})")

    def case(self, index: Value, branches: Sequence[Callable[[], Sequence[Value]]], types: Sequence[ArrayType]) -> Any:
        """What the branch of this number emits, of the last one where there is none."""
        if len(branches) == 1:
            return branches[0]()
        regions = ", ".join([self.region((), branch)[1:-1] for branch in branches])
        return self.ops("case", index, types=types, regions=f"({regions})")

    def at(self, x: Value, place: Value) -> Value:
        """``x[place]``, along the first axis."""
        sizes = [1, *storage(x.type)[0][1:]]
        one = x.type.update(shape=(1, *x.type.shape[1:]))
        zero = self.constant(0, place.type).name
        starts = ", ".join([place.name, *[zero] * (len(sizes) - 1)])
        types = ", ".join([tensor(x.type), *[tensor(place.type)] * len(sizes)])
        y = self.new(f"stablehlo.dynamic_slice {x.name}, {starts}, sizes = {sizes} : ({types}) -> {tensor(one)}", one)
        return self.reshape(y, x.type.shape[1:])

    def put(self, x: Value, y: Value, place: Value) -> Value:
        """``x`` with ``y`` at ``x[place]``."""
        row = self.reshape(y, (1, *y.type.shape))
        rank = len(storage(x.type)[0])
        zero = self.constant(0, place.type).name
        starts = ", ".join([place.name, *[zero] * (rank - 1)])
        types = ", ".join([tensor(x.type), tensor(row.type), *[tensor(place.type)] * rank])
        return self.new(
            f"stablehlo.dynamic_update_slice {x.name}, {row.name}, {starts} : ({types}) -> {tensor(x.type)}", x.type
        )

    def host_call(self, op: Callback, values: Sequence[Value]) -> list[Value]:
        """A call of the host; what is called goes with the module."""
        types = self.made
        program, index = self.here
        takes = ", ".join([tensor(v.type) for v in values])
        gives = ", ".join(map(tensor, types))
        effect = "true" if op.effectful else "false"
        text = (
            f"stablehlo.custom_call @{HOST_CALL}({', '.join([v.name for v in values])}) {{api_version = 4 : i32,"
            f" has_side_effect = {effect}, backend_config = {{index = {len(self.calls)} : ui64}}}} : ({takes}) -> "
        )
        self.calls.append(HostCall(op, program.sites[index]))
        whole = self.count
        self.count += 1
        if len(types) == 1:
            self.lines.append(f"    %{whole} = {text}{gives}")
            return [Value(f"%{whole}", types[0])]
        self.lines.append(f"    {f'%{whole}:{len(types)} = ' if types else ''}{text}({gives})")
        return [Value(f"%{whole}#{i}", t) for i, t in enumerate(types)]

    def call(self, program: Program, label: str, values: Sequence[Value]) -> list[Value]:
        """A call of the private function for ``program``, emitted once in the module however often it is called."""
        found = self.functions.get(program)
        if found is None:
            name = f"{_identifier(label)}_{len(self.functions)}"
            self.functions[program] = found = [name, ""]
            found[1] = function(Emitter(self.functions, self.calls), program, f"private @{name}")
        types = program.out_types
        takes = ", ".join([tensor(v.type) for v in values])
        gives = ", ".join(map(tensor, types))
        whole = self.count
        self.count += 1
        many = f":{len(types)}" if len(types) != 1 else ""
        target = f"func.call @{found[0]}({', '.join([v.name for v in values])}) : ({takes}) -> ({gives})"
        self.lines.append(f"    %{whole}{many} = {target}" if types else f"    {target}")
        return [Value(f"%{whole}#{i}" if many else f"%{whole}", t) for i, t in enumerate(types)]


def _rule(kind: Any) -> tuple[Any, str | None]:
    """The rule in force, and the operation's name where the rule is no more than that."""
    rule = LOWER.find(kind)
    return rule, f"stablehlo.{rule.word}" if type(rule) is Word and rule.plain else None


def _identifier(label: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in label) or "f"


def function(
    emit: Emitter, program: Program, head: str, arguments: Sequence[str] = (), lifted: Sequence[Any] = ()
) -> str:
    """The text of one function of the module."""
    types = [const.type for const in lifted] + list(program.in_types)
    values = [Value(f"%arg{i}", t) for i, t in enumerate(types)]
    for const, value in zip(lifted, values):
        emit.constants[id(const)] = value
    results = emit.program(program, values[len(lifted) :])
    notes = list(arguments) or [""] * len(types)
    takes = ", ".join([f"{v.name}: {tensor(v.type)}{note}" for v, note in zip(values, notes)])
    gives = ", ".join([tensor(v.type) for v in results])
    back = f"{', '.join([v.name for v in results])} : {gives}" if results else ""
    body = "\n".join(emit.lines)
    return f"  func.func {head}({takes}) -> ({gives}) {{\n{body}\n    return {back}\n  }}\n"


class EntryEmitter(Emitter):
    """The emitter of the entry function, whose large constants are arguments."""

    __slots__ = ()

    def captured(self, const: ConcreteArray) -> Value:
        return self.constants.get(id(const)) or super().captured(const)


def lower_program(program: Program, name: str, aliases: Sequence[int | None] = ()) -> Module:
    """The StableHLO module of a program; each of its effects has a lowering.

    ``aliases[i]``: the result in the memory of input ``i``.
    """
    lifted = tuple(c for c in program.consts if c.type.nbytes > LIFTED_BYTES)
    emit = EntryEmitter()
    given = aliases or [None] * len(program.in_types)
    notes = [""] * len(lifted) + ["" if i is None else f" {{tf.aliasing_output = {i} : i32}}" for i in given]
    main = function(emit, program, "public @main", notes, lifted)
    functions = "".join([text for _, text in emit.functions.values()])
    head = f"module @{_identifier(name)} attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}}"
    return Module(f"{head} {{\n{main}{functions}}}\n", lifted, tuple(emit.calls))
