"""Programs: computations as values. Typed, first-order, single-assignment, frozen.

A program is a flat tape. Its values are numbered: inputs first, then the results of the equations in order; constants
have negative numbers, constant ``k`` being ``-1 - k``, so that one list with the constants at its end holds them all.
Equations and variables are views, made when somebody looks.

    program == other        up to renaming: same operations, wiring, types and constants; source lines don't count
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array, ConcreteArray, lift
from .differences import Difference, difference
from .errors import BadArgument, Immutable
from .operations import EMPTY_ROW, Operation
from .printing import WRITERS, constant_text, constants_of, equation_text, letter, program_text
from .reading import read
from .slots import setter
from .sources import NOWHERE, Site, Sites
from .stack import Cell, current
from .types import ArrayType


class Variable(NamedTuple):
    """A value of a program: its number and type."""

    number: int
    aval: ArrayType

    @property
    def type(self) -> ArrayType:
        return self.aval

    def __str__(self) -> str:
        return letter(self.number)

    def __repr__(self) -> str:
        return str(self)


class Literal(NamedTuple):
    """A constant operand: its value and type."""

    val: Any
    aval: ArrayType

    @property
    def type(self) -> ArrayType:
        return self.aval

    def __str__(self) -> str:
        return constant_text(self.val)

    def __repr__(self) -> str:
        return str(self)


class Equation(NamedTuple):
    """``outvars = op(*invars)``, at a line of the user's."""

    op: Operation
    invars: tuple[Variable | Literal, ...]
    outvars: tuple[Variable, ...]
    site: Site

    @property
    def primitive(self) -> Operation:
        return self.op

    @property
    def params(self) -> dict[str, Any]:
        return {name: getattr(self.op, name) for name in self.op._names}

    @property
    def effects(self) -> frozenset[Any]:
        return self.op.effects

    @property
    def source_info(self) -> Site:
        return self.site

    def __str__(self) -> str:
        return equation_text(self)

    def __repr__(self) -> str:
        return str(self)


class Program:
    """A recorded computation: ``(in_types) -> out_types ! effects``. Immutable, hashable, picklable.

        Program.parse(str(p), p.constants) == p        pickle.loads(pickle.dumps(p)) == p

    Equality is up to the names of values, the numbering of constants, the name and the source lines.
    """

    __slots__ = (
        "in_types", "ops", "args", "types", "outs", "consts", "sites", "name", "effects",
        "_key", "_hash", "_operations", "_cache", "__weakref__",
    )  # fmt: skip
    in_types: tuple[ArrayType, ...]
    ops: tuple[Operation, ...]
    args: tuple[tuple[int, ...], ...]
    types: tuple[Any, ...]
    outs: tuple[int, ...]
    consts: tuple[Any, ...]
    sites: Sites
    name: str
    effects: frozenset[Any]
    _key: Any
    _hash: int
    _operations: frozenset[type[Operation]]
    _cache: dict[Any, Any]

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
        found = sites.copy() if isinstance(sites, Sites) else Sites(sites)
        row = EMPTY_ROW
        kinds: set[type[Operation]] = set(map(type, ops))
        for kind in kinds:
            if kind.effectful or kind.bodied or kind.named:
                row = row.union(*[each.effects for each in ops if type(each) is kind])
        lines = found if len(found) else Sites((NOWHERE,) * len(ops))
        parts = (tuple(in_types), ops, tuple(args), tuple(types), tuple(outs), tuple(consts), lines, name, row)
        for assign, part in zip(_SETTERS, parts):
            assign(self, part)
        _set_cache(self, {})

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("programs", name, "set", "make_program of another function makes another one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("programs", name, "deleted", "make_program of another function makes another one.")

    @property
    def operations(self) -> frozenset[type[Operation]]:
        """The types of the operations in it, sub-programs included."""
        try:
            return self._operations
        except AttributeError:
            kinds = set(map(type, self.ops))
            for op in self.ops:
                if op.bodied:
                    for body in op.bodies:  # type: ignore[attr-defined]
                        kinds |= body.operations
            object.__setattr__(self, "_operations", frozenset(kinds))
            return self._operations

    @property
    def count(self) -> int:
        """How many values it has: inputs and results of equations; constants not among them."""
        return len(self._value_types()) - len(self.consts)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        found = self._cache.get("out_types")
        if found is None:
            types = self._value_types()
            found = self._cache["out_types"] = tuple([types[n] for n in self.outs])
        return found

    in_avals = property(lambda self: self.in_types)
    out_avals = property(lambda self: self.out_types)
    jaxpr = property(lambda self: self)
    literals = property(lambda self: self.consts)

    def value_types(self) -> list[ArrayType]:
        """The type of every value by its number, constants at the end: ``types[-1 - k]`` is constant ``k``'s."""
        return [*numbered_types(self), *[const.type for const in reversed(self.consts)]]

    def type_of(self, number: int) -> ArrayType:
        return self._value_types()[number]

    def _value_types(self) -> list[ArrayType]:
        types = self._cache.get("types")
        if types is None:
            types = self._cache["types"] = self.value_types()
        return types

    def site(self, index: int) -> Site:
        return Site(*self.sites[index])

    @property
    def eqns(self) -> tuple[Equation, ...]:
        found = self._cache.get("eqns")
        if found is None:
            found = self._cache["eqns"] = tuple(self.equations())
        return found

    def equations(self) -> Iterator[Equation]:
        """The equations in order, as views."""
        number = len(self.in_types)
        for i, (op, args, made) in enumerate(zip(self.ops, self.args, self.types)):
            results = made if op.multiple else (made,)
            outs = tuple([Variable(number + k, t) for k, t in enumerate(results)])
            number += len(outs)
            yield Equation(op, tuple(map(self.operand, args)), outs, self.site(i))

    def operand(self, number: int) -> Variable | Literal:
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
        """All constants, those of sub-programs behind its own: what the text names ``@c0``, ``@c1``, ... ."""
        return constants_of(self)

    @property
    def closed(self) -> bool:
        """Whether every constant is an array, none a box of an enclosing run."""
        return all(const.run is None for const in self.consts)

    @property
    def key(self) -> Any:
        try:
            return self._key
        except AttributeError:
            key = (self.in_types, self.ops, self.types, *self._wiring())
            _set_key(self, key)
            return key

    def _wiring(self) -> tuple[Any, ...]:
        """Operands, results and constants, these numbered by first use and each value once."""
        if not self.consts:
            return self.args, self.outs, ()
        if len(self.consts) == 1:
            yes = any([-1 in operands for operands in self.args]) or -1 in self.outs
            return self.args, self.outs, (self.const_key(-1),) if yes else ()
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
        """A constant, by its negative number, as what compares by type and bits; a box compares by identity."""
        const = self.consts[-1 - number]
        if not isinstance(const, ConcreteArray):
            return (const.type, id(const))
        return (const.type, const.value.tobytes()) if const.type.nbytes <= _SMALL else Large(const)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Program) or hash(self) != hash(other):
            return False
        if self.key is not other.key:
            if self.key != other.key:
                return False
            # found equal once, they share a key: else a graph of shared sub-programs were compared path by path
            _set_key(other, self._key)
        return True

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash(self.key)
            _set_hash(self, found)
            return found

    def __reduce__(self) -> Any:
        # code objects do not pickle, and lines of a program from elsewhere would lead nowhere
        parts = (self.in_types, self.ops, self.args, self.types, self.outs, self.consts, (), self.name)
        return Program, parts

    def with_consts(self, consts: Sequence[Any]) -> Program:
        """The same equations over other constants of the same types."""
        return self._with(consts=tuple(consts))

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: Any) -> Program:
        return self

    def __len__(self) -> int:
        return len(self.ops)

    def __str__(self) -> str:
        return program_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: a page in which sub-programs fold."""
        return _Installed.page(self)

    def pretty_print(self, *, source_info: bool = False) -> str:
        """The text, with ``source_info`` the user's line behind each equation."""
        return program_text(self, source_info)

    @classmethod
    def parse(cls, text: str, consts: Sequence[Any] = ()) -> Program:
        """The program that a text says; ``consts`` are what it names ``@c0``, ``@c1``, ...: ``program.constants``.

        Raises: ParseError: with line and column, and what was expected there.
        """
        return read(text, consts, cls)

    def diff(self, other: Program) -> Difference:
        """What has to change here to give ``other``: false, and an empty text, exactly when they are equal."""
        return difference(self, other)

    def with_outs(self, outs: Sequence[int]) -> Program:
        """The same equations, giving the values of these numbers."""
        if tuple(outs) == self.outs:
            return self
        made = self._with(outs=tuple(outs))
        if "types" in self._cache:
            made._cache["types"] = self._cache["types"]
        return made

    def rewired(self, in_types: Sequence[ArrayType], places: Sequence[int]) -> Program:
        """The same equations over other inputs: what was input ``i`` is input ``places[i]``."""
        count = len(places)
        if len(in_types) == count and all([i == place for i, place in enumerate(places)]):
            return self
        shift = len(in_types) - count

        def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([n if n < 0 else places[n] if n < count else n + shift for n in numbers])

        return self._with(
            in_types=tuple(in_types), args=tuple(map(renumber, self.args)), outs=renumber(self.outs)
        )

    def with_name(self, name: str) -> Program:
        """The same program under another name, which no comparison sees."""
        return self._with(name=name)

    def _with(self, **parts: Any) -> Program:
        """The program with other parts and the same equations, whose effects and lines are not gone through again."""
        made = object.__new__(Program)
        for name, assign in zip(_PARTS, _SETTERS):
            assign(made, parts[name] if name in parts else getattr(self, name))
        _set_cache(made, {})
        return made

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Perform the equations under the handlers in force; gives the results as a tuple.

        Raises: BadArgument: the arguments have not the shapes and dtypes of the inputs.
        """
        operands = [lift(x) for x in args]
        if [(x.type.shape, x.type.dtype) for x in operands] != [(t.shape, t.dtype) for t in self.in_types]:
            takes, got = (", ".join(map(str, types)) for types in (self.in_types, [x.type for x in operands]))
            raise BadArgument(f"{self.name}: the program takes ({takes}), got ({got}).", hint="record it for these.")
        return interpret(self, operands)


_PARTS = ("in_types", "ops", "args", "types", "outs", "consts", "sites", "name", "effects")
_SETTERS = tuple([setter(Program, name) for name in _PARTS])
_set_cache, _set_key, _set_hash = (setter(Program, name) for name in ("_cache", "_key", "_hash"))


class _Installed:
    page: Callable[[Program], str]


def install_page(page: Callable[[Program], str]) -> None:
    """Called once by the package: what a notebook shows of a program."""
    _Installed.page = page


_SMALL = 1024  # bytes up to which a constant's own bytes are its key
_SAMPLED = 1 << 20  # bytes beyond which a constant is not read for its hash


class Large:
    """A large constant as a key: hashed by its type and a few of its bytes, equal by all of them."""

    __slots__ = ("array",)

    def __init__(self, array: ConcreteArray):
        self.array = array

    @property
    def words(self) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self.array.value).reshape(-1).view(np.uint8)

    @property
    def sample(self) -> bytes:
        words = self.words
        return words[:: max(1, words.size // 256)].tobytes()

    def __hash__(self) -> int:
        type = self.array.type
        return hash((type, self.sample)) if type.nbytes <= _SAMPLED else hash(type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Large) or self.array.type is not other.array.type:
            return False
        if self.array is other.array:
            return True
        return self.sample == other.sample and bool(np.array_equal(self.words, other.words))


WRITERS[Program] = lambda printer, program: printer.program(program)


def interpret(program: Program, args: Sequence[Array]) -> tuple[Any, ...]:
    """Perform a program's equations in order, under the handlers in force, which take over their source lines."""
    run = current()
    spliced = run.splice(program, args)
    if spliced is not None:
        return spliced
    env = bind(program, args)
    number = len(args)
    answer = run.answer
    cell = run.cell or Cell()
    outside = cell.site
    sites = program.sites.through(run.seen)
    try:
        for op, operands, cell.site in zip(program.ops, program.args, sites):
            y = answer(op, tuple([env[n] for n in operands]))
            if op.multiple:
                for value in y:
                    env[number] = value
                    number += 1
            else:
                env[number] = y
                number += 1
    finally:
        cell.site = outside
    return tuple([env[n] for n in program.outs])


def bind(program: Program, args: Sequence[Array]) -> list[Any]:
    """A list for all values of a program, with inputs and constants in their places."""
    results = sum([len(t) if op.multiple else 1 for op, t in zip(program.ops, program.types)])
    return [*args, *[None] * results, *reversed(program.consts)]


def numbered_types(tape: Program | Builder) -> list[ArrayType]:
    """The types of inputs and results by number."""
    types = list(tape.in_types)
    if tuple not in map(type, tape.types):
        types += tape.types
        return types
    for op, made in zip(tape.ops, tape.types):
        if op.multiple:
            types.extend(made)
        else:
            types.append(made)
    return types


class Builder:
    """What a run owns while it records; ``freeze`` makes the program, once."""

    __slots__ = ("in_types", "ops", "args", "types", "consts", "sites", "count", "taken", "_numbers")

    def __init__(self) -> None:
        self.in_types: list[ArrayType] = []
        self.ops: list[Operation] = []
        self.args: list[tuple[int, ...]] = []
        self.types: list[Any] = []
        self.consts: list[Any] = []
        self.sites = Sites()
        self.count = 0
        self.taken: dict[int, Any] = {}  # last equation of a stretch -> the formula that it was taken over from
        self._numbers: dict[int, int] = {}

    def input(self, type: ArrayType) -> int:
        number = self.count
        self.in_types.append(type)
        self.count = number + 1
        return number

    def const(self, value: Any) -> int:
        """The number of a constant; one value has one number."""
        number = self._numbers.get(id(value))
        if number is None:
            self.consts.append(value)
            number = self._numbers[id(value)] = -len(self.consts)
        return number

    def append(self, op: Operation, args: tuple[int, ...], made: Any, site: Any) -> int:
        """One more equation; gives the number of its first result."""
        self.ops.append(op)
        self.args.append(args)
        self.types.append(made)
        self.sites.append(site)
        number = self.count
        self.count = number + (len(made) if op.multiple else 1)
        return number

    def freeze(self, outs: Sequence[int], name: str = "program") -> Program:
        return Program(self.in_types, self.ops, self.args, self.types, outs, self.consts, self.sites, name)
