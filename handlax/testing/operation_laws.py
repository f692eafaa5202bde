"""The laws of operations, as values.

    for law in OPERATION_LAWS: law.check(op, draws)

``draws`` are lists of operands, NumPy arrays and arrays of keys. An operation to which a law does not apply declares
it, with the reason: ``exempt = {name: reason}``.

A law needs rules; or ``"reals"``: operands of 32 or 64 bits, ``"halves"``: of 16, ``"rows"``: a ``ragged_size``. Its
draws want ``"lanes"``, several of one type, or ``"extremes"`` of dtypes; and it is about ``rules``, columns of the
operation.
"""

from __future__ import annotations

import itertools
import pickle
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects.base.errors import (
    BadIndex,
    CannotCross,
    ConcretizationError,
    HandlaxError,
    ShapeMismatch,
    ShardingTypeError,
)
from ..effects.base.later_layers import LaterLayers
from ..effects.base.wrapping import errors_ignored
from ..effects.core.arrays import Array, as_array, perform
from ..effects.core.columns import DECOMPOSE, EVALUATE, RAGGED, SHARDING_RULE
from ..effects.core.operation import Operation, result_type
from ..effects.operations.random_bits import random_wrap
from ..effects.programs.parse_result import parse_program
from ..effects.programs.program import Program, interpret
from ..effects.sharding.mesh import AxisType, Mesh
from ..effects.sharding.named_sharding import NamedSharding
from ..effects.sharding.partition_spec import cut_along
from ..effects.types import dtypes
from ..effects.types.array_type import Shape
from ..interpreters.analysis.typecheck import typecheck
from ..interpreters.core.record import record
from ..interpreters.differentiation.partial_eval import partial_eval_program
from ..interpreters.ragged.ragged_array import Ragged, ragged_axis
from ..interpreters.transformations.derivatives import jvp, linearize, vjp
from ..interpreters.transformations.make_program import make_program
from ..interpreters.transformations.vmap import vmap
from ..lowering.arrays.device_put import device_put
from ..lowering.jit.jit import jit
from .closeness import assert_close, assert_rounded, brief, data, widened
from .law import Inapplicable, Law
from .strategies import Operands
from .tangents import assert_quotients, drawn_tangents, is_smooth, pairing_terms

Arrays = Sequence[np.ndarray[Any, Any]]
Cases = Sequence[tuple[Operation, Arrays]]


NARROW = frozenset(map(np.dtype, ("float32", "complex64")))
REALS = NARROW | frozenset(map(np.dtype, ("float64", "complex128")))
HALVES = frozenset([dtypes.float16, dtypes.bfloat16])


def lacking_rules(kind: type[Operation]) -> dict[str, str]:
    """The rules that an operation need not have, that laws need, and that this one has not; with what it lacks so."""
    has = {"decompose": DECOMPOSE.has(kind), "ragged": RAGGED.complete().has(kind)}
    said = {"decompose": "it has no decomposition", "ragged": "it has no rule for such lanes"}
    return {name: said[name] for name, yes in has.items() if not yes}


def results(op: Operation, operands: Sequence[Any]) -> list[Any]:
    """The results of an operation, as a list."""
    return list(op.as_results(perform(op, *operands)))


def _types(op: Operation, operands: Arrays) -> None:
    arrays = [as_array(x) for x in operands]
    before = [data(x).tobytes() for x in arrays]
    types = op.as_results(op.result_type(*[x.type for x in arrays]))
    for y, t in zip(results(op, arrays), types):
        assert y.type is t, f"{op}: result_type is {t}, evaluate gave {y.type}"
        value = data(y)
        if not dtypes.is_extended(t.dtype):
            actual = (value.shape, value.dtype)
            assert actual == (t.shape, t.dtype), f"{op}: the data are {value.dtype}{value.shape}, not {t}"
    assert [data(x).tobytes() for x in arrays] == before, f"{op}: evaluate must not write to its operands"
    if EVALUATE.has(type(op)):
        given = errors_ignored(EVALUATE.find(type(op)), op, *map(data, arrays))
        for y, t in zip(op.as_results(given), types):  # what is made of it has the dtype in any case
            assert _is_of_width(y, t.dtype), f"{op}: result_type is {t}, evaluate gave numbers of {y.dtype}"


def _is_of_width(y: Any, dtype: Any) -> bool:
    """Whether the floats that a rule gives have the precision of a dtype; those of fewer bits may be rounded ones of
    32. A Python number has that of any.
    """
    if not (isinstance(y, np.ndarray | np.generic) and dtypes.is_inexact(y.dtype) and dtypes.is_inexact(dtype)):
        return True
    given, wanted = dtypes.to_real(y.dtype), dtypes.to_real(dtype)
    return given == wanted or (given == np.float32 and dtypes.itemsize_bits(wanted) < 32)


def joint(cases: Cases) -> tuple[Callable[..., list[list[Any]]], list[Any]]:
    """The results of each operation as one function of the operands of all, so that they are compiled once."""
    ends = list(itertools.accumulate([len(operands) for _, operands in cases]))

    def function(*xs: Any) -> list[list[Any]]:
        return [results(op, xs[start:end]) for (op, _), start, end in zip(cases, [0, *ends], ends)]

    return function, [x for _, operands in cases for x in operands]


def _compiled(cases: Cases) -> None:
    function, operands = joint(cases)
    for (op, xs), ys in zip(cases, jit(function)(*operands), strict=True):
        assert_rounded(ys, lambda *xs: results(op, xs), xs, xs, 1.0, f"{op} compiled, against NumPy")


def _differences(op: Operation, operands: Arrays) -> None:
    """The results of ``jvp`` are those of the operation, and the derivative equals the difference quotient, where each
    operand moves alone, and where all do, by a part of their size.

    The quotient is one of 64 bits, which the derivative in 32 bits is to equal too; of an operation that takes 32 bits
    alone it is one of these.
    """
    direction = tuple(map(_of_size, drawn_tangents(0, *operands), operands))
    every, smooth = list(range(len(operands))), [i for i, x in enumerate(operands) if is_smooth(x)]
    wide, wide_direction = list(map(widened, operands)), list(map(widened, direction))
    if not _takes_widened(op, operands, wide):
        wide, wide_direction = list(operands), list(direction)
    narrow, lacking = any([x.dtype in NARROW for x in wide]), []
    combinations = [*[[i] for i in smooth if len(smooth) > 1], every]  # alone first: that names the operand
    for moving in combinations:
        named = [i for i in moving if i in smooth] or every
        what = f"{op}: derivative by operand{'s' * (len(named) > 1)} {', '.join(map(str, named))}"
        y, exact = _along(op, wide, wide_direction, moving)
        for value, own in zip(y, results(op, wide), strict=True):
            assert_close(value, own, what=f"{op}: the result of jvp")
        along = lambda d, moving=moving: _smooth_results(op, wide, wide_direction, moving, d)
        try:
            assert_quotients([dx for dx, value in zip(exact, y) if is_smooth(value)], along, what, narrow)
        except Inapplicable as reason:  # perhaps of this operand alone
            lacking.append(reason)
        if any(x.dtype != y.dtype for x, y in zip(operands, wide)):
            for value, tangent, expected in zip(*_along(op, operands, direction, moving), exact):
                if is_smooth(value):
                    assert tangent.dtype == value.dtype, f"{what}: the tangent of {value.dtype} is {tangent.dtype}"
                    assert_close(tangent, data(expected).astype(value.dtype), 10.0, f"{what} in 32 bits")
    if len(lacking) == len(combinations):
        raise lacking[-1]


def _of_size(tangent: Any, x: Any) -> Any:
    """A tangent of an operand relative to its elements, where these are above 1, as their rounding is."""
    if not is_smooth(x):
        return tangent
    return (tangent * np.maximum(1, np.abs(np.where(np.isfinite(x), x, 1)))).astype(x.dtype)


def _smooth_results(
    op: Operation, operands: Sequence[Any], direction: Sequence[Any], moving: Sequence[int], distance: float
) -> list[Array]:
    """The results that have derivatives where the operands of these numbers are so far along a direction."""
    moves = lambda i: i in moving and is_smooth(operands[i])
    moved = [np.asarray(x + distance * direction[i]) if moves(i) else x for i, x in enumerate(operands)]
    return [y for y in results(op, moved) if is_smooth(y)]


def _narrow_derivatives(op: Operation, operands: Arrays) -> None:
    """The derivatives in 16 bits, forwards and backwards, are those in 64, rounded."""
    f, wide = lambda *xs: results(op, xs), list(map(widened, operands))
    if not _takes_widened(op, operands, wide):
        raise Inapplicable("it takes no operands of 64 bits, of which the derivative is known better")

    direction = drawn_tangents(0, *operands)
    y, tangents = jvp(f, tuple(operands), direction)
    forwards = lambda *xs: jvp(f, xs, tuple(map(widened, direction)))[1]
    assert_rounded(tangents, forwards, wide, operands, 10.0, f"{op}: the tangent in 16 bits")
    if not {"transpose", "adjoint"} & set(op.exempt):
        cts = [*drawn_tangents(6, *y)]
        backwards = lambda *xs: vjp(f, *xs)[1](list(map(widened, cts)))
        assert_rounded(vjp(f, *operands)[1](cts), backwards, wide, operands, 10.0, f"{op}: the cotangent in 16 bits")


def _takes_widened(op: Operation, operands: Arrays, wide: Arrays) -> bool:
    """Whether the operation takes the operands in 64 bits, if they are others; one with bodies has these typed."""
    changed = [y.dtype for x, y in zip(operands, wide) if x.dtype != y.dtype]
    if changed and op.bodied:
        return False
    declared = op.dtypes is None or all([dtype in op.dtypes for dtype in changed])
    return not changed or (declared and Operands.refusal(op, [as_array(x).type for x in wide]) is None)


def _along(op: Operation, operands: Sequence[Any], direction: Sequence[Any], moving: Sequence[int]) -> Any:
    """The results, and their tangents where the operands of these numbers move in a direction."""
    place = {i: k for k, i in enumerate(moving)}
    f = lambda *xs: results(op, [xs[place[i]] if i in place else x for i, x in enumerate(operands)])
    return jvp(f, tuple([operands[i] for i in moving]), tuple([direction[i] for i in moving]))


def _tangent_types(op: Operation, operands: Arrays) -> None:
    """Tangents have the type of their primal, and cotangents that of their operand; float0 for what has none."""

    def check(of: str, given: Sequence[Any], tangents: Sequence[Any]) -> None:
        for x, dx in zip(given, tangents):
            t = as_array(x).type
            wanted = (t.shape, dtypes.tangent_dtype(t.dtype))
            assert (dx.shape, dx.dtype) == wanted, f"{op}: the {of} of {t} is {dx.dtype}{dx.shape}"

    direction = drawn_tangents(5, *operands)
    y, dy = jvp(lambda *xs: results(op, xs), tuple(operands), direction)
    check("tangent", y, dy)
    tiny = any(x.dtype in dtypes.ANY_INEXACT - dtypes.INEXACT for x in operands)  # 8-bit floats are not summed
    if not tiny and not {"transpose", "adjoint"} & set(op.exempt):
        _, pull = vjp(lambda *xs: results(op, xs), *operands)
        check("cotangent", operands, pull([*drawn_tangents(6, *y)]))


def _adjoint(op: Operation, operands: Arrays) -> None:
    """<u, Jv> = <J^T u, v>, for u and -u, which are 0 where Jv is not finite: there the operation has no derivative."""
    direction = drawn_tangents(1, *operands)
    y, push = linearize(lambda *xs: results(op, xs), *operands)
    _, pull = vjp(lambda *xs: results(op, xs), *operands)
    tangents = push(*direction)
    cts = [np.asarray(np.where(np.isfinite(data(dy)), u, 0), u.dtype) if is_smooth(u) else u
           for u, dy in zip(drawn_tangents(2, *y), tangents)]
    traced = make_program(lambda *cts: pull([*cts]))(*cts)  # as jit does, where the values of cotangents are not known
    tolerance = 1e-5 if any(x.dtype in NARROW for x in [*operands, *map(data, y)]) else 1e-9
    for us in (cts, [np.asarray(-u) if is_smooth(u) else u for u in cts]):
        left = pairing_terms(us, tangents)
        right = pairing_terms(direction, interpret(traced, [*map(as_array, us)]))
        if not left.size and not right.size:
            raise Inapplicable("no derivative is finite")
        size = max(np.abs(left).sum(), np.abs(right).sum())
        told = f"{op}: <u, Jv> = {left.sum()}, <J^T u, v> = {right.sum()}"
        assert abs(left.sum() - right.sum()) <= tolerance * size, told


def _symmetric(op: Operation, operands: Arrays) -> None:
    """D^2 f (u, v) = D^2 f (v, u)."""
    f = lambda *xs: [y for y in results(op, xs) if is_smooth(y)]
    u, v = (drawn_tangents(seed, *operands) for seed in (7, 8))
    along = lambda a, b: jvp(lambda *xs: jvp(f, xs, a)[1], tuple(operands), b)[1]
    for k, (left, right) in enumerate(zip(along(u, v), along(v, u))):
        assert_close(left, right, 100.0, f"{op}: the second derivative of result {k} along (u, v) and along (v, u)")


LANE_COUNT = 4  # no axis of operands that are drawn is as long, but for one of a product: a wrong dimension shows


def of_one_type(draws: Sequence[Arrays]) -> list[list[Arrays]]:
    """The draws by the dtypes and shapes of their operands."""
    groups: dict[Any, list[Arrays]] = {}
    for operands in draws:
        groups.setdefault(tuple([(x.dtype, x.shape) for x in operands]), []).append(operands)
    return list(groups.values())


def _lanes(op: Operation, draws: Sequence[Arrays]) -> None:
    """``vmap`` of lanes that are draws of one type; where there are too few, with other operands made of the first.

    Types of the same shapes take turns, in which each operand is mapped along each of its dimensions.

    Raises: Inapplicable: an operand is the same in all lanes, so that it does not show which lane a rule takes.
    """
    same: dict[int, bool] = {}
    alike: dict[tuple[Shape, ...], list[list[Arrays]]] = {}
    for group in of_one_type(draws):
        alike.setdefault(tuple([x.shape for x in group[0]]), []).append(group)
    for shapes, groups in alike.items():
        for turn in range(max([len(groups), *[len(shape) + 1 for shape in shapes]])):
            group = groups[turn % len(groups)]
            rng = np.random.default_rng([3, zlib.crc32(str(shapes).encode())])
            for start in range(0, len(group), LANE_COUNT):
                lanes = group[start : start + LANE_COUNT]
                lanes = [*lanes, *[_other_operands(op, lanes[0], rng) for _ in range(LANE_COUNT - len(lanes))]]
                _mapped(op, lanes, turn, rng)
                for i, xs in enumerate(zip(*lanes)):
                    if xs[0].size:
                        same[i] = same.get(i, True) and len({data(x).tobytes() for x in xs}) == 1
    if any(same.values()):
        number = next(i for i, yes in same.items() if yes)
        raise Inapplicable(f"operand {number} is the same in all lanes: there must be draws in which it differs")


def _mapped(op: Operation, lanes: Sequence[Arrays], turn: int, rng: np.random.Generator) -> None:
    """``vmap`` over every subset of the operands, each along the next dimension in turn, against a loop over lanes.

    Single operands come first, so that an error names the one that is mapped. Of more than four operands, over one,
    over all but one, and over all.
    """
    operands = lanes[0]
    for mapped in sorted(itertools.product((True, False), repeat=len(operands)), key=sum):
        if not any(mapped) or (len(mapped) > 4 and 1 < sum(mapped) < len(mapped) - 1):
            continue
        firsts = [int(rng.integers(x.ndim + 1)) for x in operands]
        axes = [(k + turn) % (x.ndim + 1) if yes else None for k, x, yes in zip(firsts, operands, mapped)]
        stacked = [x if axis is None else _stacked(column, axis) for x, column, axis in zip(
            operands, zip(*lanes), axes)]
        mapped_results = vmap(lambda *xs: results(op, xs), in_axes=tuple(axes))(*stacked)
        for y in mapped_results:
            assert y.shape[:1] == (len(lanes),), f"{op} under vmap{tuple(axes)} of {len(lanes)} lanes gives {y.type}"
        for lane in range(len(lanes)):
            own = [x if a is None else _lane(x, lane, a) for x, a in zip(stacked, axes)]
            for y, expected in zip(mapped_results, results(op, own)):
                _assert_lane(np.asarray(data(y)[lane]), expected, f"{op} under vmap{tuple(axes)}", lane, own, mapped)


def _assert_lane(y: Any, expected: Any, what: str, lane: int, operands: Arrays, mapped: Sequence[bool]) -> None:
    """Assert that a result is that of a lane alone; the message has the lane and its operands."""
    try:
        assert_close(y, expected, what=f"{what}, lane {lane}")
    except AssertionError as error:
        of = [f"lane {lane}" if yes else "all lanes" for yes in mapped]
        lines = [f"operand {i} of {of[i]}: {described(x)}" for i, x in enumerate(operands)]
        raise AssertionError("\n".join([str(error), *lines])) from None


def described(x: Any) -> str:
    """The type and the elements of an operand, of a large one a part."""
    return f"{as_array(x).type} {brief(data(x))}"


NO_ROWS = "no operand has a first axis of two elements at least whose length no other axis has"


def ragged_size(operands: Sequence[Any]) -> int | None:
    """The length that may differ from lane to lane, of arrays or types, that of first axes alone. None: ``NO_ROWS``."""
    inner = {n for x in operands for n in x.shape[1:]}
    sizes = [x.shape[0] for x in operands if x.shape and x.shape[0] > 1 and x.shape[0] not in inner]
    return sizes[0] if sizes and not any([dtypes.is_extended(x.dtype) for x in operands]) else None


UNCROSSED = (CannotCross, ShapeMismatch, ConcretizationError, BadIndex)


def _ragged(op: Operation, operands: Arrays) -> None:
    """``vmap`` over lanes whose first axes have lengths of their own, known ones and values, equals each lane alone."""
    size = ragged_size(operands)
    if size is None:
        raise Inapplicable(NO_ROWS)
    lengths, numbers = (size, 1, size - 1), [i for i, x in enumerate(operands) if x.shape[:1] == (size,)]
    with_rows = lambda rows: [rows[numbers.index(i)] if i in numbers else x for i, x in enumerate(operands)]
    lanes = [[operands[i][-n:] for i in numbers] for n in lengths]
    packed = [np.concatenate(column) for column in zip(*lanes)]
    try:
        expected = [results(op, with_rows(rows)) for rows in lanes]
    except HandlaxError as error:
        raise Inapplicable(str(error).partition("\n")[0]) from error
    axes = [0 if y.shape == z.shape else ragged_axis for y, z in zip(*expected[:2])]

    def typed(rows: Any) -> list[Any]:
        xs = list(map(as_array, with_rows(rows)))
        types, ys = op.as_results(op.result_type(*[x.type for x in xs])), results(op, xs)
        for y, wanted in zip(ys, types, strict=True):
            assert y.type.shape == wanted.shape, f"{op} in lanes of lengths: the type is {y.type}, expected {wanted}"
        return ys

    mapped = vmap(typed, in_axes=(ragged_axis,), out_axes=axes)
    try:
        both = [mapped(Ragged(packed, *given)) for given in ((lengths,), (np.array(lengths, np.int32), size))]
    except UNCROSSED as error:  # by a rule, or as lengths of lanes decide what is computed
        raise Inapplicable(str(error).partition("\n")[0]) from error
    for results_of_all in both:
        for k, y in enumerate(results_of_all):
            for lane, part in enumerate(y if axes[k] == 0 else y.to_list()):
                own, are_rows = with_rows(lanes[lane]), [i in numbers for i in range(len(operands))]
                _assert_lane(part, expected[lane][k], f"{op} in lanes of lengths {lengths}", lane, own, are_rows)


def _decomposes(op: Operation, operands: Arrays) -> None:
    """The decomposition gives the results, of their types."""
    arrays = [as_array(x) for x in operands]
    decomposed = op.as_results(DECOMPOSE.find(type(op))(op, *arrays))
    for y, z in zip(map(as_array, decomposed), results(op, arrays), strict=True):
        assert y.type == z.type, f"{op} decomposed: the type is {y.type}, expected {z.type}"
        assert_close(y, z, what=f"{op} decomposed")


def _other_operands(op: Operation, operands: Arrays, rng: np.random.Generator) -> Arrays:
    """Operands of the same types: their elements permuted; if the operation refuses these, scaled; else themselves."""
    for change in (_permuted, _scaled):
        changed = [change(x, rng) for x in operands]
        try:
            results(op, changed)
        except Exception:  # evaluate's own, of any kind: of a matrix that is not positive definite, say
            continue
        return changed
    return operands


def _permuted(x: Any, rng: np.random.Generator) -> Any:
    """An operand with its elements in another order; keys and booleans of rank 0 are others; equal floats scaled."""
    if isinstance(x, Array):
        return random_wrap(rng.integers(0, 2**32, data(x).shape, np.uint32))
    if x.ndim == 0 and dtypes.is_bool(x.dtype):
        return np.asarray(~x)
    permuted = np.asarray(rng.permutation(x.reshape(-1))).reshape(x.shape)
    return _scaled(x, rng) if np.array_equal(permuted, x) else permuted


def _scaled(x: Any, rng: np.random.Generator) -> Any:
    """A float operand times a number; another one as it is."""
    return np.asarray(x * x.dtype.type(rng.uniform(0.5, 1.0))) if dtypes.is_inexact(x.dtype) else x


def _stacked(lanes: Sequence[Any], axis: int) -> Any:
    return random_wrap(np.stack(list(map(data, lanes)), axis)) if isinstance(lanes[0], Array) else np.stack(lanes, axis)


def _lane(x: Any, lane: int, axis: int) -> Any:
    return random_wrap(np.take(data(x), lane, axis)) if isinstance(x, Array) else np.asarray(np.take(x, lane, axis))


def _commutes(cases: Cases) -> None:
    """jit(jvp f) = jit(jvp(jit f)) = jvp f = one lane of vmap(jvp f); jit(vmap f) = jit(vmap(jit f)) = vmap f.

    All of the compiled ones are one program, in which XLA compiles once what is equal.
    """
    f, operands = joint(cases)
    direction = drawn_tangents(4, *operands)
    smooth = [i for i, d in enumerate(direction) if d.dtype != dtypes.float0]
    moving = tuple(direction[i] for i in smooth)

    def derivative(g: Any, *inputs: Any) -> Any:
        xs, dxs = inputs[: len(operands)], list(direction)
        for i, dx in zip(smooth, inputs[len(operands) :]):
            dxs[i] = dx
        tangents = jvp(g, tuple(xs), tuple(dxs))[1]
        return [[part for part in parts if part.dtype != dtypes.float0] for parts in tangents]

    def everything(inputs: Any, lanes: Any) -> Any:
        return [derivative(g, *inputs) for g in (f, jit(f))], [vmap(g)(*lanes) for g in (f, jit(f))]

    inputs = (*operands, *moving)
    lanes, directions = ([_stacked([x, x], 0) for x in xs] for xs in (operands, moving))
    mapped = vmap(lambda *inputs: derivative(f, *inputs))(*lanes, *directions)
    derivatives, batches = jit(everything)(inputs, lanes)
    expected = derivative(f, *inputs)
    for found in (*derivatives, [[part[1] for part in parts] for parts in mapped]):
        _assert_all_close(cases, found, expected, 100.0, "jvp with jit and vmap")
    for found in batches:
        _assert_all_close(cases, found, vmap(f)(*lanes), 1.0, "jit with vmap")


def _assert_all_close(cases: Cases, found: Any, expected: Any, loose: float, what: str) -> None:
    """Assert that the results of each operation are close to those expected."""
    for (op, _), ys, zs in zip(cases, found, expected, strict=True):
        for y, z in zip(ys, zs, strict=True):
            assert_close(y, z, loose, f"{op}: {what}")


def joined_results(parts: Any, unknown: Sequence[bool], inputs: Sequence[Any]) -> list[Any]:
    """The results of a program, from those of its known part and, with residuals, of its unknown part."""
    known = [x for x, yes in zip(inputs, unknown) if not yes]
    known_results = interpret(parts.known, known)
    residuals = parts.residual_values(known, known_results)
    unknown_results = interpret(parts.rest, [*residuals, *[x for x, yes in zip(inputs, unknown) if yes]])
    left, right = iter(known_results), iter(unknown_results)
    return [next(right) if yes else next(left) for yes in parts.unknown]


def _partition(op: Operation, operands: Arrays) -> None:
    """For every choice of unknown operands, the known and the unknown part of the program compute the results."""
    arrays = [as_array(x) for x in operands]
    program = record(lambda *xs: results(op, xs), [x.type for x in arrays])
    expected = results(op, arrays)
    for unknown in itertools.product((True, False), repeat=len(arrays)):
        actual = joined_results(partial_eval_program(program, unknown), unknown, arrays)
        for y, z in zip(actual, expected, strict=True):
            assert_close(y, z, 1.0, f"{op} partitioned at {unknown}")


def _sharded(cases: Cases) -> None:
    """Of operands cut over two devices the results are the same, and lie there as their types state."""
    if not any([SHARDING_RULE.complete().cell(type(op)) is not None for op, _ in cases]):
        raise Inapplicable("it has no sharding rule")
    devices = LaterLayers.devices(None)[:2]
    if len(devices) < 2:
        raise Inapplicable("there is one device")
    mesh = Mesh(np.array(devices), ("cut",), (AxisType.Explicit,))
    whole = [(op, operands, cut) for op, operands in cases for cut in _cut_operands(op, operands, mesh)]
    if not whole:
        raise Inapplicable("no operand can be cut")
    function, cut_operands = joint([(op, cut) for op, _, cut in whole])
    for (op, operands, _), ys in zip(whole, jit(function)(*cut_operands), strict=True):
        for y, z in zip(ys, results(op, operands), strict=True):
            assert_close(y, z, 10.0, f"{op} of cut operands")
            stated = tuple(y.type.sharding.spec) if y.type.cut is not None else (None,) * y.ndim
            lies = (*y.sharding.spec, *[None] * (y.ndim - len(y.sharding.spec)))
            assert lies == stated, f"{op}: the result lies as {lies}, its type is {y.type}"


def _cut_operands(op: Operation, operands: Arrays, mesh: Mesh) -> list[list[Any]]:
    """The operands cut along one dimension, of one of them and of all, in each way that the operation takes."""
    ways: set[tuple[int | None, int]] = {(i, d) for i, x in enumerate(operands) for d in range(x.ndim)}
    ways |= {(None, d) for _, d in ways}
    found = []
    for only, d in sorted(ways, key=str):
        along = NamedSharding(mesh, cut_along(d, "cut"))
        chosen = [only in (i, None) and x.ndim > d and x.shape[d] % 2 == 0 < x.shape[d] for i, x in enumerate(operands)]
        if any(chosen):
            cut = [device_put(x, along) if yes else as_array(x) for x, yes in zip(operands, chosen)]
            try:
                result_type(op, tuple([x.type for x in cut]))
            except ShardingTypeError:
                continue
            found.append(cut)
    return found


def assert_preserved(program: Program, pickled: bool = True) -> None:
    """Assert that printing and parsing, pickling and type checking give the program again."""
    parsed = parse_program(str(program), program.consts).unwrap()
    assert parsed == program, program.diff(parsed)
    assert not pickled or pickle.loads(pickle.dumps(program)) == program
    assert typecheck(program) is program


def _text(op: Operation, operands: Arrays) -> None:
    """The operation's program is the same after printing and parsing, after pickling, and after type checking."""
    program = record(lambda *xs: results(op, xs), [as_array(x).type for x in operands])
    kind = type(op)  # pickle finds a class by its name in a module
    assert_preserved(program, getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind)


def each(check: Callable[[Operation, Arrays], None]) -> Callable[[Operation, Sequence[Arrays]], None]:
    """The check of all draws that applies ``check`` to each draw.

    Raises: Inapplicable: it applies to none.
    """

    def check_all(op: Operation, draws: Sequence[Arrays]) -> None:
        reasons = []
        for operands in draws:
            try:
                check(op, operands)
            except Inapplicable as reason:
                reasons.append(str(reason))
        if len(reasons) == len(draws):
            raise Inapplicable(next(iter(reasons), "there are no operands"))

    return check_all


class Together:
    """The check of all draws that applies ``of_cases`` to them at once, as it does to draws of several operations."""

    def __init__(self, of_cases: Callable[[Cases], None]):
        self.of_cases = of_cases

    def __call__(self, op: Operation, draws: Sequence[Arrays]) -> None:
        self.of_cases([(op, operands) for operands in draws])


def smoothly(check: Callable[[Operation, Arrays], None]) -> Callable[[Operation, Arrays], None]:
    """``check``, but it raises ``Inapplicable`` where no result is real or complex, so that none has a derivative."""

    def check_smooth(op: Operation, operands: Arrays) -> None:
        types = op.as_results(op.result_type(*[as_array(x).type for x in operands]))
        if not any([dtypes.is_inexact(t.dtype) for t in types]):
            raise Inapplicable("no result is real or complex")
        check(op, operands)

    return check_smooth


OPERATION_LAWS = (
    Law("typing", "evaluate gives what result_type says, and writes to no operand", each(_types), rules=("evaluate",)),
    Law("compiled", "evaluate by NumPy equals what is compiled by lower or decompose", Together(_compiled),
        wants=("extremes",), rules=("evaluate", "lower", "decompose")),
    Law("decomposition", "decompose equals evaluate", each(_decomposes), wants=("extremes",),
        needs=("decompose",), rules=("decompose", "evaluate")),
    Law("finite_differences", "jvp gives the result, and the difference quotient of it", each(smoothly(_differences)),
        ("jvp", "reals"), rules=("jvp",)),
    Law("narrow_derivatives", "derivatives in 16 bits equal those in 64, rounded",
        each(smoothly(_narrow_derivatives)), ("jvp", "halves"), rules=("jvp", "transpose")),
    Law("tangent_types", "a tangent is of the type of its primal, a cotangent of that of its operand",
        each(_tangent_types), ("jvp",), rules=("jvp", "transpose")),
    Law("adjoint", "transpose is the adjoint of jvp: <u, Jv> = <J^T u, v>", each(smoothly(_adjoint)),
        ("transpose", "jvp", "reals"), rules=("transpose", "jvp")),
    Law("symmetric", "second derivatives are symmetric", each(smoothly(_symmetric)), ("jvp", "reals"), rules=("jvp",)),
    Law("vmap", "vmap, which calls batch, equals the loop over lanes", _lanes, wants=("lanes",), rules=("batch",)),
    Law("ragged", "vmap equals the loop over lanes that have lengths of their own", each(_ragged), ("ragged", "rows"),
        rules=("ragged",)),
    Law("commutes", "jit, jvp and vmap commute", Together(_commutes), ("jvp", "reals"),
        rules=("jvp", "batch", "lower", "decompose")),
    Law("partial_eval", "it gives the same where some operands are known before the others", each(_partition)),
    Law("sharding", "results of operands cut over devices are the same, and lie as their types state",
        Together(_sharded), rules=("sharding_rule", "lower", "decompose")),
    Law("text", "print and parse, pickle and typecheck preserve the program", each(_text)),
)
"""The laws of an operation, in the order in which they are checked."""
