"""Random well-typed programs over the registered operations.

    @given(programs())                       any operations, sub-programs, constants of every dtype
    @given(programs(effects=True))           with effects among them
    @given(programs(dtypes=[f64], kinds=[Sin, Mul]))
    arguments(program, seed)                 operands for it
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from handlax.effects.base import stack
from handlax.effects.base.errors import HandlaxError
from handlax.effects.core.arrays import concrete
from handlax.effects.core.operation import OPERATIONS, effect
from handlax.effects.operations.elementwise.conversion import ConvertElementType
from handlax.effects.operations.foundations.elementwise_factory import Elementwise
from handlax.effects.operations.foundations.shapes import BroadcastInDim, ReduceSum, Reshape, Transpose
from handlax.effects.programs.higher_order import Call
from handlax.effects.programs.literals import data_shape
from handlax.effects.programs.program import Builder, Program
from handlax.effects.types import dtypes as names
from handlax.effects.types.array_type import ArrayType, array_type
from handlax.interpreters.core import evaluate
from handlax.testing.strategies import array_types, field_values

stack.BASE.answer = evaluate.answer

SHAPES = ((), (3,), (2, 3), (0, 2), (1,), (17,))
DTYPES = tuple(sorted((*names.ANY, names.float8_e5m2, names.int4), key=names.short_name))
KEY = names.KeyDType("fry")


@effect(vmap="per_lane")
class Chime:
    """An effect without operands and result."""

    by: int = 1

    def result_type(op):
        return None


@effect(vmap="per_lane", diff="stop")
class Announce:
    """An effect that returns its operand."""

    tag: Any = "log"

    def result_type(op, x):
        return x


def elementwise_kinds() -> list[type[Elementwise]]:
    """The elementwise operations without fields that the library has loaded."""
    kinds = {kind for kind in OPERATIONS.values() if issubclass(kind, Elementwise) and not kind._names}
    return sorted((kind for kind in kinds if kind.__module__.startswith("handlax.")), key=lambda kind: kind.name)


def array(type: ArrayType, rng: np.random.Generator) -> Any:
    """A random constant of this type: where every bit pattern is a value any bits, with NaN payloads and subnormals."""
    shape = data_shape(type)
    dtype = type.dtype.base if names.is_extended(type.dtype) else type.dtype
    if dtype == names.bool_:
        return concrete(type, rng.integers(0, 2, shape).astype(bool))
    if names.itemsize_bits(dtype) < 8:
        return concrete(type, rng.integers(-8, 8, shape).astype(dtype))
    if rng.random() < 0.5:
        data = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
        return concrete(type, np.ascontiguousarray(data).view(dtype).reshape(shape))
    return concrete(type, np.asarray(rng.integers(0, 4, shape)).astype(dtype))


@st.composite
def programs(
    draw: Any,
    *,
    effects: bool = False,
    dtypes: Sequence[Any] = DTYPES,
    kinds: Sequence[type[Elementwise]] | None = None,
    constants: bool = True,
    size: int = 12,
    depth: int = 2,
) -> Program:
    """A well-typed program of up to ``size`` equations; sub-programs nest up to ``depth`` deep."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    drawn = array_types(st.sampled_from(dtypes), st.sampled_from(SHAPES))
    builder = Builder()
    values: list[tuple[int, ArrayType]] = []
    for type in draw(st.lists(drawn, min_size=1, max_size=3)):
        values.append((builder.input(type), type))
    if constants:
        extended = [array_type((2,), KEY)] if dtypes is DTYPES else []
        for type in draw(st.lists(st.one_of(drawn, *map(st.just, extended)), max_size=3)):
            values.append((builder.const(array(type, rng)), type))
    kinds = elementwise_kinds() if kinds is None else list(kinds)
    inner = partial(programs, effects=effects, dtypes=dtypes, kinds=kinds, constants=constants, size=4, depth=depth - 1)
    steps = [_elementwise, _structural] + [_effect] * effects + [_call] * (depth > 0)
    for _ in range(draw(st.integers(0, size))):
        draw(st.sampled_from(steps))(draw, builder, values, kinds, inner)
    outs = draw(st.lists(st.sampled_from([n for n, _ in values]), max_size=3))
    return builder.freeze(outs, draw(st.sampled_from(["f", "<lambda>", "a name with spaces", "loss_fn"])))


def _append(builder: Builder, values: list[Any], op: Any, operands: Sequence[tuple[int, ArrayType]]) -> None:
    """Append an equation, if the operation accepts these operands."""
    try:
        results = op.result_type(*[type for _, type in operands])
    except HandlaxError:
        return
    number = builder.append(op, tuple([n for n, _ in operands]), results, (None, 0))
    for k, type in enumerate(op.as_results(results)):
        values.append((number + k, type))


def _elementwise(draw: Any, builder: Builder, values: Any, kinds: Any, inner: Any) -> None:
    kind = draw(st.sampled_from(kinds))
    first = draw(st.sampled_from(values))
    fitting = [v for v in values if v[1].dtype == first[1].dtype and v[1].shape in ((), first[1].shape)]
    rest = [draw(st.sampled_from(fitting)) for _ in range(kind.arity - 1)]
    _append(builder, values, kind(), [first, *rest])


def _structural(draw: Any, builder: Builder, values: Any, kinds: Any, inner: Any) -> None:
    operand = draw(st.sampled_from(values))
    shape = operand[1].shape
    rank = len(shape)
    choices = [
        BroadcastInDim((2, *shape), tuple(range(1, rank + 1))),
        Reshape((operand[1].size,)),
        Transpose(tuple(reversed(range(rank)))),
        ReduceSum(tuple(range(rank))[:1]),
        ConvertElementType(names.float32, False),
        ConvertElementType(names.bfloat16, True),
    ]
    _append(builder, values, draw(st.sampled_from(choices)), [operand])


def _effect(draw: Any, builder: Builder, values: Any, kinds: Any, inner: Any) -> None:
    if draw(st.booleans()):
        _append(builder, values, Chime(draw(st.integers(-1, 3))), [])
    else:
        tag = draw(fields())
        _append(builder, values, Announce(tag), [draw(st.sampled_from(values))])


def _call(draw: Any, builder: Builder, values: Any, kinds: Any, inner: Any) -> None:
    """A call of a new program, or of one that was called before."""
    earlier = [op.bodies[0] for op in builder.ops if isinstance(op, Call)]
    body = draw(st.sampled_from(earlier)) if earlier and draw(st.booleans()) else draw(inner())
    operands = []
    for type in body.in_types:
        fitting = [v for v in values if v[1] is type]
        if fitting:
            operands.append(draw(st.sampled_from(fitting)))
        else:
            operands.append((builder.const(concrete(type, np.zeros(type.shape, type.dtype))), type))
    _append(builder, values, Call((body,), draw(st.sampled_from(["call", "it's"]))), operands)


def fields() -> st.SearchStrategy[Any]:
    """Values of fields of operations that can be printed and parsed back, effects among them."""
    return field_values(Chime, Chime(4))


def arguments(program: Program, seed: int = 0) -> list[Any]:
    """Operands for a program: small numbers, so that results are mostly finite."""
    rng = np.random.default_rng(seed)
    operands = []
    for type in program.in_types:
        dtype = type.dtype.base if names.is_extended(type.dtype) else type.dtype
        low = 0 if names.is_bool(dtype) or names.is_unsigned(dtype) else -3
        operands.append(concrete(type, np.asarray(rng.integers(low, 2, data_shape(type))).astype(dtype)))
    return operands
