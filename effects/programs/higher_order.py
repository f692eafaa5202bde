"""Higher-order operations: operations with sub-programs (bodies), and the declaration by which handlers cross them.

    operands = selects + shared + carry + each
    body     : shared + carry + each -> carry + out
    results  = carry + out

``runs`` declares the execution mode of the bodies: ``once``; ``one`` of several; a ``loop`` of known length; ``until``
a test, the first body, is false; ``lanes``, in any order; ``mesh``, on all devices of a mesh at once; ``scope``, as the
clause of a handler decides. ``loop`` and ``until`` pass the carry from one iteration to the next; ``loop`` and
``lanes`` pass iteration ``i`` the slice ``i`` of ``each``, and stack ``out`` along a new first axis; ``mesh`` does so
with values that vary along its axes, and passes others whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from ..base.errors import RegistrationError
from ..base.later_layers import LaterLayers
from ..core.named_axes import Axis
from ..core.operation import EMPTY_ROW, Operation, operation
from ..types.array_type import ArrayType
from .program import Program

# The fields that operations must have by their mode: handlers that cross them change these.
_COUNTS = {
    "loop": ("shared", "carry", "backwards"),
    "until": ("shared", "carry"),
    "lanes": ("shared",),
    "mesh": ("shared",),
}


class OperandGroups(NamedTuple):
    """The operands of a higher-order operation, or a sequence parallel to the operands, divided into groups."""

    selects: list[Any]
    shared: list[Any]
    carry: list[Any]
    each: list[Any]


class HigherOrder(Operation):
    """An operation over sub-programs: ``runs`` is their execution mode, the counts divide the operands into groups."""

    __slots__ = ()
    bodied: ClassVar[bool] = True
    multiple_results: ClassVar[bool] = True
    runs: ClassVar[str] = "once"  # the execution mode of the bodies
    loops: ClassVar[bool] = False  # each iteration gets the carry of the one before
    stacks: ClassVar[bool] = False  # iterations take slices of ``each`` and give slices of ``out``
    lanes_of_all: ClassVar[Any] = ()  # the axes of a mesh in the type of a body's value that differs on every device
    selects: ClassVar[int] = 0  # leading operands that choose a body; no body takes them
    prunes: ClassVar[bool] = True  # unused operands and results may be removed: no field refers to single ones
    own_results: ClassVar[bool] = False  # its results are not those of its bodies
    solves: ClassVar[bool] = False  # the carry is what an equation determines, not what its bodies compute
    body_param: ClassVar[str] = "jaxpr"  # the parameter that is the body, where there is one
    derives: ClassVar[bool] = False  # its derivative is its deferred rule, not that of its bodies
    saves: ClassVar[Any] = None  # policy of the residuals that reverse mode may save; None: all that it needs
    bodies: tuple[Program, ...]
    rule: Any  # where it is ``deferred``
    shared: int = 0
    carry: int = 0
    length: int = 1
    binds: Any = None  # the named axes of a mesh that it binds in its bodies
    backwards: bool = False  # a loop from the last slice to the first
    # of lanes: the enclosing loops that lie inside their ``vmap``; in a stacked result the lanes' axis precedes theirs
    crossed: int = 0
    unroll: int = 1  # iterations of the loop in one iteration of the compiled loop
    share: tuple[int, ...] | None = None  # in how many of how many executions the last of its bodies is one
    prevent_cse: bool = False  # the adjoint's recomputation must not be merged with the forward pass

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "loops" not in vars(cls):
            cls.loops = cls.runs in ("loop", "until")
        cls.stacks = cls.runs in ("loop", "lanes", "mesh")
        names = getattr(cls, "_names", ())
        counts = _COUNTS.get(cls.runs, ())
        if cls.prunes and "bodies" in names and not set(counts) <= set(names):
            raise RegistrationError(
                f"{cls.__name__}: an operation with runs = {cls.runs!r} must have the fields "
                f"{', '.join(counts)}: handlers that cross it change them.",
                hint="annotate them in its block, or set prunes = False and write all its cells.",
            )

    def as_params(self) -> dict[str, Any]:
        """The parameters of the primitive, of which one is the only body."""
        params = super().as_params()
        alone = len(params.get("bodies", ())) == 1
        return {self.body_param: params.pop("bodies")[0], **params} if alone else params

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        if cls.body_param in params:
            params = {"bodies": (params[cls.body_param],), **params}
        return super().from_params({name: value for name, value in params.items() if name != cls.body_param})

    @classmethod
    def has_param(cls, name: str) -> bool:
        return name == cls.body_param or super().has_param(name)

    @property
    def transparent(self) -> bool:
        """Whether each result depends on the operands as that result of the bodies does."""
        return self.prunes

    @property
    def captures(self) -> bool:
        """Whether it may be given more operands, which each execution of its bodies reads; a fold may not."""
        return "shared" in self._names or not (self.loops or self.stacks)

    @property
    def label(self) -> str:
        """The name of the compiled function of the body."""
        return self.name

    @property
    def effects(self) -> frozenset[Any]:
        rows = [body.effects for body in self.bodies if body.effects]
        row = EMPTY_ROW.union(*rows) if rows else EMPTY_ROW
        return row if self.binds is None else row - {Axis(name) for name, _ in self.binds.axes}

    @property
    def typical(self) -> tuple[Program, ...]:
        """The bodies from which costs are estimated: symbolic dimensions in types are replaced by typical sizes."""
        return self.bodies

    @property
    def tests(self) -> tuple[Program, ...]:
        return self.bodies[:1] if self.runs == "until" else ()

    @property
    def main(self) -> tuple[Program, ...]:
        """The bodies that compute results: all but the test of ``until``."""
        return self.bodies[1:] if self.runs == "until" else self.bodies

    def groups(self, items: Sequence[Any]) -> OperandGroups:
        """A sequence parallel to the operands, divided into their groups."""
        first = self.selects
        second = first + self.shared
        third = second + self.carry
        return OperandGroups(
            list(items[:first]), list(items[first:second]), list(items[second:third]), list(items[third:])
        )

    def forwards(self, result: int) -> int | None:
        """The operand that this result always equals, since every body returns that input; None if there is none."""
        numbers = {body.outs[result] for body in self.main}
        number = numbers.pop()
        if numbers or not 0 <= number < len(self.main[0].in_types):
            return None
        if self.loops and result < self.carry:
            same = number == self.shared + result
        else:
            same = not self.stacks or number >= self.shared + self.carry
        return self.selects + number if same else None

    def result_type(op, *operands: ArrayType) -> tuple[ArrayType, ...]:
        types = op.main[0].out_types
        return (*types[: op.carry], *map(op.stacked, types[op.carry :])) if op.stacks else types

    def stacked(self, type: ArrayType) -> ArrayType:
        """The type of an ``each`` operand or ``out`` result whose slice has ``type``."""
        return type.with_dimension(0, self.length) if self.slices(type) else type

    def slices(self, type: ArrayType) -> bool:
        """Whether an ``each`` operand or ``out`` result is a stack of values that have ``type`` inside the body."""
        return self.stacks

    def times(self, *types: ArrayType) -> int:
        """The number of executions of the body on operands of these types; 1 if the types do not determine it."""
        return self.length if self.stacks else 1

    def with_bodies(self, bodies: Sequence[Program], **counts: Any) -> Any:
        """The same operation over other bodies; ``counts``: new values of fields such as ``shared`` and ``carry``."""
        fields = {"bodies": tuple(bodies), **counts}
        return type(self)(*[fields[name] if name in fields else getattr(self, name) for name in self._names])

    def map_bodies(self, f: Callable[[Program], Program]) -> Any:
        """The same operation over ``f`` of each body, which computes the same; itself if these are its own."""
        bodies = [*map(f, self.bodies)]
        return self if all([new is old for new, old in zip(bodies, self.bodies)]) else self.with_bodies(bodies)

    def in_order(self) -> Any:
        """The operation with iterations in the order of the slices, or the opposite one; None: they have no order."""
        return self

    def reversed(self) -> Any:
        """The operation with its iterations in the opposite order; itself if iterations have no order."""
        ordered = self.runs == "loop" and "backwards" in self._names
        return self.with_bodies(self.bodies, backwards=not self.backwards) if ordered else self

    def without_own_rule(self) -> Any:
        """The operation without a rule or policy of the user's, on which its bodies do not depend."""
        own = [name for name in ("rule", "policy") if name in self._names]
        return self.with_bodies(self.bodies, **dict.fromkeys(own)) if own else self


# (y, ...) = body(x, ...): a function that is traced, transformed and compiled once
@operation
class Call(HigherOrder):
    bodies: tuple[Program, ...]
    label: str = "call"
    inline: bool = False
    shared = 0
    carry = 0
    primitive_name = "jit"
    primitive_aliases = ("pjit", "closed_call")
    param_names = {"label": "name"}
    fixed_params = {"keep_unused": False}
    derived_params = {"donated_invars": lambda op: (False,) * len(op.bodies[0].in_types)}


def record_body(
    f: Callable[..., Sequence[Any]], in_types: Sequence[ArrayType], name: str = "body", label: str | None = None
) -> Program:
    """The program of a function of flat arrays of these types; ``label``: what records it, by default ``name``."""
    return LaterLayers.record(f, in_types, name, label)
