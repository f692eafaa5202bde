"""Record: the handler that turns every operation performed into an equation of a program (omnistaging).

Every operation is recorded, also one whose operands are all concrete: values from outside the record become constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base import config
from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.source_locations import RawSite, Site, labels_of, relabelled, starts_path, user_site, with_calls
from ...effects.base.stack import BASE, STACK, Run, SiteCell, inside, installed
from ...effects.core.arrays import Box, is_shared, second
from ...effects.core.escaped_boxes import check_leaks, check_not_escaped
from ...effects.core.operation import Operation, result_type
from ...effects.programs.program import Builder, Program, derived_once, set_out_types
from ...effects.types.array_type import ArrayType
from .rule_codegen import recording_function


class RecordBox(Box):
    """A variable of the program being recorded, by its number. Created by ``box``."""

    __slots__ = ("number",)
    __init__ = object.__init__

    run: Record
    number: int

    @property
    def made_at(self) -> Site:
        return self.run.made_at(self.number)

    @property
    def made_by(self) -> Operation | None:
        definition = self.run.builder.definition(self.number)
        return None if definition is None else self.run.builder.ops[definition[0]]

    @property
    def arguments(self) -> list[str]:
        names = self.run.names
        return [] if names is None else [names(i) for i in self.run.builder.inputs_of(self.number)]


def box(type: ArrayType, run: Record, number: int) -> RecordBox:
    """The box of variable ``number``. Created once for every equation: slots are set without a slower ``__init__``."""
    new = RecordBox()
    new.type = type
    new.run = run
    new.number = number
    return new


class Record(Run):
    """A run that records a program in ``builder``. It answers every operation, with boxes of its variables.

    ``within``: the site of the operation that was being answered when it began, such as the one whose body it records.
    It surrounds the program, in which sites are relative: the lines of the operation, without its labels.
    ``literals``: the identities of the constants that the program has which it records under a handler; others are
    brought by clauses, see ``apart``. None: they are not told apart.
    """

    __slots__ = ("builder", "owner", "names", "within", "literals")
    literals: set[int] | None
    within: RawSite | None
    new_builder: type[Builder] = Builder
    records_everything = True  # a subclass, such as a tape, may forward some operations

    def __init__(self, outer: Run, label: str, site: tuple[Any, int] | None = None, owner: Run | None = None):
        super().__init__(outer, label, site)
        if self.records_everything:
            answered = self.cell.site
            self.within = answered if owner is None else owner.cell.site
            self.cell = SiteCell(answered and relabelled(answered, ()))
        self.builder = self.new_builder()
        self.owner = owner  # the run that transforms a body by this record
        self.literals = None
        self.names: Callable[[int], str] | None = None  # the name of the argument that an input is, for messages

    @property
    def around(self) -> tuple[str, ...]:
        return super().around if self.within is None else labels_of(self.within)

    @property
    def described(self) -> str:
        return self.label or ("a rule" if self.owner is None else self.owner.described)

    def input(self, type: ArrayType) -> RecordBox:
        """The box of a new input of the program."""
        return box(type, self, self.builder.input(type))

    def inputs(self, types: Sequence[ArrayType]) -> list[RecordBox]:
        """The boxes of new inputs of these types."""
        builder = self.builder
        first = builder.count
        builder.in_types += types
        builder.count = first + len(types)
        return [box(t, self, number) for number, t in enumerate(types, first)]

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        # the two commonest arities by hand: this is the hottest path of all
        if len(operands) == 2:
            x, y = operands
            numbers: tuple[int, ...] = (
                x.number if x.run is self else self.number(x), y.number if y.run is self else self.number(y)
            )
            types: tuple[ArrayType, ...] = (x.type, y.type)
        elif len(operands) == 1:
            (x,) = operands
            numbers = (x.number if x.run is self else self.number(x),)
            types = (x.type,)
        else:
            numbers = tuple([x.number if x.run is self else self.number(x) for x in operands])
            types = tuple([x.type for x in operands])
        memo = op.memo
        out = (memo.result_types.get(types) or result_type(op, types)) if memo is not None else result_type(op, types)
        builder = self.builder
        builder.ops.append(op)
        builder.args.append(numbers)
        builder.types.append(out)
        code, offset = self.cell.site or user_site(2)
        builder.sites.codes.append(code)
        builder.sites.offsets.append(offset)
        number = builder.count
        if not op.multiple_results:
            builder.count = number + 1
            return box(out, self, number)
        if op.bodied and op.effects:
            builder.sites.codes[-1] = with_calls(code)
        builder.count = number + len(out)
        return tuple([box(t, self, number + i) for i, t in enumerate(out)])

    def inline(self, program: Program, operands: Sequence[Any], sites: Any = None) -> tuple[Any, ...]:
        """The results of a program whose equations are appended here, with renumbered variables.

        Without ``sites`` the program is a cached rule program: a generated function appends it. With ``sites``, one for
        each equation, a pure program with operands of exactly its input types is appended; any other is interpreted.
        """
        if sites is None:
            return recorder_of(program)(self, *operands)
        if not self.records_everything or program.effects or program.in_types != tuple([x.type for x in operands]):
            return Run.inline(self, program, operands, sites)
        builder = self.builder
        numbers_in = [self.number(x) for x in operands]
        consts = [self.number(const) for const in program.consts]
        count, shift = len(numbers_in), builder.count - len(numbers_in)

        def renumber(numbers: Sequence[int]) -> tuple[int, ...]:
            return tuple([n + shift if n >= count else numbers_in[n] if n >= 0 else consts[-1 - n] for n in numbers])

        types = program.value_types()
        builder.ops += program.ops
        builder.args += map(renumber, program.args)
        builder.types += program.types
        for site in sites:
            builder.sites.append(site)
        builder.count += len(types) - len(program.consts) - count
        known = [*operands, *reversed(program.consts)]
        return tuple([box(types[n], self, n + shift) if n >= count else known[n] for n in program.outs])

    def number(self, x: Any) -> int:
        """The variable of any value; a value of an enclosing handler, or a concrete one, becomes a constant.

        Raises: EscapedBox: the value belongs to a run that has ended or does not enclose this one.
        """
        run = x.run
        if run is self:
            return x.number
        if run is not None and (run is not self.outer or run.ended):  # no call for a value of ``outer``
            check_not_escaped(x, self.outer)
        if self.literals is None:
            return self.builder.const(x)
        if id(x) in self.literals or not is_shared(x):
            return self.builder.apart(x)
        return self.builder.apart_by_site(x, user_site(2))

    def made_at(self, number: int) -> Site:
        definition = self.builder.definition(number)
        return self.installed_at if definition is None else Site(*self.builder.sites[definition[0]])

    def apart(self, program: Program) -> Program:
        """``program``, to be interpreted over this record with constants of its own: equal ones of clauses differ."""
        own = _with_own_constants(program) if program.consts else program
        self.literals = {*map(id, own.consts)}
        for const in own.consts:
            self.builder.apart(const)
        return own

    def literal(self, x: Any) -> Any:
        """``x`` as a value of which the constant is no ``brought`` one."""
        if self.literals is None or x.run is not None:
            return x
        own = second(x)
        self.literals.add(id(own))
        return own

    def brought(self, program: Program) -> tuple[Any, ...]:
        """The constants of the recorded program that clauses have brought into it."""
        known = self.literals
        return () if known is None else tuple([const for const in program.consts if id(const) not in known])

    def freeze(self, outs: Sequence[Any], name: str = "program") -> Program:
        """The recorded program with these results."""
        program = self.builder.freeze([self.number(x) for x in outs], name)
        set_out_types(program, tuple([x.type for x in outs]))  # spares the program a pass over all its variables
        return program


@derived_once
def _with_own_constants(program: Program) -> Program:
    """The program with constants that are no other program's, by identity; boxes stay."""
    return program.with_consts([second(const) if const.run is None else const for const in program.consts])


@derived_once
def recorder_of(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The generated function ``(record, *operands) -> results`` that appends a cached rule program to a record."""
    return recording_function(program, RecordBox, user_site)


@starts_path
def record(
    f: Callable[..., Sequence[Any]], in_types: Sequence[ArrayType], name: str = "program", label: str | None = None
) -> Program:
    """The program of ``f``, which maps flat arrays to flat arrays, recorded over the handlers in force.

    ``label``: the function that records it, for messages; by default ``name``; empty where that is another handler.
    """
    outer = STACK.get()
    label = name if label is None else label
    cell = None if label else outer.cell  # what is part of another handler stands where that one's operation stands
    run = Record(outer, label, (cell and cell.site) or user_site(2))
    with installed(run):
        program = run.freeze(on_deep_stack(f, *run.inputs(in_types)), name)
    if config.current().check_leaks:
        check_leaks(run)
    return program


def record_apart(
    f: Callable[..., tuple[Sequence[Any], Any]], in_types: Sequence[ArrayType], kind: type[Record] = Record
) -> tuple[Program, Any]:
    """The program of ``results`` for ``results, rest = f(*values of in_types)``, and ``rest``.

    Recorded under no other handler, so that the program does not depend on the handlers in force and may be cached.
    """
    run = kind(BASE, "")
    with inside(run):
        results, rest = f(*run.inputs(in_types))
        return run.freeze(results), rest
