"""References: mutable cells, read and written by two effects that are discharged at the level that made the reference.

    ref = new_ref(x);  ref[i]  ==  value[i];  ref[i] = y  makes the value  value.at[i].set(y)

A reference belongs to the level of the handler stack that made it, and its cell holds a value of that level, boxes
included. Inner levels perform ``RefGet`` and ``RefSet``, so it crosses every operation and every transformation by the
law of effects: where an operation whose effect row has them reaches the level, the values enter its bodies as a carried
state, and the final ones are written back. The level of a reference that is made inside a transformation is a run of
``References``, which ends with the transformation; of any other reference it is the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, overload

from ...effects.base.errors import (
    BadCall,
    CannotCross,
    DeletedArray,
    DTypeMismatch,
    EscapedBox,
    NotAnArray,
    NotDifferentiable,
)
from ...effects.base.stack import BASE, STACK, Run, current, in_force, push
from ...effects.base.wrapping import context_variable
from ...effects.core.arrays import Array, as_array, concrete, type_of
from ...effects.core.named_axes import Axis
from ...effects.core.operation import Operation, effect
from ...effects.functions.unsupported import must_be_empty
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast, zeros
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.printer import WRITERS
from ...effects.types.array_type import ArrayType, OfArrayType
from ..core.body_transform import BodyTransformer, cross
from ..core.loop_rotation import rotate, rotate_within
from ..core.solver_state import cross_solver
from ..core.state_flow import StateFlow, StateLayout, TransformedBody

_NUMBERS = count()


def next_number() -> int:
    """The number of the next reference: later ones have greater numbers."""
    return next(_NUMBERS)


# the references that calls in progress were passed, in this thread or task: inside, they have another identity
LENT: ContextVar[frozenset[Ref]] = context_variable("handlax_lent", frozenset())


class Ref(OfArrayType):
    """A mutable cell that holds an array, as ``new_ref`` makes it; references are equal if they are the same object.

    ``ref[i]`` reads and ``ref[i] = y`` writes, with the indices of arrays; ``...`` is the whole value.
    """

    __slots__ = ("aval", "level", "cell", "number", "frozen", "argument", "__weakref__")
    aval: ArrayType
    level: Run
    cell: Any  # the value, if the level is the base

    def __init__(self, aval: ArrayType, level: Run, argument: bool = False):
        self.aval = aval
        self.level = level
        self.cell = None
        self.number = next_number()
        self.frozen = False
        self.argument = argument  # whether it stands for a caller's reference, which only the caller may freeze

    def __len__(self) -> int:
        return len(get(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(get(self))

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def addupdate(self, value: Any, index: Any = ...) -> None:
        """Add ``value`` to the elements at ``index``."""
        addupdate(self, index, value)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the current value on the device."""
        return int(get(self).unsafe_buffer_pointer())

    def __repr__(self) -> str:
        if self.frozen:
            return f"Ref({self.aval}, frozen)"
        value = self.cell if self.level is BASE else None
        return f"Ref({self.aval})" if value is None else repr(value).replace("Array(", "Ref(", 1)

    def __handlax_array__(self) -> Any:
        raise NotAnArray(
            f"ref: a reference {self.aval} is no array.",
            hint="ref[...] is its present value; bodies of loops and branches may close over it.",
        )


@dataclass(frozen=True, slots=True)
class RefType(OfArrayType):
    """The type of a reference, by that of the array that it holds: ``typeof(new_ref(x)).inner_aval == typeof(x)``."""

    inner_aval: ArrayType
    aval = property(lambda self: self.inner_aval)

    def __str__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"


@overload
def typeof(x: Ref) -> RefType: ...
@overload
def typeof(x: Any) -> ArrayType: ...
def typeof(x: Any) -> Any:
    """The type of an array, of a number as an array, or of a reference.

    >>> print(typeof(1.0), typeof(new_ref(1.0)))
    f32[]~ Ref{f32[]}
    """
    return RefType(x.aval) if isinstance(x, Ref) else type_of(x)


WRITERS[Ref] = lambda printer, ref: f"?'ref {ref.number}'"


# the current value of a reference
@effect(vmap="once")
class RefGet:
    ref: Any

    def result_type(op):
        return op.ref.aval

    def evaluate(op):
        return (_at_base(op.ref).cell.value,)


# gives a reference a new value
@effect
class RefSet:
    ref: Any

    def result_type(op, x):
        return None

    def evaluate(op, x):
        _at_base(op.ref).cell = concrete(op.ref.aval, x)
        return ()

    def jvp(op, primals, tangents):
        if tangents[0] is None:
            return current().answer(op, primals), ()
        raise NotDifferentiable(
            f"ref: a reference {op.ref.aval} that is made outside of a derivative cannot hold a value with a tangent.",
            hint="write stop_gradient(x), or make the reference inside the differentiated function.",
        )

    def batch(op, dims, x):
        raise CannotCross(
            f"ref: the lanes of a vmap cannot write a reference {op.ref.aval} that all of them share.",
            hint="pass it as an argument that is mapped, or make it inside the mapped function.",
        )


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False) -> Ref:
    """A reference with this initial value: a mutable cell that holds an array.

        ref = new_ref(x);  ref[...] == x;  after ref[i] = y:  ref[...] == x.at[i].set(y)

    It keeps its shape and dtype. A function may read and write references of its surroundings under ``jit`` and in
    loops and branches; one that uses only references made in it is pure, and every transformation applies to it.
    Effects: reads and writes are effects, handled where the reference was made.
    Raises: NotAnArray: the value is no array. BadArgument: a memory space, a kind or a pinned buffer is asked for.

    >>> ref = new_ref(1.0)
    >>> ref[...] += 1
    >>> ref
    Ref(2., dtype=float32)
    """
    for parameter, given in (("memory_space", memory_space), ("kind", kind), ("pin", pin or None)):
        must_be_empty("new_ref", parameter, given, "a reference lies where its value lies.")
    return reference_here(as_array(init_val), False)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A reference to an array of the shape and dtype of ``ty``, whose elements are to be written before they are read.

    Raises: BadArgument: a memory space or a pinned buffer is asked for.

    >>> ref = empty_ref(ArrayType((2,), "float32"))
    >>> ref[...] = 1.0
    >>> ref
    Ref([1., 1.], dtype=float32)
    """
    for parameter, given in (("memory_space", memory_space), ("pin", pin or None)):
        must_be_empty("empty_ref", parameter, given, "a reference lies where its value lies.")
    return reference_here(zeros(ArrayType(ty.shape, ty.dtype)), False)


def free_ref(ref: Ref) -> None:
    """Give up a reference, which cannot be used any more. Raises: BadCall: as ``freeze``."""
    freeze(ref)


def reference_here(x: Array, argument: bool) -> Ref:
    """A reference of the transformation in force; with ``argument`` it stands for a reference of the caller."""
    x = convert(x, x.type.dtype, False)
    run = top = current()
    while not run.owns_boxes:
        run = run.outer
    if run is BASE:
        ref = Ref(x.type, BASE, argument)
        ref.cell = x
        return ref
    if type(top) is not References:
        top = References(top, {})
        push(top)
    ref = Ref(x.type, top, argument)
    top.cells[ref] = x
    return ref


def get(ref: Ref, idx: Any = None) -> Any:
    """The value of a reference, or its elements at an index: ``ref[idx]``.

    Raises: EscapedBox: the transformation in which it was made has ended. DeletedArray: it is frozen.
    """
    value = _whole(ref)
    return value if idx is None or idx is Ellipsis else value[idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Replace the elements of a reference at an index: ``ref[idx] = value``.

    Raises: DTypeMismatch: the value has another dtype than the reference. ShapeMismatch: it does not fit.
    """
    usable(ref)
    x = as_array(value)
    t = ref.aval
    if x.type.dtype != t.dtype and not x.type.weak:
        raise DTypeMismatch(
            f"ref: a reference {t} keeps its dtype, got a value {x.type}.", hint="convert the value with astype."
        )
    if idx is None or idx is Ellipsis:
        new = broadcast(convert(x, t.dtype, False), t.shape)
    else:
        new = convert(_whole(ref).at[idx].set(x), t.dtype, False)
    top = current()
    if top is BASE:
        ref.cell = new
    else:
        top.answer(RefSet(ref), (new,))


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """Replace the elements of a reference at an index; returns the previous ones."""
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Add to the elements of a reference at an index; an element that occurs in it twice is added to twice."""
    value = _whole(ref)
    set(ref, None, value + x if idx is None or idx is Ellipsis else value.at[idx].add(x))


def freeze(ref: Ref) -> Any:
    """The final value of a reference, which cannot be used any more.

    Raises: BadCall: it was made at another level, outside the transformed function.
    """
    value = _whole(ref)
    run = current()
    while run is not ref.level and not run.owns_boxes:
        run = run.outer
    if run is not ref.level or ref.argument:
        raise BadCall(
            f"freeze: a reference {ref.aval} is frozen where it was made, not in a function that only uses it.",
            hint="freeze it after the call.",
        )
    ref.frozen = True
    return value


def _whole(ref: Ref) -> Any:
    """The current value of a reference."""
    usable(ref)
    top = current()
    if ref.level is top:
        return ref.cell if top is BASE else top.cells[ref]  # type: ignore[attr-defined]
    return top.answer(RefGet(ref), ())[0]


def usable(ref: Ref) -> None:
    """Check that a reference may be read or written here. Raises: DeletedArray, BadCall, EscapedBox."""
    if ref.frozen:
        raise DeletedArray(f"freeze: a reference {ref.aval} was used after it was frozen.")
    if ref in LENT.get():
        raise _two_names(ref)
    if not in_force(ref.level, current()):
        raise EscapedBox(
            f"ref: a reference {ref.aval} of a transformation that has ended was used again.",
            hint="return its value, ref[...], or make it outside of the transformed function.",
        )


def _two_names(ref: Ref) -> BadCall:
    return BadCall(
        f"ref: one reference {ref.aval} has two names in a call: it is passed twice, or passed and read from the "
        "surroundings.",
        hint="pass it once, or not at all.",
    )


def _at_base(ref: Ref) -> Ref:
    """The reference, if it was made outside of all transformations. Raises: EscapedBox: it was made inside of one."""
    if ref.level is not BASE:
        raise EscapedBox(f"ref: a reference {ref.aval} of a transformation that has ended was used again.")
    usable(ref)
    return ref


class References(BodyTransformer):
    """The handler of the references that are made inside one transformation; it forwards all other effects.

    ``cells`` maps them to their current values, which are the state with which it crosses operations that use them.
    """

    __slots__ = ("cells",)
    cells: dict[Ref, Any]

    def __init__(self, outer: Run, cells: dict[Ref, Any]):
        super().__init__(outer, "")
        self.cells = cells

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if op.effectful and isinstance(op, (RefGet, RefSet)) and op.ref in self.cells:
            if type(op) is RefGet:
                return (self.cells[op.ref],)
            (self.cells[op.ref],) = operands
            return ()
        if op.bodied:
            mine = [ref for ref in references_in(op.effects) if ref in self.cells]
            if mine:
                return self.cross(op, operands, mine)
        return self.outer.answer(op, operands)

    def cross(self, op: Any, operands: tuple[Any, ...], refs: Sequence[Ref]) -> Any:
        """Perform an operation whose bodies use these references: values go in as operands and are written back."""
        run = References(self.outer, {ref: self.cells[ref] for ref in refs})
        around = STACK.get()
        try:
            STACK.set(self.outer)
            test = op.tests[0].effects if op.tests else ()
            mine = [effect for effect in test if isinstance(effect, (RefGet, RefSet)) and effect.ref in run.cells]
            left = [effect for effect in test if not isinstance(effect, Axis) and effect not in mine]
            plain = cross_solver if op.solves else cross
            results = (plain if not mine else rotate_within if left else rotate)(run, op, operands)
        finally:
            STACK.set(around)
        self.cells.update({ref: run.cells[ref] for ref in written_in(op.effects) if ref in run.cells})
        return results

    def fresh(self, outer: Run) -> References:
        return References(outer, dict(self.cells))

    def key(self) -> Any:
        return ("references", *self.cells) if self.outer is BASE else None

    def flow(self, op: HigherOrder) -> StateFlow:
        return CarriedValues(self)


class CarriedValues(StateFlow):
    """How references cross an operation: their values are operands and results of each body, and carried by a loop."""

    in_carry = True

    def __init__(self, run: References):
        self.operands = [*run.cells.values()]

    def key(self) -> Any:
        return ("references",)

    def begin(self, run: References, values: Sequence[Any]) -> None:
        run.cells = dict(zip(run.cells, values))

    def end(self, run: References) -> tuple[Sequence[Any], Any]:
        return [*run.cells.values()], None

    def join(
        self, run: Any, op: HigherOrder, bodies: Sequence[TransformedBody], before: Sequence[ArrayType]
    ) -> StateLayout:
        return StateLayout(before, None)

    def after(self, run: References, values: Sequence[Any], structure: Any) -> None:
        run.cells = dict(zip(run.cells, values))


def references_in(effects: Iterable[Any]) -> list[Ref]:
    """The references that an effect row names, each once, in the order in which they were made."""
    references = {effect.ref for effect in effects if isinstance(effect, (RefGet, RefSet))} if effects else ()
    return sorted(references, key=lambda ref: ref.number)


def written_in(effects: Iterable[Any]) -> list[Ref]:
    """The references that an effect row writes."""
    return references_in([effect for effect in effects if isinstance(effect, RefSet)])


def discharge(op: HigherOrder, operands: tuple[Any, ...], refs: Sequence[Ref]) -> Any:
    """Evaluate an operation whose bodies use references, outside of all transformations; write back their values."""
    cells = {ref: _at_base(ref).cell for ref in refs}
    run = References(BASE, cells)
    results = run.cross(op, operands, refs)
    for ref in refs:
        ref.cell = run.cells[ref]
    return results
