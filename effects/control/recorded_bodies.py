"""Functions recorded as bodies of branches and loops, with result and carry types that agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..base.errors import CannotCross, DTypeMismatch, ShardingTypeError, StateTypeError, TreeMismatch
from ..base.source_locations import user_site
from ..base.stack import inside, perform
from ..core.arrays import Array, ConcreteArray, as_array, scalar
from ..core.named_axes import Axis, SizedAxis, in_bodies_of, is_root
from ..operations.elementwise.conversion import ConvertElementType, as_type
from ..programs.equation_views import with_constants
from ..programs.higher_order import HigherOrder, record_body
from ..programs.program import Builder, Program, derived_once
from ..trees import pytrees
from ..trees.structure import at, difference
from ..types.array_type import ArrayType
from ..types.dtype_promotion import promote
from ..types.widths import NARROWER

Labels = Sequence[tuple[int, str]]
"""The place of each body among the arguments, and how a message names it; empty: the bodies have no names."""


class RecordedBody(NamedTuple):
    """The program recorded for a function of flat arrays, and the treedef of the tree which that function returned."""

    program: Program
    structure: Any


def body_of(name: str, f: Callable[..., Any], types: Sequence[ArrayType], label: str | None = None) -> RecordedBody:
    """The program of ``f``, recorded for flat arrays of ``types``, and the treedef of the tree that ``f`` returns.

    ``name``: of the program. ``label``: the function called with ``f``, for messages; by default ``name``.
    """
    structures: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        leaves, structure = pytrees.flatten(f(*xs))
        structures.append(structure)
        return [as_array(y) for y in leaves]

    return RecordedBody(record_body(flat, types, name, label), structures[0])


def perform_bodies(op: HigherOrder, *operands: Array) -> list[Array]:
    """The results of a control-flow operation; a result that all bodies pass on from an operand is that operand."""
    results = perform(op, *operands)
    sources = [op.forwards(i) for i in range(len(results))]
    return [y if source is None else operands[source] for y, source in zip(results, sources)]


def with_types(program: Program, types: Sequence[ArrayType]) -> Program:
    """The program with each result converted to its entry of ``types``, which has the same shape."""
    if program.out_types == tuple(types):
        return program

    def converted(*xs: Any) -> list[Any]:
        return [as_type(y, t) for y, t in zip(program(*xs), types)]

    return record_body(converted, program.in_types, program.name)


def with_recorded_constants(where: str, program: Program, consts: Sequence[Any]) -> Program:
    """A program with these constants, weak where it was recorded with weak ones: code that hands them on as types or
    through other functions makes them strong. ``where`` names the function in errors.

    Raises: BadArgument: there is another number of constants, or one has another shape or dtype.
    """
    values = [as_array(x) for x in consts]
    if [(x.type.shape, x.type.dtype) for x in values] == [(c.type.shape, c.type.dtype) for c in program.consts]:
        values = [as_type(x, c.type) for x, c in zip(values, program.consts)]
    result: Program = with_constants(where, program, values)
    return result


def diverging(programs: Sequence[Program], varying: frozenset[SizedAxis]) -> list[Program]:
    """The programs, and those inside, recorded again with inputs and results varying along the mesh axes ``varying``.

    These are the axes of the value by which each device of a mesh chooses a branch, or whether to iterate once more.
    So all that depends on an input varies along them, and no derivative has a sum over their devices inside.
    """
    return [_diverging(program, varying) for program in programs] if varying else list(programs)


@derived_once
def _diverging(program: Program, varying: frozenset[SizedAxis]) -> Program:
    in_types = [t.along(t.varying | varying) for t in program.in_types]
    if in_types != [*program.in_types]:  # else all that depends on an input varies already
        ops = [_with_diverging_bodies(op, varying) if op.bodied else op for op in program.ops]
        parts = (program.args, program.types, program.outs, program.consts, program.sites, program.name)
        program = record_body(Program(program.in_types, ops, *parts), in_types, program.name)
    return with_types(program, [t.along(t.varying | varying) for t in program.out_types])


def _with_diverging_bodies(op: Any, varying: frozenset[SizedAxis]) -> Any:
    with inside(in_bodies_of(op)):
        return op.map_bodies(lambda body: _diverging(body, varying))


def need_all_devices(name: str, programs: Sequence[Program], varying: frozenset[SizedAxis]) -> None:
    """Check that no device waits forever in a collective inside branches, or a loop, that devices choose differently.

    ``varying``: the mesh axes of the value by which each device chooses a program.

    Raises: CannotCross: a program has a collective over one of these axes.
    """
    if not varying:
        return
    met = {at.axis for program in programs for at in meetings(program)}
    stuck = sorted([str(name) for name, _ in met & varying])
    if stuck:
        along = ", ".join(sorted([str(name) for name, _ in varying]))
        raise CannotCross(
            f"{name}: devices choose by a value that varies along {along}, and meet along {', '.join(stuck)} inside.",
            hint="compute the collective outside, or choose by the same value on all of them: pmax(test, axis).",
        )


def need_one_choice(
    name: str, choice: ArrayType, operands: Sequence[ArrayType], results: Sequence[ArrayType]
) -> None:
    """Check that all devices choose alike what they do with summands, of which only the sum is a value, and which
    copies of one value they give.

    ``choice``: the type of the value by which each device chooses.

    Raises: ShardingTypeError: it varies along an axis along which an operand is unreduced or a result is reduced.
    """
    if not choice.varying:
        return
    parts = [*[t.mat.unreduced for t in operands], *[t.mat.reduced for t in results]]
    along = choice.mat.varying.intersection(frozenset().union(*parts))
    if along:
        names = ", ".join(sorted(map(str, along)))
        raise ShardingTypeError(
            f"{name}: devices that take summands or give copies along {names} must choose alike, got a choice of type "
            f"{choice}.",
            hint="choose by the same value on all of them: pmax(test, axis); or lax.psum the summands before.",
        )


class Meeting(NamedTuple):
    """An axis of a collective; ``by_all``: the devices of the whole mesh, not of this axis alone, must reach it.

    ``tracked``: types tell which values vary along the axis, so that all its devices reach the collective.
    """

    axis: SizedAxis
    by_all: bool
    tracked: bool


@derived_once
def meetings(program: Program) -> frozenset[Meeting]:
    """The axes of the collectives in a program and its sub-programs on which a result or an effect depends, without the
    axes that are bound inside it. Others are not executed.
    """
    met: frozenset[Meeting] = frozenset()
    live = {*program.outs}
    for op, args, results, _ in reversed([*program.steps()]) if program.effects else ():
        if live.isdisjoint(results) and not is_root(op):
            continue
        live.update(args)
        if op.named and op.meets:  # type: ignore[attr-defined]
            known = frozenset[SizedAxis]().union(*[program.type_of(n).varying for n in args])
            axes: Any = op.axes  # type: ignore[attr-defined]
            met |= frozenset([Meeting(axis, op.meets_all, axis in known) for axis in axes])  # type: ignore[attr-defined]
        elif op.bodied and op.effects:
            inner = met.union(*[meetings(body) for body in op.bodies])  # type: ignore[attr-defined]
            met |= frozenset([meeting for meeting in inner if Axis(meeting.axis[0]) in op.effects])
    return met


def may_part(programs: Iterable[Program]) -> bool:
    """Whether some of those that meet in one of these branches may be in another one: types do not tell that they
    choose alike.
    """
    return any([not at.tracked for program in programs for at in meetings(program)])


def same_results(name: str, bodies: Sequence[RecordedBody], order: Sequence[int]) -> list[Program]:
    """The programs of branches with equal result types: weakly typed results are converted to the others' types.

    ``order``: the place of each branch among the arguments, for messages.

    Raises: TreeMismatch: the branches return different trees. StateTypeError: their types differ in more than weakness.
    """
    labels = [(place, f" from {body.program.name}") for place, body in zip(order, bodies)]
    same_structure(name, "branches", [body.structure for body in bodies], labels)
    types = row_types(name, "branches", bodies[0].structure, [body.program.out_types for body in bodies], labels)
    return [with_types(body.program, types) for body in bodies]


def same_structure(name: str, what: str, structures: Sequence[Any], labels: Labels = ()) -> None:
    """Check that all ``structures`` are equal: the treedefs of the results of branches or iterations, named ``what``.

    Raises: TreeMismatch: two differ; the message has the path of the first difference.
    """
    first = structures[0]
    for i, other in enumerate(structures):
        if other != first:
            one, two, where = difference(first, other)
            raise TreeMismatch(
                f"{name}: all {what} must give trees of one structure, got {_both(one, two, labels, i)}{where}.",
                hint="return the same tree of containers each time; None is an empty one.",
            )


def _both(first: Any, other: Any, labels: Labels, i: int) -> str:
    """What the first body and body ``i`` give, in the order of the arguments, each with its label."""
    if not labels:
        return f"{first} and {other}"
    (_, one), (_, two) = sorted([(labels[0][0], f"{first}{labels[0][1]}"), (labels[i][0], f"{other}{labels[i][1]}")])
    return f"{one} and {two}"


def row_types(
    name: str, what: str, structure: Any, rows: Sequence[Sequence[ArrayType]], labels: Labels = ()
) -> list[ArrayType]:
    """The common type of each result, where ``rows`` has the result types of every branch or iteration.

    Raises: StateTypeError: the types of a result differ in shape, or in a dtype that is not weak.
    """
    return [_common(name, what, structure, i, column, labels) for i, column in enumerate(zip(*rows))]


def _common(
    name: str, what: str, structure: Any, i: int, types: Sequence[ArrayType], labels: Labels
) -> ArrayType:
    """The common type of result ``i`` of all branches: weak types are promoted to the dtype of the others.

    Of equal dtypes, the first type decides weakness. The common type varies along every mesh axis along which one of
    ``types`` varies.
    """
    common = types[0].along(types[0].varying.union(*[t.varying for t in types]))
    for number, t in enumerate(types):
        alike = t.cut == common.cut and t.memory_space is common.memory_space
        if alike and t.dtype == common.dtype and t.shape == common.shape:
            continue
        both = common_type(common, t.along(common.varying))
        if both is None:
            raise StateTypeError(
                f"{name}: all {what} must give the same types, got {_both(common, t, labels, number)}"
                f"{at_path(structure, i)}.",
                hint="convert with astype, broadcast, hx.reshard or hx.device_put in one of them.",
            )
        common = both
    return common


def common_type(one: ArrayType, other: ArrayType) -> ArrayType | None:
    """The type that both become where at most weak types become strong or are promoted; None if there is none."""
    if one.cut != other.cut:
        one, other = hidden_alike(one, other)
    if one.cut != other.cut or one.memory_space is not other.memory_space:
        return None
    if one == other:
        return one
    strong, weak = (one, other) if other.weak else (other, one)
    if one.shape != other.shape or not weak.weak or not (strong.weak or absorbs(strong, weak)):
        return None
    dtype, stays_weak = promote(one.dtype, one.weak, other.dtype, other.weak)
    return one.update(dtype=dtype, weak=stays_weak)


def hidden_alike(one: ArrayType, other: ArrayType) -> tuple[ArrayType, ArrayType]:
    """Both types, with the cut of the hidden one where one is hidden."""
    hidden = [t.cut for t in (one, other) if t.cut is not None and t.cut.hides]
    return (one.cut_by(hidden[0]), other.cut_by(hidden[0])) if hidden else (one, other)


def absorbs(strong: ArrayType, weak: ArrayType) -> bool:
    """Whether ``strong`` and ``weak`` promote to the dtype of ``strong``: f32 and weak int do."""
    try:
        return promote(strong.dtype, strong.weak, weak.dtype, True)[0] == strong.dtype
    except DTypeMismatch:  # keys and numbers have no common dtype
        return False


def at_path(structure: Any, i: int, below: int = 0) -> str:
    """The path of leaf ``i`` without its first ``below`` keys, as `` at ['key']``; empty for an empty path."""
    return at([*pytrees.leaf_paths(structure)][i][below:])


def initial_carry(x: Array, type: ArrayType) -> Array:
    """The initial carry ``x`` of a loop, converted to ``type``; a constant scalar is converted without an operation."""
    if x.type is type:
        return x
    if isinstance(x, ConcreteArray) and not x.type.shape and not type.varying:
        return scalar(x.item(), type.dtype, type.weak)
    return as_type(x, type)


def stable_carry(
    name: str,
    trace: Callable[[Sequence[ArrayType]], RecordedBody],
    structure: Any,
    types: Sequence[ArrayType],
    below: int = 0,
) -> tuple[RecordedBody, list[ArrayType], list[ArrayType]]:
    """Record the body of a loop for carry types at which it keeps shapes and dtypes: a fixed point of promotion.

    Gives the body, the types of the carry as operands of the loop, and its types as results; the two lists differ at
    most in weakness. Where the body promotes the dtype of a weakly typed carry, the body is recorded again for the
    promoted dtype.

    Args:
        trace: ``trace(types)`` records the body for a carry of these types; the carry is the first of its results.
        structure: the treedef of the carry; messages omit the first ``below`` keys of its paths.

    Raises: StateTypeError: the body changes a shape, or a dtype that is not weak.
    """
    types = list(types)
    while True:
        body = trace(types)
        results = list(body.program.out_types[: len(types)])
        following = next_carry(name, structure, types, results, below)
        if following == types:
            results = [y.along(t.varying) for y, t in zip(results, types)]
            program = with_types(body.program, [*results, *body.program.out_types[len(types) :]])
            return body._replace(program=program), types, results
        types = following


def next_carry(
    name: str, structure: Any, types: Sequence[ArrayType], results: Sequence[ArrayType], below: int = 0
) -> list[ArrayType]:
    """The carry types for which to record a loop's body next, after it mapped a carry of ``types`` to ``results``.

    Equal to ``types`` where these are a fixed point; otherwise weak dtypes are promoted, and mesh axes added along
    which a result varies.

    Raises: StateTypeError: the body changes a shape, or a dtype that is not weak.
    """
    return [_next(name, structure, i, t, y, below) for i, (t, y) in enumerate(zip(types, results))]


def _next(name: str, structure: Any, i: int, t: ArrayType, result: ArrayType, below: int) -> ArrayType:
    if t.cut != result.cut and t.shape == result.shape:
        t, result = hidden_alike(t, result)
    if t.cut == result.cut and t.shape == result.shape and t.memory_space is result.memory_space:
        if result.dtype == t.dtype:
            return t.along(t.varying | result.varying)
        if t.weak and absorbs(result, t):
            return result.update(weak=False).along(t.varying | result.varying)
    where = at_path(structure, i, below)
    hint = "a loop cannot change the shape of what it carries."
    if result.shape == t.shape and result.cut != t.cut:
        hint = "hx.reshard(x, spec) cuts the start, or the result of the body, as the other is."
    elif result.memory_space is not t.memory_space:
        hint = f"hx.device_put(x, hx.memory.{t.memory_space}) moves the result of the body to where the start lies."
    elif result.shape == t.shape:
        hint = f"start from a value of type {result}, or convert in the body with astype."
        if NARROWER.get(result.dtype) == t.dtype:
            hint += " NumPy arrays of 64 bits keep them, unless hx.config.update('jax_enable_x64', False)."
    raise StateTypeError(
        f"{name}: the carry must keep its type, got {t} at the start and {result} after the body{where}.", hint=hint
    )


def with_carry_types(program: Program, inside: Sequence[ArrayType], outside: Sequence[ArrayType]) -> Program:
    """A loop's body or test, recorded for a carry of types ``inside``, as a program of a carry of types ``outside``.

    A carry whose two types differ is converted where the program uses it; a conversion of that carry back to its type
    outside is removed.
    """
    differ = {i: t for i, (t, other) in enumerate(zip(outside, inside)) if t != other}
    if not differ:
        return program
    builder = Builder()
    numbers = [builder.input(t) for t in (*outside, *program.in_types[len(outside) :])]
    converted: dict[int, int] = {}
    sites = list(program.sites)
    at_start = sites[0] if sites else user_site(2)

    def renumber(n: int) -> int:
        if n < 0:
            return builder.const(program.consts[-1 - n])
        if n in differ:
            if n not in converted:
                op = ConvertElementType(inside[n].dtype, inside[n].weak)
                converted[n] = builder.append(op, (numbers[n],), inside[n], at_start)
            return converted[n]
        return numbers[n]

    for op, args, result, site in zip(program.ops, program.args, program.types, sites):
        if isinstance(op, ConvertElementType) and differ.get(args[0]) == result:
            numbers.append(numbers[args[0]])  # the conversion back to the type outside
            continue
        first = builder.append(op, tuple(map(renumber, args)), result, site)
        numbers.extend(range(first, builder.count))
    return builder.freeze([renumber(n) for n in program.outs], program.name)


def same_carry(name: str, before: Any, after: Any, below: int = 0) -> None:
    """Check that a loop's body keeps the treedef of the carry; messages omit the first ``below`` keys of paths.

    Raises: TreeMismatch: ``before`` and ``after`` differ.
    """
    if before != after:
        one, two, where = difference(before, after, below)
        raise TreeMismatch(
            f"{name}: the carry must keep its structure, got {one} at the start and {two} after the body{where}.",
            hint="return the same tree of containers as the initial value; None is an empty one.",
        )


def shared_results(bodies: Sequence[Sequence[ArrayType]]) -> tuple[list[ArrayType], list[tuple[int, ...]]]:
    """Results for the values of every body, of which one is executed: as many of a type as one body has at most.

    Gives their types, and for each body the numbers of the results that its values are.
    """
    types: list[ArrayType] = []
    numbers_of: dict[ArrayType, list[int]] = {}
    positions = []
    for body in bodies:
        used: Counter[ArrayType] = Counter()
        own = []
        for t in body:
            numbers = numbers_of.setdefault(t, [])
            if used[t] == len(numbers):
                numbers.append(len(types))
                types.append(t)
            own.append(numbers[used[t]])
            used[t] += 1
        positions.append(tuple(own))
    return types, positions
