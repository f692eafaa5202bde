"""Operations: frozen dataclasses, each one thing that a program may perform; its fields are the static parameters.

The decorators ``@operation`` and ``@effect`` make the class from a block: annotations become fields, and a function
named after a column becomes the operation's rule in that column. A plain subclass of ``Operation`` is a family. An
operation inherits the cells of its base classes, except where its block has its own.

Operations compare and hash by the type and bit pattern of their fields: 1, 1.0, True, 0.0 and -0.0 all differ.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform, overload

from ..base.caches import AttachedCache, Cache, Owners
from ..base.errors import (
    BadArgument,
    BadCall,
    BadStaticArgument,
    MissingRule,
    RegistrationError,
    ShardingTypeError,
    need_one_of,
    text_of,
)
from ..base.immutables import ImmutableObject, setter
from ..base.later_layers import LaterLayers
from ..base.source_locations import is_ours
from ..base.value_identity import bits
from ..sharding.sharding_rules import Sums, cut_results, hidden, shown, summed_axes
from ..types.array_type import INVARIANT, Space
from ..types.declared_types import in_array_types, leaf_types
from ..types.extent import unbound
from .cell_sources import Cell
from .columns import COLUMNS, DEFAULT, JVP, LOWER, RESERVED, SHARDING_RULE, Column, Rule, componentwise, linear_together
from .parameters import Parametrised, annotations_of, check_block, field_names, how_to_make, need_declared

C = TypeVar("C")
K = TypeVar("K", bound=type)


class Operation(Parametrised, ImmutableObject):
    """The base of all operations. Users make operations by ``@operation`` and ``@effect``, not by subclassing.

    The class variables are declarations that a block may make of its operation; interpreters read them, and never the
    operation's name.
    """

    __slots__ = ("_key", "_hash", "memo")
    _guard = ("operations", "dataclasses.replace(op, field=value) makes another one.")
    _key: Any  # None until it is computed: reading a slot that is not set takes 1 us
    _hash: int | None
    memo: Memo | None  # of an object that many equations share, or of a class without fields; else None
    name: ClassVar[str] = "operation"
    multiple_results: ClassVar[bool] = False  # the result is a tuple
    effectful: ClassVar[bool] = False  # an effect: never dropped, merged, or reordered among its own kind
    bodied: ClassVar[bool] = False  # a higher-order operation: it has programs, its bodies
    named: ClassVar[bool] = False  # refers to a named axis
    has_row: ClassVar[bool] = False  # derived, one of these three: its effect row may have elements
    deferred: ClassVar[bool] = False  # it has a ``rule`` that is recorded on demand, which handlers transform
    answers_zero: ClassVar[bool] = False  # its adjoint, a user's rule, may not be zero for a zero cotangent
    contracts: ClassVar[bool] = False  # a contraction or convolution, which is expensive to recompute
    summed_dims: ClassVar[Any] = ()  # of an operation with a method ``of_parts``: those of each operand that it sums
    linear_in: ClassVar[slice | None] = None  # where its cell of jvp is code: the operands in which it is linear
    cheap_to_recompute: ClassVar[bool] = False  # recomputed in reverse mode rather than stored as a residual
    costly: ClassVar[bool] = False  # XLA computes its result once, rather than in each kernel that reads it
    rounding: ClassVar[str] = "loose"  # of floats; the nearest one is "correct", or that of a "sum" or a "product"
    checkpoint_name: ClassVar[str | None] = None  # its result's name in checkpoint policies
    vmap: ClassVar[str] = "refuse"  # of an effect under vmap: performed ``once``, ``per_lane``, or an error
    diff: ClassVar[str] = "refuse"  # of an effect on tangents: ``stop``, no derivative, or an error
    scopes: ClassVar[int] = 0  # how many functions an effect takes before its operands
    states_cut: ClassVar[bool] = False  # its result_type says how results are cut over a mesh; it has no sharding rule
    is_view: ClassVar[bool] = False  # compiled, results are the operands' memory, read otherwise
    keeps_memory: ClassVar[bool] = False  # operands may lie in the host's memory; others are read in the device's
    placed: ClassVar[Any] = None  # of one that moves arrays between devices: the function of concrete ones that does so
    calls_host: ClassVar[bool] = False  # leaves the device: each device of a mesh does so, whatever lanes of vmap do
    dtypes: ClassVar[frozenset[Any] | None] = None  # those that operands may have; None: not declared
    exempt: ClassVar[Mapping[str, str]] = {}  # law or column -> why it does not apply
    _setters: ClassVar[tuple[Callable[..., None], ...]] = ()
    _names: ClassVar[tuple[str, ...]] = ()
    _cells: ClassVar[dict[str, Cell]] = {}  # by column, of this class alone
    _rules: ClassVar[dict[Column, Rule | None]] = {}  # those found, its own or of a base class; None: there is none

    def __init_subclass__(cls, **options: Any) -> None:
        """A plain subclass is a family: its attributes named after columns are cells, which its operations inherit."""
        super().__init_subclass__(**options)
        written = _cells_in(vars(cls), cls.__module__)
        cls._cells, cls._rules = {name: Cell(cell, frozenset()) for name, cell in written.items()}, {}

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        setters = self._setters
        if kwargs or len(args) != len(setters):
            args = self._bind(args, kwargs)
        _set_memo(self, None)
        _set_key(self, None)
        _set_hash(self, None)
        for assign, value in zip(setters, args):
            assign(self, value)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values of the fields, in order, from the arguments of a call: what a dataclass's ``__init__`` does.

        Raises: BadCall: a field is missing, unknown or given twice.
        """
        cls, names = type(self), self._names
        if len(args) > len(names):
            raise BadCall(f"{cls.__name__} has {len(names)} fields, got {len(args)} arguments.", hint=how_to_make(cls))
        values = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names or name in values:
                what = f"{cls.__name__} has no free field {name!r}; its fields are {names}."
                raise BadCall(what, hint=how_to_make(cls))
            values[name] = value
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if field.name not in values:
                if field.default is not dataclasses.MISSING:
                    values[field.name] = field.default
                elif field.default_factory is not dataclasses.MISSING:
                    values[field.name] = field.default_factory()
                else:
                    raise BadCall(f"{cls.__name__} misses its field {field.name!r}.", hint=how_to_make(cls))
        return tuple(values[name] for name in names)

    @property
    def fields(self) -> tuple[Any, ...]:
        """The values of the fields, in order."""
        return tuple([getattr(self, name) for name in self._names])

    @property
    def key(self) -> Any:
        """The type and bit pattern of each field, by which operations compare and hash; computed once.

        Raises: BadStaticArgument: a field cannot be hashed.
        """
        key = self._key
        if key is None:
            try:
                key = tuple([bits(getattr(self, name)) for name in self._names])
                _set_hash(self, hash((type(self), key)))
            except TypeError as error:
                raise BadStaticArgument(
                    f"{self.name}: fields must be hashable, got {self!r}.",
                    hint="use tuples and frozen values; an array is an operand instead of a field.",
                ) from error
            _set_key(self, key)
        return key

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or (hash(self) == hash(other) and self.key == other.key)

    def __hash__(self) -> int:
        if self._hash is None:
            _ = self.key  # sets the hash too
        return self._hash  # type: ignore[return-value]

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> Any:
        return type(self), self.fields

    def result_type(self, *types: Any) -> Any:
        """The type of the result, a tuple of types if ``multiple_results``, from the fields and operand types alone."""
        raise MissingRule(f"{self.name}: there is no result_type in its block.")

    @classmethod
    def how_to_add(cls, column: str) -> str:
        """The remedy where it has no rule in a column."""
        return (
            f"write a function `{column}` in its block, or add it from outside: "
            f"@hx.columns.{column}.rule({cls.__name__})."
        )

    def varies(self, operands: frozenset[Any]) -> frozenset[Any]:
        """The axes of a mesh along which the results vary; ``operands``: those along which an operand does."""
        return operands

    def partial_sums(self, types: Sequence[Any]) -> Sums:
        """The axes of a mesh along which the results are unreduced, and those along which they are reduced.

        Raises: ShardingTypeError: operands are partial sums, and it is not linear in them.
        """
        together = lambda positions: linear_together(self, positions, [len(t.shape) for t in types])
        return summed_axes(self.name, types, together, self.contracts)

    def as_results(self, y: Any) -> Any:
        """The results of performing, or their types, as a sequence: ``(y,)`` unless there are ``multiple_results``."""
        return y if self.multiple_results else (y,)

    def from_results(self, results: Sequence[Any]) -> Any:
        """The inverse of ``as_results``."""
        return tuple(results) if self.multiple_results else results[0]

    def result_tree(self, *types: Any) -> Any:
        """The result of an effect as its block declares it: None, a type, or a tree of types."""
        raise MissingRule(f"{self.name}: there is no result_type in its block.")

    def clause_arguments(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a clause takes after the operation, from the operands: these, by default."""
        return operands

    def workload_size(self, *types: Any) -> float:
        """The size to which the estimated time is proportional: by default that of the largest operand or result.

        An infinite size means that NumPy must not evaluate the operation.
        """
        return max([t.size for t in (*types, *self.as_results(result_type(self, types)))], default=0)

    def of_all_lanes(self, crossed: int) -> Any:
        """The operation that performs this effect for all lanes at once, with lanes along axis 0; None if it has none.

        ``crossed``: the number of enclosing loops that are inside the mapped function.
        """
        return None

    @property
    def remedy(self) -> str:
        """The hint of the error for an effect without a handler; empty for the general one."""
        return ""

    def numpy_function(self, types: Sequence[Any]) -> Callable[..., Any] | None:
        """A function of the operands alone that equals ``evaluate`` on operands of these types, or None."""
        return None

    @classmethod
    def adapt(cls, column: str, cell: Any) -> Rule:
        """The rule of ``column`` from the cell in a block. Families whose cells have a shorter form override this."""
        return cell

    @property
    def effects(self) -> frozenset[Any]:
        """The effects that performing this adds to an effect row: none for a pure operation."""
        return frozenset((self,)) if self.effectful else EMPTY_ROW


def _cells_in(namespace: Mapping[str, Any], module: str) -> dict[str, Any]:
    """The cells in the namespace of a class of this module. A user's column has none in classes of the package."""
    others = namespace.get("__slots__", ())  # fields
    return {
        name: namespace[name]
        for name, column in COLUMNS.items()
        if name in namespace and name not in others and (is_ours(column.module) or not is_ours(module))
    }


RESERVED.update(dir(Operation))
EMPTY_ROW: frozenset[Any] = frozenset()
_set_key, _set_hash, _set_memo = (setter(Operation, name) for name in ("_key", "_hash", "memo"))
_SHARED = Cache("shared operations")
"""One object, with a memo, for all equal operations."""


class Memo:
    """The caches of an operation that many equations share; one module writes each of them.

    result_types     types of the operands -> type of the result; result_trees: -> the result as an effect declares it
    functions        type of the operand, or types of all -> executor, the function of concrete arrays
    rule_programs    (settings, types and marks of the operands) -> cached rule program; False: not cacheable
    splits           (unknown operands, policy, settings) -> an operation with bodies, partitioned
    facts            of an operation with a rule of the user's, what is derived from it; None: nothing yet
    """

    __slots__ = ("result_types", "result_trees", "functions", "rule_programs", "splits", "facts", "__weakref__")

    def __init__(self) -> None:
        self.result_types: dict[tuple[Any, ...], Any] = {}
        self.result_trees: dict[tuple[Any, ...], Any] = {}
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.rule_programs: dict[tuple[Any, ...], Any] = {}
        self.splits: dict[tuple[Any, ...], Any] = {}
        self.facts: Any = None
        MEMOS.add(self)


MEMOS = Owners()
RESULT_TYPES = AttachedCache("result types", "result_types", 1 << 16, MEMOS)
"""The types of an operation's results by those of its operands, attached to the operation."""


def shared(kind: Callable[..., C], *fields: Any) -> C:
    """The interned operation with these fields: one object for equal fields, with a memo.

    Fields are compared by ``==``, so that they must be canonical: 1, and neither 1.0 nor True.
    """
    op = _SHARED.entries.get((kind, fields))
    return _SHARED.add((kind, fields), with_memo(kind(*fields))) if op is None else op


def with_memo(op: C) -> C:
    """``op`` itself, after giving it a new memo, for an operation that many equations will share."""
    _set_memo(op, Memo())
    return op


# name -> operation, for parsing programs; and "module:qualname" -> operation for all of them
OPERATIONS: dict[str, type[Operation]] = {}
# name -> the module that defines the operation when it is imported, of operations of the package
LATE_OPERATIONS: dict[str, str] = {}
_READABLE = re.compile(r"(?!(return|inf|nan)$)[A-Za-z_]\w*(-[A-Za-z]\w*)*")


def qualified_name(kind: type[Operation]) -> str:
    """``module:qualname`` of an operation's class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def register_operation_name(kind: type[Operation]) -> None:
    """Enter a new operation in ``OPERATIONS``, by its qualified name, and by its name if no other operation has that.

    A name in ``LATE_OPERATIONS`` is kept for the operation of that module.
    A block that is executed again (a notebook's cell, a reloaded module) replaces its former operation.
    """
    qualified = qualified_name(kind)
    known, module = OPERATIONS.get(kind.name), LATE_OPERATIONS.get(kind.name, kind.__module__)
    if qualified_name(known) == qualified if known else module == kind.__module__:
        OPERATIONS[kind.name] = kind
    OPERATIONS[qualified] = kind


def text_name(kind: type[Operation]) -> str:
    """The name of an operation in the text of a program: ``OPERATIONS[text_name(kind)] is kind``."""
    return kind.name if OPERATIONS.get(kind.name) is kind and _READABLE.fullmatch(kind.name) else qualified_name(kind)


_OF_PYTHON = 1 << 9  # CPython's Py_TPFLAGS_HEAPTYPE


def _build(cls: type, effectful: bool, default: Rule | None = None, **declarations: Any) -> type[Operation]:
    """The operation class of a block: fields become slots, functions named after a column become cells.

    ``default``: the cell of that column, where the block has none.
    """
    if not isinstance(cls, type):
        name = "effect" if effectful else "operation"
        raise BadArgument(f"{name}: a class is needed, got {text_of(cls)}.", hint=f"write @hx.{name} above a class.")
    if not cls.__flags__ & _OF_PYTHON:
        raise BadArgument(f"{cls.__name__}: a block must be a class that is written in Python, it is built in.")
    if "__slots__" in vars(cls) and annotations_of(cls):
        raise RegistrationError(
            f"{cls.__name__}: a block declares its fields by annotations alone, got __slots__ too.",
            hint="leave __slots__ out: they are made of the fields.",
        )
    if not is_ours(cls.__module__):
        check_block(cls, Operation, effectful)
    if declarations.get("scopes"):
        cls = LaterLayers.scoped_block(cls)
    cells = _cells_in(vars(cls), cls.__module__)
    if DEFAULT.name in cells and not effectful:
        raise RegistrationError(
            f"{cls.__name__}: an effect has a default, a pure operation does not.",
            hint="evaluate and lower say what it means; or declare it with @hx.effect.",
        )
    of_class = ("__dict__", "__weakref__", "_cells", "_rules", *cells)
    namespace = {name: value for name, value in cls.__dict__.items() if name not in of_class}
    kind: Any = _class_with_slots(cls, namespace)
    inherited: Any = kind.__bases__[0]
    if effectful:  # the block declares a tree; equations have its leaves
        kind.result_tree = namespace.get("result_type") or _inherited_tree(cls, inherited)
        kind.result_type = leaf_types
        kind.multiple_results = True
    elif "result_type" in namespace and not is_ours(kind.__module__):
        kind.result_type = in_array_types(namespace["result_type"])
    kind.effectful = effectful or inherited.effectful
    kind.has_row = kind.effectful or kind.bodied or kind.named
    if not kind._names:
        kind.memo = Memo()
    for name, value in declarations.items():
        setattr(kind, name, value)
    for column, cell in cells.items():
        COLUMNS[column].rule(kind)(cell)
    if default is not None:
        DEFAULT.rule(kind)(default)
    register_operation_name(kind)
    if not is_ours(kind.__module__):
        kind.__init__ = _init_outside
    elif "__post_init__" in namespace:
        kind.__init__ = _checked_init
    return kind


def _inherited_tree(cls: type, base: Any) -> Any:
    """The ``result_tree`` of an effect without a ``result_type`` of its own: what its base class declares.

    Raises: RegistrationError: that declares none either.
    """
    if base.result_type is Operation.result_type and base.result_tree is Operation.result_tree:
        raise RegistrationError(
            f"effect: {cls.__name__} must declare the type of its result, there is no result_type in its block.",
            hint="def result_type(op): return None where it has none.",
        )
    declares = base.result_type not in (leaf_types, Operation.result_type)
    return base.result_type if declares else base.result_tree


def _class_with_slots(cls: type, namespace: dict[str, Any]) -> Any:
    """A subclass of ``Operation`` with this namespace, its fields as slots, which ``dataclasses.fields`` reads."""
    annotations = annotations_of(cls)
    names = field_names(cls, _cells_in(vars(cls), cls.__module__))
    need_declared(cls, cls.__bases__[0] if issubclass(cls, Operation) else Operation)
    # Attributes of base classes are defaults too: HigherOrder declares those of shared, carry and length.
    defaults = {name: getattr(cls, name) for name in names if not isinstance(getattr(cls, name, property()), property)}
    for name in defaults:  # a default and a slot cannot share a name, so they stand in __dataclass_fields__ alone
        namespace.pop(name, None)
    bases = cls.__bases__ if issubclass(cls, Operation) else (Operation,)
    if bases == (Operation,) and cls.__bases__ not in ((object,), (Operation,)):
        listed = ", ".join([base.__name__ for base in cls.__bases__])
        raise RegistrationError(
            f"{cls.__name__}: the base class of a block must be an operation, got {listed}, whose attributes it would "
            "not have.",
            hint=f"make a family of it: class {cls.__bases__[0].__name__}(hx.Operation).",
        )
    inherited: Any = bases[0]
    new = tuple([name for name in names if name not in inherited._names])
    every = (*inherited._names, *new)
    namespace.setdefault("name", snake_case(cls.__name__))
    namespace["__doc__"] = cls.__doc__ or cls.__name__
    kind: Any = type(cls.__name__, bases, {"__slots__": new, **namespace, "_names": every, "__match_args__": every})
    kind._setters = (*inherited._setters, *(setter(kind, name) for name in new))
    kind.__dataclass_fields__ = _DataclassFields(kind, {name: annotations[name] for name in names}, defaults)
    if defaults:
        _ = kind.__dataclass_fields__  # checks them
    kind.__dataclass_params__ = _FROZEN
    kind.__qualname__ = cls.__qualname__
    return kind


class _DataclassFields:
    """``__dataclass_fields__`` of an operation's class: made when first read, which few programs do."""

    def __init__(self, kind: Any, annotations: dict[str, Any], defaults: dict[str, Any]):
        self.kind, self.annotations, self.defaults = kind, annotations, defaults

    def __get__(self, op: Any, kind: Any) -> dict[str, Any]:
        block: Any = type("Fields", (), {"__doc__": "fields", "__annotations__": self.annotations, **self.defaults})
        own = dataclasses.dataclass(init=False, repr=False, eq=False)(block).__dataclass_fields__
        self.kind.__dataclass_fields__ = {**getattr(self.kind.__bases__[0], "__dataclass_fields__", {}), **own}
        return self.kind.__dataclass_fields__


def _checked_init(self: Any, /, *args: Any, **kwargs: Any) -> None:
    """The ``__init__`` of operations of the package with a ``__post_init__``, which is called after it."""
    Operation.__init__(self, *args, **kwargs)
    self.__post_init__()


def _init_outside(self: Any, /, *args: Any, **kwargs: Any) -> None:
    """The ``__init__`` of users' operations: a length of the current lane in a field becomes its symbolic dimension."""
    Operation.__init__(self, *map(unbound, args), **{name: unbound(value) for name, value in kwargs.items()})
    if hasattr(self, "__post_init__"):
        self.__post_init__()


@dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    pass


_FROZEN = _Frozen.__dataclass_params__  # type: ignore[attr-defined]


def snake_case(name: str) -> str:
    """The name of an operation in texts, from that of its class."""
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


@dataclass_transform(frozen_default=True)
def operation(cls: K) -> K:
    """Make a class a pure operation, which handlers may drop, merge or reorder.

    >>> @operation
    ... class Double:
    ...     def result_type(op, x): return x
    >>> Double() == Double()
    True
    """
    return _build(cls, effectful=False)  # type: ignore[return-value]


InVmap = Literal["once", "per_lane", "refuse", "bodies"]
InDerivatives = Literal["stop", "refuse", "bodies"]


@overload
@dataclass_transform(frozen_default=True)
def effect(
    cls: K, *, vmap: InVmap = "refuse", diff: InDerivatives = "refuse", default: Rule | None = None, scopes: int = 0
) -> K: ...
@overload
@dataclass_transform(frozen_default=True)
def effect(
    cls: None = None, *, vmap: InVmap = "refuse", diff: InDerivatives = "refuse", default: Rule | None = None,
    scopes: int = 0,
) -> Callable[[K], K]: ...
def effect(
    cls: Any = None, *, vmap: InVmap = "refuse", diff: InDerivatives = "refuse", default: Any = None, scopes: int = 0
) -> Any:
    """Make a class an effect: an operation that is never dropped, merged, duplicated, or reordered among its own kind.

    Args:
        vmap: ``once`` (performed once for all lanes), ``per_lane``, or ``refuse`` (an error).
        diff: what an operand with a tangent means, where the handler stands outside of ``grad`` and the block has no
            ``jvp``: ``refuse`` (an error) or ``stop`` (no derivative: its answer is a constant to ``grad``, so that
            the derivative of a draw would be 0).
        default: the clause of the outermost handler, ``(op, *xs) -> answer``: a handler around the program wins.
        scopes: the number of functions that it takes before its operands: ``perform(op, f, *xs)`` records ``f``, and a
            clause ``(op, body, *xs)`` calls ``body(*xs)``. Then ``vmap="bodies"`` and ``diff="bodies"`` say that it is
            performed over the bodies of all lanes, and over their derivatives: clauses do not compute with results.
    """
    if type(scopes) is not int or scopes < 0:
        raise BadArgument(f"effect: scopes must be a number of functions, got {text_of(scopes)}.")
    over = ("bodies",) * bool(scopes)
    need_one_of("effect: vmap", vmap, (*(over or ("once",)), "per_lane", "refuse"))
    need_one_of("effect: diff", diff, (*over, "stop", "refuse"))
    build = lambda block: _build(block, True, default, vmap=vmap, diff=diff, scopes=scopes)
    return build if cls is None else build(cls)


def effects_text(effects: Iterable[Any]) -> str:
    """The names of effects as messages have them, sorted: of operations; of other elements of a row their text."""
    return ", ".join(sorted({effect.name if isinstance(effect, Operation) else str(effect) for effect in effects}))


def has_lowering(effect: Any) -> bool:
    """Whether a device performs an element of an effect row other than an axis.

    An operation needs a lowering, or a default clause. Another object is the effect of a primitive, whose lowering the
    emitter asks for.
    """
    return LOWER.has(type(effect)) or DEFAULT.has(type(effect)) if isinstance(effect, Operation) else True


def is_pure(op: Operation) -> bool:
    """Whether performing ``op`` has no effect."""
    return not op.effects


def result_type(op: Operation, types: tuple[Any, ...]) -> Any:
    """``op.result_type(*types)``, varying along the mesh axes that ``op.varies`` says; cached on ``op.memo``."""
    memo = op.memo
    if memo is None:
        return op.result_type(*types) if op.bodied else _result_type(op, types)
    known = memo.result_types.get(types)
    return RESULT_TYPES.add(memo.result_types, types, _result_type(op, types)) if known is None else known


def _result_type(op: Operation, types: tuple[Any, ...]) -> Any:
    placed = op.named or any([t.placed for t in types])
    if op.bodied or op.deferred or not placed:  # bodies have types of their own
        out = op.result_type(*types)
        if isinstance(out, (tuple, list)) is not op.multiple_results:
            needed = "a tuple of types" if op.multiple_results else "one type"
            raise RegistrationError(
                f"{op.name}: result_type must give {needed}, got {out}.",
                hint=f"multiple_results = {not op.multiple_results} in its block says that.",
            )
        return out
    if not op.keeps_memory:
        types = tuple([t.lying_in(Space.Device) for t in types])
    if any([t.cut is not None for t in types]) and not (op.effectful or op.states_cut):
        return _cut_result_type(op, types)
    varying = INVARIANT.union(*[t.varying for t in types])
    out = op.result_type(*[t if op.states_cut else t.along(INVARIANT) for t in types])
    varying = op.varies(varying)
    return tuple([t.along(varying) for t in out]) if op.multiple_results else out.along(varying)


def _cut_result_type(op: Operation, types: tuple[Any, ...]) -> Any:
    """The types of the results as those of whole operands, cut as the sharding rule of the operation says; hidden where
    an operand is.

    Raises: ShardingTypeError: it has none, or the operands are cut in ways that do not fit.
    """
    results = op.as_results(_result_type(op, tuple([t.cut_by(None) for t in types])))
    meshes = [t.cut.mesh for t in types if t.cut is not None and t.cut.hides]
    if meshes:
        return op.from_results([hidden(meshes[0], t) for t in results])
    rule = SHARDING_RULE.complete().cell(type(op))
    if rule is None:
        raise ShardingTypeError(
            f"{op.name}: how its result is cut must be known, and it has no sharding rule, got {shown(types)}.",
            hint="hx.sharding.auto_axes(f, out_sharding=spec) leaves a part of the program to the compiler; "
            f"or {op.how_to_add(SHARDING_RULE.name)}",
        )
    cut = rule(op, types, results)
    if JVP.cell(type(op)) is componentwise:
        sums = [summed_axes(op.name, [t], lambda positions: positions, False) for t in types]
    else:
        sums = [op.partial_sums(types)] * len(results)
    return op.from_results(cut_results(op.name, cut, types, results, sums))
