"""Programs: computations as values. Typed, first-order, single-assignment, frozen.

A program is stored flat. Its values are numbered: inputs first, then the results of the equations in order; constant
``k`` has the number ``-1 - k``, so that one list of all values with the constants reversed at its end is indexed by
every number. Equations and variables are views, built on demand.

    program == other        the same operations, operands, types and constants; names and source lines are not compared
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from inspect import CO_VARARGS
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from ..base.caches import AttachedCache, Part
from ..base.deep_calls import on_deep_stack
from ..base.errors import BadArgument
from ..base.immutables import OwnCopy, setter
from ..base.later_layers import displayed
from ..base.lazy_module import LazyModule
from ..base.source_locations import NOWHERE, Site, Sites, is_ours, starts_path
from ..base.stack import current
from ..base.value_identity import array_key
from ..core.arrays import Array, ConcreteArray, as_array, second, share
from ..core.operation import EMPTY_ROW, Operation, with_memo
from ..types.array_type import ArrayType
from ..types.extent import Extent
from ..types.sized import Sized, extents_in, with_sizes
from . import mesh_texts as mesh_texts  # which adds to WRITERS
from .equation_views import DropVar, Equation, Literal, Variable, replaced
from .equations import Equations
from .printer import WRITERS, constants_of, program_text

if TYPE_CHECKING:
    from . import diff as differences
    from . import parser
else:
    differences = LazyModule("handlax.effects.programs.diff")
    parser = LazyModule("handlax.effects.programs.parser")

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


@displayed
class Program(Equations, OwnCopy, Sized):
    """A recorded computation: ``(in_types) -> out_types ! effects``. Immutable, hashable, picklable.

        Program.parse(str(p), p.constants) == p        pickle.loads(pickle.dumps(p)) == p

    Equality ignores how constants are numbered, the name of the program and the source lines.
    """

    __slots__ = (
        "in_types", "ops", "args", "types", "outs", "consts", "sites", "name", "effects",
        "_key", "_hash", "_operations", "_out_types", "_numbered", "facts", "__weakref__",
    )
    _guard = ("programs", "record a new one with make_program.")
    in_types: tuple[ArrayType, ...]
    ops: tuple[Operation, ...]
    args: tuple[tuple[int, ...], ...]
    types: tuple[Any, ...]
    outs: tuple[int, ...]
    consts: tuple[Any, ...]
    sites: Sites
    name: str
    effects: frozenset[Any]
    _operations: frozenset[type[Operation]]
    # None until they are computed: reading a slot that is not set takes 1 us, and programs are made by the thousand
    _key: Any
    _hash: int | None
    _out_types: tuple[ArrayType, ...] | None
    _numbered: list[ArrayType] | None
    facts: Part  # results of functions decorated with ``derived_once``

    def __init__(
        self,
        in_types: Sequence[ArrayType],
        ops: Sequence[Operation],
        args: Sequence[tuple[int, ...]],
        types: Sequence[Any],
        outs: Sequence[int],
        consts: Sequence[Any] = (),
        sites: Iterable[tuple[CodeType | None, int]] = (),
        name: str = "program",
    ):
        ops = tuple(ops)
        lines = sites.copy() if isinstance(sites, Sites) else Sites(sites)
        if not len(lines):
            lines = Sites((NOWHERE,) * len(ops))
        row = EMPTY_ROW
        kinds: set[type[Operation]] = set(map(type, ops))
        for kind in kinds:
            if not issubclass(kind, Operation):
                raise BadArgument(f"Program: the equations must perform operations, got {kind.__name__}.")
            if kind.has_row:
                rows = [effects for each in ops if type(each) is kind and (effects := each.effects)]
                row = row.union(*rows) if rows else row
        _set_in_types(self, tuple(in_types))
        _set_ops(self, ops)
        _set_args(self, tuple(args))
        _set_types(self, tuple(types))
        _set_outs(self, tuple(outs))
        _set_consts(self, tuple(consts))
        _set_sites(self, lines)
        _set_name(self, name)
        _set_effects(self, row)
        _forget_derived(self)

    @property
    def operations(self) -> frozenset[type[Operation]]:
        """The classes of all operations in the program, those of sub-programs included."""
        try:
            return self._operations
        except AttributeError:
            kinds = set(map(type, self.ops))
            for op in self.ops:
                if op.bodied:
                    for body in op.bodies:  # type: ignore[attr-defined]
                        kinds |= on_deep_stack(getattr, body, "operations")
            object.__setattr__(self, "_operations", frozenset(kinds))
            return self._operations

    @property
    def count(self) -> int:
        """The number of values, that is inputs and results of equations; constants are not counted."""
        return len(self._value_types()) - len(self.consts)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        out_types = self._out_types
        if out_types is None:
            types = self._value_types()
            out_types = tuple([types[n] for n in self.outs])
            set_out_types(self, out_types)
        return out_types

    def extents(self) -> frozenset[Extent]:
        """The symbolic dimensions that operations of the program name, other than by inputs of a ragged type."""
        return _extents(self)

    def with_sizes(self, size: Callable[[Extent], int]) -> Program:
        ops = [type(op)(*with_sizes(op.fields, size)) for op in self.ops]
        in_types, types = with_sizes(self.in_types, size), with_sizes(self.types, size)
        return Program(in_types, ops, self.args, types, self.outs, self.consts, self.sites, self.name)

    # the names of a ClosedJaxpr
    in_avals = property(lambda self: self.in_types)
    out_avals = property(lambda self: self.out_types)
    jaxpr = property(lambda self: self)
    literals = property(lambda self: self.consts)

    @property
    def constvars(self) -> tuple[Variable, ...]:
        """A variable for each constant, to be paired with ``consts``; equations have the constants as literals."""
        return tuple([Variable(-1 - k, const.type) for k, const in enumerate(self.consts)])

    def value_types(self) -> list[ArrayType]:
        """The type of every value by its number, constants at the end: ``types[-1 - k]`` is constant ``k``'s."""
        return [*self.numbered_types(), *[const.type for const in reversed(self.consts)]]

    def type_of(self, number: int) -> ArrayType:
        """The type of the value with this number, which may be a constant's."""
        return self._value_types()[number]

    def _value_types(self) -> list[ArrayType]:
        types = self._numbered
        if types is None:
            types = self.value_types()
            _set_numbered(self, types)
        return types

    def site(self, index: int) -> Site:
        """The source line of equation ``index``."""
        return Site(*self.sites[index])

    @property
    def eqns(self) -> tuple[Equation, ...]:
        return _equations(self)

    def equations(self) -> Iterator[Equation]:
        """The equations in order, as views."""
        used = {*self.outs}.union(*self.args)
        made = lambda number, type: Variable(number, type) if number in used else DropVar(number, type)
        for (op, args, results, types), site in zip(self.steps(), self.sites):
            yield Equation(op, tuple(map(self.operand, args)), tuple(map(made, results, types)), Site(*site))

    def operand(self, number: int) -> Variable | Literal:
        """The value with this number as a view."""
        if number < 0:
            value = self.consts[-1 - number]
            return Literal(value, value.type)
        return Variable(number, self.type_of(number))

    @property
    def invars(self) -> tuple[Variable, ...]:
        return tuple(Variable(i, t) for i, t in enumerate(self.in_types))

    @property
    def outvars(self) -> tuple[Variable | Literal, ...]:
        return tuple(map(self.operand, self.outs))

    @property
    def constants(self) -> tuple[Any, ...]:
        """The constants that the text names ``@c0``, ``@c1``, ...: the program's, then those of its sub-programs."""
        return constants_of(self)

    @property
    def closed(self) -> bool:
        """Whether no constant is a box: every one is a concrete array."""
        return all(const.run is None for const in self.consts)

    @property
    def key(self) -> Any:
        """The value that ``==`` and ``hash`` of programs compare."""
        key = self._key
        if key is None:
            key = (self.in_types, self.ops, self.types, *self._wiring())
            _set_key(self, key)
        return key

    def _wiring(self) -> tuple[Any, ...]:
        """Operands, results and keys of constants, with constants renumbered by first use and equal ones merged."""
        if not self.consts:
            return self.args, self.outs, ()
        if len(self.consts) == 1:
            used_once = any([-1 in operands for operands in self.args]) or -1 in self.outs
            return self.args, self.outs, (self.const_key(-1),) if used_once else ()
        used = dict.fromkeys([n for operands in self.args for n in operands if n < 0], 0)
        used.update(dict.fromkeys([n for n in self.outs if n < 0], 0))
        order: dict[Hashable, int] = {}
        for n in used:
            used[n] = order.setdefault(self.const_key(n), -1 - len(order))
        args, outs = self.args, self.outs
        if any([n != number for n, number in used.items()]):
            args = tuple([tuple([used.get(n, n) for n in operands]) for operands in args])
            outs = tuple([used.get(n, n) for n in outs])
        return args, outs, tuple(order)

    def const_key(self, number: int) -> Hashable:
        """The key of the constant with this (negative) number: type and bits of an array, identity of a box.

        Equal programs are one in every cache, so from then on the array is the package's.
        """
        const = self.consts[-1 - number]
        if not isinstance(const, ConcreteArray):
            return (const.type, id(const))
        return array_key(share(const))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Program) or hash(self) != hash(other):
            return False
        if self.key is not other.key:
            if on_deep_stack(operator.ne, self.key, other.key):
                return False
            # share the key of equal programs: else nested shared sub-programs are compared once per path to them
            _set_key(other, self._key)
        return True

    def __hash__(self) -> int:
        number = self._hash
        if number is None:
            number = on_deep_stack(hash, self.key)
            _set_hash(self, number)
        return number

    def __reduce__(self) -> Any:
        # source lines are left out: code objects do not pickle
        parts = (self.in_types, self.ops, self.args, self.types, self.outs, self.consts, (), self.name)
        return Program, parts

    def with_consts(self, consts: Sequence[Any]) -> Program:
        """The same equations with other constants of the same types."""
        return self._with(consts=tuple(consts))

    def __len__(self) -> int:
        return len(self.ops)

    def __str__(self) -> str:
        return program_text(self)

    __repr__ = __str__

    def pretty_print(
        self, *, source_info: bool = False, print_shapes: bool = True, custom_pp_eqn_rules: bool = True,
        name_stack: bool = False, print_effects: bool = False, **layout: Any,
    ) -> str:
        """The text; with ``source_info`` or ``name_stack`` each equation is followed by the user's source line.

        JAX's other options, those of its layout among them (``use_color``, ``width``, ...), change nothing: the text is
        one that can be parsed, and always has types and effects.
        """
        return program_text(self, source_info or name_stack)

    @classmethod
    def parse(cls, text: str, consts: Sequence[Any] = ()) -> Program:
        """The program of a text; ``consts`` are the constants that it names ``@c0``, ``@c1``, ...

            Program.parse(str(p), p.constants) == p

        Raises: ParseError: with line and column, and what was expected there.
        """
        return parser.read(text, consts, cls)

    def diff(self, other: Program) -> differences.ProgramDifference:
        """The changes that turn this program into ``other``; false, with an empty text, iff the two are equal."""
        return differences.difference(self, other)

    def with_outs(self, outs: Sequence[int]) -> Program:
        """The program of the same equations that returns the values with these numbers."""
        if tuple(outs) == self.outs:
            return self
        program = self._with(outs=tuple(outs))
        _set_numbered(program, self._numbered)
        return program

    def rewired(self, in_types: Sequence[ArrayType], indices: Sequence[int]) -> Program:
        """The same equations over inputs of types ``in_types``; the former input ``i`` is input ``indices[i]``."""
        count = len(indices)
        if len(in_types) == count and all([i == index for i, index in enumerate(indices)]):
            return self
        shift = len(in_types) - count

        def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([n if n < 0 else indices[n] if n < count else n + shift for n in numbers])

        return self._with(
            in_types=tuple(in_types), args=tuple(map(renumber, self.args)), outs=renumber(self.outs)
        )

    def replace(self, jaxpr: Program | None = None, **parts: Any) -> Program:
        """This program, or ``jaxpr``, with other ``consts``, ``invars``, ``eqns`` or ``outvars``."""
        return replaced(self if jaxpr is None else jaxpr, ResidualBuilder(), **parts)

    def with_name(self, name: str) -> Program:
        """An equal program with another name."""
        return self._with(name=name)

    def _with(self, **parts: Any) -> Program:
        """The program with some of ``_PARTS`` replaced; its operations and effects must stay the same."""
        program = object.__new__(Program)
        for name, assign in zip(_PARTS, _SETTERS):
            assign(program, parts[name] if name in parts else getattr(self, name))
        _forget_derived(program)
        return program

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """The results of performing the equations under the handlers in force.

        Raises: BadArgument: the arguments differ from the inputs in number, shape or dtype.
        """
        operands = [as_array(x) for x in args]
        if [(x.type.shape, x.type.dtype) for x in operands] != [(t.shape, t.dtype) for t in self.in_types]:
            expected, got = (", ".join(map(str, types)) for types in (self.in_types, [x.type for x in operands]))
            raise BadArgument(f"{self.name}: the program takes ({expected}), got ({got}).", hint="record it for these.")
        for n in self.outs:
            if n < 0 and isinstance(self.consts[-1 - n], ConcreteArray):
                share(self.consts[-1 - n])  # each call returns it
        return interpret(self, operands)


_PARTS = ("in_types", "ops", "args", "types", "outs", "consts", "sites", "name", "effects")
_SETTERS = tuple([setter(Program, name) for name in _PARTS])
(
    _set_in_types, _set_ops, _set_args, _set_types, _set_outs, _set_consts, _set_sites, _set_name, _set_effects,
) = _SETTERS
_set_key, _set_hash, _set_facts = (setter(Program, name) for name in ("_key", "_hash", "facts"))
set_out_types, _set_numbered = (setter(Program, name) for name in ("_out_types", "_numbered"))


def _forget_derived(program: Program) -> None:
    """Set all derived values of a new program, such as its hash, to not computed."""
    _set_key(program, None)
    _set_hash(program, None)
    set_out_types(program, None)
    _set_numbered(program, None)
    _set_facts(program, _NO_FACTS)


_MISSING: Any = object()
_NO_FACTS = Part()  # shared by all programs without a memoised result
_FACTS = AttachedCache("facts of programs", None, 1 << 16)
"""What is derived from a program once, attached to the program."""


def derived_once(function: Callable[[Program, *Ts], R]) -> Callable[[Program, *Ts], R]:
    """Decorator: memoise a pure function of a program and further hashable arguments.

    Results are stored on the program: a look-up hashes and compares no program, and the results die with it.
    """

    def derived(program: Program, *args: *Ts) -> Any:
        result = program.facts.get((function, args), _MISSING)
        if result is not _MISSING:
            return result
        return _FACTS.add(_facts_of(program), (function, args), on_deep_stack(function, program, *args))

    def derived_alone(program: Program) -> Any:  # without further arguments: the hottest paths
        result = program.facts.get(function, _MISSING)
        if result is not _MISSING:
            return result
        return _FACTS.add(_facts_of(program), function, on_deep_stack(function, program))

    alone = function.__code__.co_argcount == 1 and not function.__code__.co_flags & CO_VARARGS
    wrapper: Any = derived_alone if alone else derived
    functools.update_wrapper(wrapper, function)
    return wrapper


@derived_once
def _extents(program: Program) -> frozenset[Extent]:
    return frozenset([extent for op in program.ops for extent in extents_in(op.fields)])


def memoised(holder: Program | Operation, key: Hashable, make: Callable[[], Any]) -> Any:
    """The result memoised on a program under ``key``, computed once by ``make()``: ``derived_once`` for closures.

    On an operation, which has a rule of the user's, what refers to it: other programs with its bodies outlive it.
    """
    facts = holder.facts if isinstance(holder, Program) else _facts_of(holder)
    found = facts.get(key, _MISSING)
    return _FACTS.add(_facts_of(holder), key, on_deep_stack(make)) if found is _MISSING else found


def _facts_of(holder: Program | Operation) -> Part:
    if isinstance(holder, Program):
        if holder.facts is _NO_FACTS:
            _set_facts(holder, _FACTS.new_part())
        return holder.facts
    memo: Any = holder.memo or with_memo(holder).memo
    if memo.facts is None:
        memo.facts = _FACTS.new_part()
    return memo.facts


@derived_once
def _equations(program: Program) -> tuple[Equation, ...]:
    return tuple(program.equations())


@derived_once
def holds_rules(program: Program) -> bool:
    """Whether the program has operations with rules of the user: derivative or batching rules, checkpoint policies."""
    every: set[Any] = set(map(type, program.ops))
    kinds = {kind for kind in every if kind.deferred or kind.bodied}
    ops: list[Any] = [op for op in program.ops if type(op) in kinds] if kinds else []
    return any([has_rule(op) or (op.bodied and any(map(holds_rules, op.bodies))) for op in ops])


def has_rule(op: Any) -> bool:
    """Whether the operation itself has a rule or policy of the user."""
    policy = op.policy if "policy" in op._names else None
    return bool(op.deferred) or not (policy is None or is_ours(getattr(policy, "__module__", None) or ""))


WRITERS[Program] = lambda printer, program: printer.program(program)


def interpret(program: Program, args: Sequence[Array]) -> tuple[Any, ...]:
    """Perform a program's equations in order under the handlers in force, each at its own source line."""
    run = current()
    return on_deep_stack(run.inline, program, args, program.sites.labelled_by(run.inlining_labeller))


starts_path(interpret, by_user=False)


def bind(program: Program, args: Sequence[Array]) -> list[Any]:
    """The list of a program's values by number: inputs and constants set, results of equations still None."""
    return [*args, *[None] * (program.count - len(args)), *reversed(program.consts)]


def perform_equations(program: Program, env: list[Any], first: int, last: int, number: int) -> int:
    """Perform the equations from ``first`` up to ``last`` under the handlers in force, each at its own source line.

    ``env``: the values by number, as ``bind`` gives them, to which the results are added, from ``number`` on. Returns
    the number of the next result.
    """
    run = current()
    cell, outside, located = run.cell, run.cell.site, run.inlining_labeller.site
    try:
        for i in range(first, last):
            op, cell.site = program.ops[i], located(program.sites[i])
            results = op.as_results(run.answer(op, tuple([env[n] for n in program.args[i]])))
            env[number : number + len(results)] = results
            number += len(results)
    finally:
        cell.site = outside
    return number


_SMALL = 1 << 16  # bytes of a constant that is compared by its elements


class Builder(Equations):
    """A program under construction: equations are appended, ``freeze`` gives the program."""

    __slots__ = ("in_types", "ops", "args", "types", "consts", "sites", "count", "inlined_blocks", "_numbers", "_equal")

    def __init__(self) -> None:
        self.in_types: list[ArrayType] = []
        self.ops: list[Operation] = []
        self.args: list[tuple[int, ...]] = []
        self.types: list[Any] = []
        self.consts: list[Any] = []
        self.sites = Sites()
        self.count = 0
        self.inlined_blocks: dict[int, Any] = {}  # last equation -> the cached rule program it came from
        self._numbers: dict[int, int] = {}
        self._equal: dict[Hashable, int] = {}

    def input(self, type: ArrayType) -> int:
        """Append an input, before any equation; gives its number."""
        number = self.count
        self.in_types.append(type)
        self.count = number + 1
        return number

    def inputs_of(self, number: int) -> list[int]:
        """The inputs on which a value depends, as far as they are at most 10,000 equations before it."""
        starts, first = self.starts(), max(0, len(self.ops) - 10_000)
        needed = {number}
        for i in range(min(bisect_right(starts, number), len(self.ops)) - 1, first - 1, -1):
            if any([n in needed for n in range(starts[i], starts[i + 1])]):
                needed.update(self.args[i])
        return sorted([n for n in needed if 0 <= n < len(self.in_types)])

    def const(self, value: Any) -> int:
        """The number of a constant; the same object, or an equal small array, has the same number."""
        number = self._numbers.get(id(value))
        if number is None:
            small = value.__class__ is ConcreteArray and value._value is not None and value.type.nbytes <= _SMALL
            key = array_key(value) if small else id(value)
            number = self._equal.get(key)
            if number is None:
                self.consts.append(value)
                number = self._equal[key] = self._numbers[id(value)] = -len(self.consts)
        return number

    def apart(self, value: Any) -> int:
        """The number of a constant that is merged with no other, though an equal one may be there."""
        number = self._numbers.get(id(value))
        if number is None:
            self.consts.append(value)
            number = self._numbers[id(value)] = -len(self.consts)
        return number

    def apart_by_site(self, number: Any, site: Any) -> int:
        """The number of a constant that is an interned number, merged with equal ones of the same site alone."""
        known = self._equal.get((id(number), site))
        if known is None:
            _ = number.buffer  # it is transferred once, not in each call
            known = self._equal[id(number), site] = self.apart(second(number))
        return known

    def append(self, op: Operation, args: tuple[int, ...], result_type: Any, site: Any) -> int:
        """Append an equation; gives the number of its first result."""
        self.ops.append(op)
        self.args.append(args)
        self.types.append(result_type)
        self.sites.append(site)
        number = self.count
        self.count = number + (len(result_type) if op.multiple_results else 1)
        return number

    def freeze(self, outs: Sequence[int], name: str = "program") -> Program:
        """The program that returns the values with these numbers."""
        return Program(self.in_types, self.ops, self.args, self.types, outs, self.consts, self.sites, name)


class ResidualBuilder(Builder):
    """A builder that merges constants by identity alone, since residuals and constants of a program need no comparison.

    Comparing them took 6 % of the trace of a loop's gradient, and 4 us of an eager ``vjp``.
    """

    __slots__ = ()

    def const(self, value: Any) -> int:
        """The number of a constant; the same object has the same number."""
        number = self._numbers.get(id(value))
        if number is None:
            self.consts.append(value)
            number = self._numbers[id(value)] = -len(self.consts)
        return number
