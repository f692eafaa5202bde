"""Random well-typed programs, written equation by equation, over the registered operations and all dtypes.

The probe of a variable is its type, which each operation accepts or refuses.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np

from ...effects.base.errors import HandlaxError
from ...effects.core.arrays import concrete
from ...effects.core.operation import OPERATIONS, Operation
from ...effects.operations.elementwise.conversion import ConvertElementType
from ...effects.operations.foundations.elementwise_factory import Elementwise
from ...effects.operations.foundations.shapes import BroadcastInDim, ReduceSum, Reshape, Transpose
from ...effects.programs.higher_order import Call
from ...effects.programs.literals import data_shape
from ...effects.programs.program import Builder, Program
from ...effects.types import dtypes as names
from ...effects.types.array_type import ArrayType, array_type
from .author import Author, Scope, Statement, Unfit, Vocabulary

SHAPES = ((), (3,), (2, 3), (0, 2), (1,), (17,))
DTYPES = tuple(sorted((*names.ANY, names.float8_e5m2, names.int4), key=names.short_name))
KEY = names.KeyDType("fry")


class OpenProgram(Scope):
    """A program that is being written; its variables are numbers."""

    def __init__(self, depth: int):
        super().__init__({}, (), depth)
        self.builder = Builder()

    def add(self, number: int, type: ArrayType) -> int:
        """A new variable of this type."""
        self.space[number] = type
        self.names.append(number)
        return number

    def append(self, op: Operation, *operands: int) -> None:
        """Write an equation. Raises: Unfit: the operation refuses these operands."""
        try:
            results = op.result_type(*[self[n] for n in operands])
        except HandlaxError:
            raise Unfit from None
        number = self.builder.append(op, operands, results, (None, 0))
        for k, type in enumerate(op.as_results(results)):
            self.add(number + k, type)


def random_equations(
    random: Random,
    *,
    operations: Sequence[Operation] = (),
    kinds: Sequence[type[Elementwise]] | None = None,
    dtypes: Sequence[Any] = DTYPES,
    constants: bool = True,
    size: int = 12,
    depth: int = 2,
) -> Program:
    """A program of up to ``size`` equations, which call programs up to ``depth`` deep.

    Args:
        operations: operations of yours, effects for example, that stand among the others.
        kinds: the elementwise operations; all that are registered by default.
        dtypes: those of inputs and constants.

    >>> from handlax.effects.operations.elementwise.arithmetic import Add, Mul
    >>> f32 = np.dtype("float32")
    >>> random_equations(Random(193), kinds=[Add, Mul], dtypes=[f32], constants=False, size=3, depth=0)
    program <lambda>(a: f32[0,2], b: f32[1], c: f32[3]~) -> (f32[3]~, f32[3]~) {
      d: f32[3]~ = mul c c
      e: f32[3]~ = mul d d
      f: f32[1] = convert_element_type[dtype=f32] b
      return (d, c)
    }
    """
    kinds = elementwise_kinds() if kinds is None else kinds
    body = partial(
        random_equations, random, operations=operations, kinds=kinds, dtypes=dtypes, constants=constants, size=4,
        depth=depth - 1,
    )
    own = [partial(appended, operations)] * bool(operations)
    plain: list[Statement] = [partial(elementwise, kinds), structural, *own]
    a = Author(random, Vocabulary(dict.fromkeys(plain, 1.0), {partial(called, body): 1.0}))
    scope = OpenProgram(depth)
    for _ in range(a.integer(1, 3)):
        type = random_type(a, dtypes)
        scope.add(scope.builder.input(type), type)
    for _ in range(a.integer(0, 3) if constants else 0):
        with_keys = dtypes is DTYPES and a.chance(0.1)
        constant(a, scope, array_type((2,), KEY) if with_keys else random_type(a, dtypes))
    for _ in range(a.integer(0, size)):
        a.statements(scope, 1)
    outs = [a.choice(scope.names) for _ in range(a.integer(0, 3))]
    return scope.builder.freeze(outs, a.choice(["f", "<lambda>", "a name with spaces", "loss_fn"]))


def random_type(a: Author, dtypes: Sequence[Any]) -> ArrayType:
    """A type of arrays; a weak one too, for dtypes that promote."""
    return array_type(a.choice(SHAPES), a.choice(dtypes), a.chance())


def constant(a: Author, scope: OpenProgram, type: ArrayType) -> None:
    x = random_array(type, np.random.default_rng(a.random.getrandbits(32)))
    scope.add(scope.builder.const(x), type)


def elementwise(kinds: Sequence[type[Elementwise]], a: Author, scope: OpenProgram) -> None:
    kind = a.choice(kinds)
    first = a.variable(scope)
    fitting = lambda type: type.dtype == scope[first].dtype and type.shape in ((), scope[first].shape)
    scope.append(kind(), first, *[a.variable(scope, fitting) for _ in range(kind.arity - 1)])


def structural(a: Author, scope: OpenProgram) -> None:
    x = a.variable(scope)
    type, rank = scope[x], len(scope[x].shape)
    scope.append(a.choice((
        BroadcastInDim((2, *type.shape), tuple(range(1, rank + 1))),
        Reshape((type.size,)),
        Transpose(tuple(reversed(range(rank)))),
        ReduceSum(tuple(range(rank))[:1]),
        ConvertElementType(names.float32, False),
        ConvertElementType(names.bfloat16, True),
    )), x)


def appended(operations: Sequence[Operation], a: Author, scope: OpenProgram) -> None:
    """One of these operations, of as many operands as it has."""
    op = a.choice(operations)
    declared = op.result_tree if op.effectful else op.result_type
    scope.append(op, *[a.variable(scope) for _ in inspect.signature(declared).parameters])


def called(body: Any, a: Author, scope: OpenProgram) -> None:
    """A call of a new program, or of one that was called before."""
    earlier = [op.bodies[0] for op in scope.builder.ops if isinstance(op, Call)]
    program = a.choice(earlier) if earlier and a.chance() else body()
    for type in program.in_types:
        if type not in scope.space.values():
            zeros = concrete(type, np.zeros(type.shape, type.dtype))
            scope.add(scope.builder.const(zeros), type)
    operands = [a.variable(scope, partial(operator.is_, type)) for type in program.in_types]
    scope.append(Call((program,), a.choice(["call", "it's"])), *operands)


def elementwise_kinds() -> list[type[Elementwise]]:
    """The elementwise operations without fields that the library has loaded."""
    kinds = {kind for kind in OPERATIONS.values() if issubclass(kind, Elementwise) and not kind._names}
    return sorted((kind for kind in kinds if kind.__module__.startswith("handlax.")), key=lambda kind: kind.name)


def random_array(type: ArrayType, rng: np.random.Generator) -> Any:
    """An array of this type: where every bit pattern is a value any bits, with NaN payloads and subnormals."""
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


def arguments(program: Program, seed: int = 0) -> list[Any]:
    """Operands for a program: small numbers, so that results are mostly finite."""
    rng = np.random.default_rng(seed)
    operands = []
    for type in program.in_types:
        dtype = type.dtype.base if names.is_extended(type.dtype) else type.dtype
        low = 0 if names.is_bool(dtype) or names.is_unsigned(dtype) else -3
        operands.append(concrete(type, np.asarray(rng.integers(low, 2, data_shape(type))).astype(dtype)))
    return operands
