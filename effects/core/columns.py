"""Columns: the meaning that one handler gives to every operation, as a table of rules; and the built-in ones.

A rule is a cell of the matrix operations x columns. A function in an operation's block that is named after a column is
that cell. The cells of the built-in columns have these signatures:

    evaluate(op, *arrays) -> array                      NumPy in, NumPy out: the specification
    batch(op, dims, *xs) -> (y, dim)                    dims[i]: the mapped dimension of operand i, or None
    batch(op, dims, *xs, axis) -> (y, dim)              axis: the name of the mapped axis, or None, and its size
                         or None                        as without a rule: bodies are batched, effects as declared
    jvp(op, primals, tangents) -> (y, dy)               None is the symbolic zero
    transpose(op, ct, *operands, wrt) -> cotangent      linear operands come as their types; or, of all together,
    transpose(op, ct, *operands, linear) -> cotangents  linear[i]: whether operand i is linear
    decompose(op, *operands) -> result                  by other operations: for handlers without a rule, and ``lower``
    lower(op, emit, *values) -> value
    jet(op, series, count) -> series                    series[i]: terms of operand i, (x,) if it has no others
    collective(op, axis, size, dims, *xs) -> (y, dim)   an operation that names a mapped axis, at that axis
    ragged(op, run, types, *operands) -> results        lanes whose lengths differ; ``types`` are those of the results
    sparse(op, *operands) -> result                     arrays of which some are sparse (experimental.sparse), or dense
    masked(op, mask, *operands) -> result               select(mask, op(*operands), operands[0]), at the cost of a part
    sharding_rule(op, operands, results) -> ShardingRule  how results are cut, from types; or the entries of each result
    flops(op, operands, results) -> int                 operations on numbers, from the types of operands and results
    traffic(op, mesh, operands, results) -> {axis: Sent}  what a device sends along axes of a mesh, where devices meet
    default(op, *xs) -> answer                          an effect that no handler answers, as a clause of a handler

Where mathematics has a word for a rule, the cell is that word and no code: ``linear``, ``multilinear``, ``zero``.
"""

from __future__ import annotations

import inspect
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyrsistent import pmap

from ..base import config
from ..base.caches import clear_caches
from ..base.errors import BadArgument, BadStaticArgument, MissingRule, RegistrationError, need_operation_type, text_of
from ..base.frozen_values import Value
from ..base.source_locations import is_ours
from ..base.stack import perform
from ..types.array_type import ArrayType
from .cell_sources import Cell, shown, where_written

Rule = Callable[..., Any]
"""The meaning of an operation for one interpreter; the column of the rule says with which arguments it is called."""


class Column:
    """The rules by which one handler answers operations, overridden by the tables of a scope.

    An operation without a cell of its own has that of its nearest base class; the cell None says that it has no rule.
    An operation keeps its cells itself, so that they are freed with it.

    ``adapt(op_class, cell)`` makes the rule that the handler calls from the cell as written. ``default`` is the rule of
    operations without a cell; without a default they raise ``MissingRule``. ``load`` imports modules with further cells
    that few programs need; ``complete`` calls it. ``otherwise``, a column and a cell: operations that have a cell in
    that column and none in this one have this cell. A cell that is registered after its operation was asked for its
    rule empties all caches.

    Raises: RegistrationError: there is a column of that name, made in another module; or ``name`` is no identifier, or
    means something else in a block or in ``hx.columns``.
    """

    def __init__(
        self,
        name: str,
        adapt: Callable[[type[Any], Any], Rule] | None = None,
        doc: str = "",
        default: Rule | None = None,
        otherwise: tuple[Column, Any] | None = None,
    ):
        self.name = name
        self.module = sys._getframe(1).f_globals["__name__"]
        self._adapt = adapt
        self._default = default
        self._otherwise = otherwise
        self.followers: list[Column] = []  # columns whose cells follow from cells of this one
        if otherwise is not None:
            otherwise[0].followers.append(self)
        self.modes: dict[str, Rule] = {}  # by ``op.runs``: rules of higher-order operations without a cell
        self.load: Callable[[], Any] | None = None
        self.doc = doc
        free = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_"
        if not free or name in {*RESERVED, *globals()}:
            raise RegistrationError(
                f"column {text_of(name)}: a name is needed that means nothing else in a block or in hx.columns.",
                hint="name the column after what its handler does.",
            )
        if name in COLUMNS and COLUMNS[name].module != self.module:
            raise RegistrationError(
                f"column {name!r}: exists already, of {COLUMNS[name].module}.", hint="choose another name."
            )
        COLUMNS[name] = self

    def adapt(self, op: type[Any], cell: Any) -> Any:
        """The rule of ``op`` that the handler calls, from the cell as written; of None, no rule, it is None."""
        if cell is None:
            return None
        rule = op.adapt(self.name, cell) if hasattr(op, "adapt") else cell
        if not callable(rule) and not (self is LOWER and isinstance(rule, str)):
            raise RegistrationError(
                f"{self.name}: the rule of {op.__name__} must be callable, got {text_of(rule)}.",
                hint="it is a function; what hx.ctl and hx.final make is a clause of a handler.",
            )
        return self._adapt(op, rule) if self._adapt is not None else rule

    def rule(self, op: type[Any], *others: type[Any]) -> Callable[[Any], Any]:
        """Decorator: this function is the cell of ``op`` and ``others``, operations or base classes of several.

        A second cell for one class is an error, unless it is written at the same line, or has the same name in the same
        module, as when a notebook's cell is executed again: then it replaces the first. So is a cell of the user's for
        an operation of the package that inherits one.
        """
        kinds, caller = (op, *others), sys._getframe(1)
        line, ours = (caller.f_code.co_filename, caller.f_lineno), is_ours(caller.f_globals.get("__name__", ""))
        for kind in kinds:
            need_operation_type(self.name, "rules", kind)

        def register(cell: Any) -> Any:
            places = frozenset((line, *_named(cell)))
            for kind in kinds:
                self._need_free(kind, places, ours)
                self.assign(kind, cell, places)
            return cell

        return register

    def _need_free(self, op: type[Any], places: frozenset[Any], ours: bool) -> None:
        """Raise RegistrationError if ``op`` has a cell that is written at other places, or the package's inherits one.

        ``ours``: whether the package registers another one.
        """
        known = op._cells.get(self.name)
        if known is None and is_ours(op.__module__) and not ours and self.registered(op) is not None:
            known = Cell(self._cell_written(op), frozenset())
        if known is not None and known.rule is not None and known.places.isdisjoint(places):
            raise RegistrationError(
                f"{self.name}: {op.__name__} has a rule already, at {where_written(known.rule)}.",
                hint=f"put another one in force in a scope: hx.rules({self.name}={{{op.__name__}: rule}}).",
            )

    def assign(self, op: type[Any], cell: Any, places: frozenset[Any] = frozenset()) -> None:
        """Make ``cell`` the cell of ``op`` from now on, whichever it had; empties all caches if that was asked for."""
        rule = self.adapt(op, cell)
        op._cells[self.name] = Cell(cell, places)
        if _forget(self, op):
            clear_caches()
        op._rules[self] = rule

    def mode(self, runs: str) -> Callable[[Any], Any]:
        """Decorator: the rule of all higher-order operations with this ``runs`` that have no cell of their own."""

        def register(cell: Any) -> Any:
            self.modes[runs] = cell
            return cell

        return register

    def complete(self) -> Column:
        """The column itself, after importing the modules in which the package defines further cells of it."""
        load = self.load
        if load is not None:  # of threads that come at once each loads; modules are imported once
            load()
            self.load = None
        return self

    def find(self, kind: Any) -> Rule:
        """The rule in force for operations of this class: that of ``hx.rules``, else of the block, else of ``op.runs``.

        In a scope and in blocks it is that of the nearest class in the method resolution order.

        Raises: MissingRule: there is none, and the column has no default.
        """
        if config.CONFIG.get().settings.mark is None:  # there are tables
            cell = self._cell_in_scope(kind)
            if cell is not None:
                return self.adapt(kind, cell)
        try:
            rule = kind._rules[self]
        except (KeyError, AttributeError):  # it was not asked for yet, or this is no operation type
            need_operation_type(self.name, "rules", kind)
            rule = self.registered(kind)
        if rule is None and kind.bodied:
            rule = self.modes.get(kind.runs)
        return rule if rule is not None else self.missing(kind)

    def registered(self, kind: type[Any]) -> Rule | None:
        """The rule of operations of this class outside of any scope, their own or a base class's, or None."""
        rules: dict[Column, Rule | None] = kind._rules
        try:
            return rules[self]
        except KeyError:
            rules[self] = self.adapt(kind, self._cell_written(kind))
            return rules[self]

    def has(self, kind: type[Any]) -> bool:
        """Whether operations of this class have a cell, their own or a base class's, registered or in this scope."""
        rules = kind._rules
        return (rules[self] if self in rules else self.registered(kind)) is not None or self.in_scope(kind)

    def in_scope(self, kind: type[Any]) -> bool:
        """Whether the rule in force for operations of this class is that of a scope: ``with hx.rules(...)``."""
        return config.CONFIG.get().settings.mark is None and self._cell_in_scope(kind) is not None

    def cell(self, kind: type[Any]) -> Any:
        """The cell in force for operations of this class, as written; None: there is none."""
        cell = self._cell_in_scope(kind)
        return self._cell_written(kind) if cell is None else cell

    def _cell_in_scope(self, kind: type[Any]) -> Any:
        table = config.current().tables.get(self.name, {})
        return next((table[base] for base in kind.__mro__ if base in table), None)

    def _cell_written(self, kind: type[Any]) -> Any:
        cells = [vars(base).get("_cells", {}) for base in kind.__mro__]
        written = [found[self.name].rule for found in cells if self.name in found]
        if written or self._otherwise is None:
            return written[0] if written else None
        column, cell = self._otherwise
        return cell if column.registered(kind) is not None else None

    def missing(self, kind: type[Any]) -> Rule:
        """The default rule, for a class without a cell; raises MissingRule where there is none."""
        if self._default is not None:
            return self._default
        raise MissingRule(
            f"{self.name}: {kind.name} has no rule in this column.",
            hint=kind.how_to_add(self.name),
        )

    def __repr__(self) -> str:
        return f"<column {self.name}>"


COLUMNS: dict[str, Column] = {}
RESERVED: set[str] = set()
"""Names that every operation has, which no column can have."""


def _named(cell: Any) -> list[tuple[str, str]]:
    """The module and name of a function; none of a lambda, of ``def _`` and of other cells."""
    name = getattr(cell, "__qualname__", "_")
    return [] if name.rpartition(".")[2] in ("_", "<lambda>") else [(getattr(cell, "__module__", ""), name)]


def _forget(column: Column, op: type[Any]) -> bool:
    """Forget which rules of a column a class and its subclasses have; whether any was asked for."""
    own = [op._rules.pop(forgotten, op) is not op for forgotten in (column, *column.followers)]
    return any([_forget(column, kind) for kind in op.__subclasses__()] + own)


def _has_parameter(cell: Any, parameter: str) -> bool:
    code = getattr(cell, "__code__", None)
    if code is not None:
        return parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return parameter in inspect.signature(cell).parameters


def _adapt_transpose(op: type[Any], cell: Any) -> Callable[..., Any]:
    """``rule(op, ct, operands, linear)``: a cotangent for each operand i, None where not ``linear[i]``.

    A cell with a parameter ``linear`` returns all cotangents; a cell with a parameter ``wrt`` returns that of operand
    ``wrt``; a cell with neither, of an operation with one operand, returns that operand's.
    """
    if _has_parameter(cell, "linear"):
        return lambda op, ct, operands, linear: cell(op, ct, *operands, linear=linear)
    if _has_parameter(cell, "wrt"):
        return lambda op, ct, operands, linear: [
            cell(op, ct, *operands, wrt=i) if yes else None for i, yes in enumerate(linear)
        ]
    return lambda op, ct, operands, linear: [cell(op, ct, *operands) if yes else None for yes in linear]


class AxisRule(Value):
    """A batch rule with a parameter ``axis``, which gets the name of the mapped axis, or None, and its size."""

    cell: Rule

    def __call__(self, op: Any, dims: Any, *xs: Any, axis: tuple[Any, int]) -> Any:
        return self.cell(op, dims, *xs, axis=axis)


def _adapt_batch(op: type[Any], cell: Any) -> Rule:
    return AxisRule(cell) if _has_parameter(cell, "axis") else cell


class ElementwiseLowering:
    """The rule of ``lower`` for a cell that is a string: the name of an elementwise operation of StableHLO or CHLO.

    ``of_complex``: the rule for complex operands where the named operation is for real ones alone, else None.
    """

    __slots__ = ("name", "is_stablehlo", "of_complex")

    def __init__(self, name: str, of_complex: Callable[..., Any] | None = None):
        self.name = name
        self.is_stablehlo = not name.startswith("chlo.")
        self.of_complex = of_complex

    def __call__(self, op: Any, emit: Any, *values: Any) -> Any:
        if self.of_complex is not None and values[0].type.dtype.kind == "c":
            return self.of_complex(op, emit, *values)
        return emit.elementwise(self.name, *values)

    def __repr__(self) -> str:
        return shown(self.name) + ", of complex numbers another formula" * (self.of_complex is not None)


def decomposed(op: Any, emit: Any, *values: Any) -> Any:
    """The rule of ``lower`` of an operation that has a cell of ``decompose`` instead: that of the operations in it."""
    return emit.decompose(partial(DECOMPOSE.find(type(op)), op), *values)


EVALUATE = Column("evaluate", doc="NumPy's meaning; the specification of the operation")
BATCH = Column("batch", _adapt_batch, doc="one more axis (vmap)")
JVP = Column("jvp", doc="forward derivative")
TRANSPOSE = Column("transpose", _adapt_transpose, doc="the adjoint of a linear operation")
DECOMPOSE = Column("decompose", doc="the same by other operations; without a cell of lower its lowering too")
LOWER = Column(
    "lower", lambda op, cell: ElementwiseLowering(cell) if isinstance(cell, str) else cell, doc="StableHLO",
    otherwise=(DECOMPOSE, decomposed),
)
COLLECTIVE = Column("collective", doc="an operation that names an axis, at the handler that binds it")


def per_result(op: Any, operands: tuple[Any, ...], results: tuple[Any, ...]) -> int:
    """One operation per element of the results."""
    return sum([t.size for t in results])


def per_operand(op: Any, operands: tuple[Any, ...], results: tuple[Any, ...]) -> int:
    """One operation per element of the first operand: reductions."""
    return int(operands[0].size)


def data_movement(op: Any, operands: tuple[Any, ...], results: tuple[Any, ...]) -> int:
    """Zero floating-point operations: elements are moved, none is computed."""
    return 0


SHARDING_RULE = Column("sharding_rule", doc="which dimensions are cut alike over a mesh with explicit axes")
FLOPS = Column("flops", doc="how many operations on numbers; without a cell one per result element", default=per_result)
RAGGED = Column("ragged", doc="an axis whose length differs from lane to lane (vmap)")
SPARSE = Column("sparse", doc="sparse arrays: their stored entries alone (sparsify)")
MASKED = Column("masked", doc="where a mask is true, else the first operand (loops of vmap)")
JET = Column("jet", doc="Taylor series; without a cell from the forward derivative")
TRAFFIC = Column("traffic", doc="what one device sends along each axis of its mesh; without a cell nothing")
DEFAULT = Column("default", doc="the clause of an effect that no handler answers")


def __getattr__(name: str) -> Column:
    """``columns.batch``: every column by its name, third-party ones included."""
    if name in COLUMNS:
        return COLUMNS[name].complete()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def rules(**tables: Mapping[type[Any], Any]) -> Iterator[None]:
    """Override rules for the extent of a ``with`` block: ``with hx.rules(jvp={Sin: mine}):``.

    The rule of a base class, such as ``hx.Operation``, is that of all its operations of which the tables name no nearer
    one. The tables in force are part of the configuration, and so of every cache key.

    Raises: BadStaticArgument: there is no column of that name. BadArgument: a key is no operation type.
    RegistrationError: a rule cannot be called.
    """
    for name, table in tables.items():
        if name not in COLUMNS:
            raise BadStaticArgument(f"rules: there is no column {name!r}.", hint=f"columns are {', '.join(COLUMNS)}.")
        if not isinstance(table, Mapping):
            raise BadArgument(
                f"rules: {name} needs a mapping from operation types to rules, got {text_of(table)}.",
                hint=f"hx.rules({name}={{Sin: rule}}).",
            )
        for op, cell in table.items():
            need_operation_type(f"rules, {name}", "rules", op)
            COLUMNS[name].adapt(op, cell)
    in_force = config.current().tables
    for name, table in tables.items():
        in_force = in_force.set(name, in_force.get(name, pmap()).update(table))
    with config.configure(tables=in_force):
        yield


def linear(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Linear in the tuple of all operands: the derivative is the operation itself."""
    y = perform(op, *primals)
    if None in tangents:
        tangents = tuple([zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents)])
    return y, perform(op, *tangents)


def multilinear(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Linear in each operand with the others fixed: the derivative is a sum of one term per operand."""
    y, dy = perform(op, *primals), None
    for i, dx in enumerate(tangents):
        if dx is not None:
            dy = add_tangents(dy, perform(op, *primals[:i], dx, *primals[i + 1 :]))
    return y, dy


def componentwise(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Linear, result i in operand i alone: the derivative is the operation on the tangents that are not zero."""
    dys = iter(perform(op, *[dx for dx in tangents if dx is not None]))
    return perform(op, *primals), tuple([None if dx is None else next(dys) for dx in tangents])


class LinearIn(Value):
    """The jvp rule of an operation that is linear in the operands at ``positions`` taken together."""

    positions: tuple[int, ...]

    def __call__(self, op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        y = perform(op, *primals)
        if all([tangents[i] is None for i in self.positions]):
            return y, None
        operands = list(primals)
        for i in self.positions:
            operands[i] = zeros_like(primals[i]) if tangents[i] is None else tangents[i]
        return y, perform(op, *operands)

    def __repr__(self) -> str:
        return f"linear_in({', '.join(map(str, self.positions))})"


def linear_in(*positions: int) -> Callable[..., Any]:
    """The jvp rule of an operation linear in these operands together; others, such as indices, have no tangent."""
    return LinearIn(positions)


def is_linear(cell: Any) -> bool:
    """Whether a cell of ``jvp`` says that the operation is linear in all operands together, or in some of them."""
    return cell is linear or type(cell) is LinearIn


def linear_together(op: Any, positions: Sequence[int], ranks: Sequence[int]) -> Sequence[int]:
    """The operands in which the operation is linear together, the others fixed: those at ``positions``, and where these
    are not all, numbers. Empty: there is no such set. ``ranks``: of all operands.
    """
    cell, every = JVP.cell(type(op)), range(len(ranks))
    if cell is multilinear or op.contracts:
        return positions if len(positions) == 1 else ()
    found = every[op.linear_in] if op.linear_in is not None else every if cell is linear else ()
    found = cell.positions if type(cell) is LinearIn else found
    rest = [i for i in found if i not in positions]
    return found if {*positions} <= {*found} and not any([ranks[i] for i in rest]) else ()


def zero(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Constant almost everywhere: the derivative is zero."""
    y = perform(op, *primals)
    return y, (None,) * len(y) if op.multiple_results else None


class TangentArithmetic:
    """Addition and zeros of tangents, set on import by the modules that define these operations."""

    add: Callable[[Any, Any], Any]
    zeros: Callable[[Any], Any]


def add_tangents(a: Any, b: Any) -> Any:
    """``a + b``, where None is the symbolic zero."""
    if a is None:
        return b
    if b is None:
        return a
    return TangentArithmetic.add(a, b)


def zeros_like(x: Any) -> Any:
    """An array of zeros of the type of the array ``x``, or of the ArrayType ``x``."""
    return TangentArithmetic.zeros(x if isinstance(x, ArrayType) else x.type)
