"""Operations and the columns of the matrix.

An operation is a frozen dataclass: one thing that a program may perform. A column is one handler's meaning for all
operations; a rule is one cell of it. A function in an operation's block that is named after a column *is* that cell.

    Operations compare and hash by the type and bit pattern of their fields: 1, 1.0, True, 0.0 and -0.0 all differ.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from pyrsistent import PMap, pmap

from . import config, trees
from .errors import BadArgument, BadCall, BadStaticArgument, Immutable, MissingRule, RegistrationError
from .slots import setter

C = TypeVar("C")
O = TypeVar("O", bound="Operation")
K = TypeVar("K", bound=type)
Rule = Callable[..., Any]


class Operation:
    """What every operation is. Made by ``@operation`` or ``@effect``, never by subclassing in user code.

    An operation is pure unless ``effect`` says otherwise; ``vmap`` and ``diff`` tell what an effect means under them.
    """

    __slots__ = ("_key", "_hash", "memo")
    _key: Any
    _hash: int
    memo: dict[Any, Any] | None  # operand types -> result type, and more; where one object stands for many equations
    name: ClassVar[str] = "operation"
    multiple: ClassVar[bool] = False  # results come as a tuple
    effectful: ClassVar[bool] = False
    bodied: ClassVar[bool] = False  # carries sub-programs: a higher-order operation
    named: ClassVar[bool] = False  # speaks of a named axis
    late: ClassVar[tuple[str, ...]] = ()  # fields that hold rules recorded late, which handlers lift
    together: ClassVar[bool] = False  # its transpose gives the cotangents of all operands at once
    apart: ClassVar[bool] = False  # each result depends on the operand of its own number alone
    vmap: ClassVar[str] = "refuse"
    diff: ClassVar[str] = "refuse"
    dtypes: ClassVar[frozenset[Any] | None] = None
    exempt: ClassVar[Mapping[str, str]] = {}  # law -> why it does not apply
    _setters: ClassVar[tuple[Callable[..., None], ...]] = ()
    _names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        setters = self._setters
        if kwargs or len(args) != len(setters):
            args = self._bind(args, kwargs)
        _set_memo(self, None)
        for assign, value in zip(setters, args):
            assign(self, value)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments to fields, as a generated ``__init__`` would."""
        cls, names = type(self), self._names
        if len(args) > len(names):
            raise BadCall(f"{cls.__name__} has {len(names)} fields, got {len(args)} arguments.")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names or name in given:
                raise BadCall(f"{cls.__name__} has no free field {name!r}; its fields are {names}.")
            given[name] = value
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if field.name not in given:
                if field.default is not dataclasses.MISSING:
                    given[field.name] = field.default
                elif field.default_factory is not dataclasses.MISSING:
                    given[field.name] = field.default_factory()
                else:
                    raise BadCall(f"{cls.__name__} misses its field {field.name!r}.")
        return tuple(given[name] for name in names)

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("operations", name, "set", "dataclasses.replace(op, field=value) makes another one.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("operations", name, "deleted", "dataclasses.replace(op, field=value) makes another one.")

    @property
    def fields(self) -> tuple[Any, ...]:
        """The values of the fields, in order."""
        return tuple([getattr(self, name) for name in self._names])

    @property
    def key(self) -> Any:
        """The fields by type and bit pattern: what equality and hash are made of."""
        try:
            return self._key
        except AttributeError:
            try:
                key = tuple([bits(getattr(self, name)) for name in self._names])
                _set_hash(self, hash((type(self), key)))
            except TypeError as error:
                raise BadStaticArgument(
                    f"{self.name}: fields must be hashable, got {self!r}.", hint="use tuples and frozen values."
                ) from error
            _set_key(self, key)
            return key

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.key == other.key)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _ = self.key  # which sets it too
            return self._hash

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> Any:
        return type(self), self.fields

    def result_type(self, *types: Any) -> Any:
        """The type of the result (a tuple of types where ``multiple``), from fields and operand types alone."""
        raise MissingRule(f"{self.name}: there is no result_type in its block.")

    def result_tree(self, *types: Any) -> Any:
        """What an effect's block says of its result: None, a type, or a tree of types."""
        return None

    @classmethod
    def adapt(cls, column: str, cell: Any) -> Rule:
        """A cell as written in the block, as the handler calls it. Families that write less override this."""
        return cell

    @property
    def effects(self) -> frozenset[Any]:
        """What performing this adds to an effect row."""
        return frozenset((self,)) if self.effectful else EMPTY_ROW


EMPTY_ROW: frozenset[Any] = frozenset()
_set_key, _set_hash, _set_memo = (setter(Operation, name) for name in ("_key", "_hash", "memo"))
_SHARED: dict[Any, Any] = {}


def shared(kind: Callable[..., C], *fields: Any) -> C:
    """The operation with these fields, one object for all who ask: it remembers its result types.

    Fields must be canonical (ints, and no bools among them): they are compared by ``==``.
    """
    found = _SHARED.get((kind, fields))
    if found is None:
        if len(_SHARED) > 4096:
            _SHARED.clear()
        found = kind(*fields)
        _set_memo(found, {})
        _SHARED[kind, fields] = found
    return found


def standing(op: O) -> O:
    """The operation, new until now, as one object that stands for many equations: it remembers what is made of it."""
    _set_memo(op, {})
    return op


def bits(value: Any) -> Any:
    """``value`` as something hashable that differs wherever type or bit pattern differ."""
    kind = type(value)
    if kind is int or kind is str or value is None or kind is bytes:
        return value
    if kind is tuple:
        return tuple([bits(item) for item in value])
    if kind is bool:
        return ("bool", value)
    if kind is float:
        return ("float", struct.pack("d", value))
    if kind is complex:
        return ("complex", struct.pack("dd", value.real, value.imag))
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, tuple):
        return (kind, *[bits(item) for item in value])
    if isinstance(value, frozenset):
        return (kind, frozenset(bits(item) for item in value))
    hash(value)
    return value


class Column:
    """One handler's meaning for all operations: an append-only registry, and tables that override it in a scope.

    ``adapt(op_class, cell)`` turns what stands in a block into the one form that the handler calls.
    """

    def __init__(self, name: str, adapt: Callable[[type[Operation], Any], Rule] | None = None, doc: str = ""):
        self.name = name
        self._adapt = adapt
        self.registry: dict[type, Rule] = {}
        self.modes: dict[str, Rule] = {}  # for higher-order operations without a cell, by the way their bodies run
        self.cells: dict[type, Any] = {}  # as written, for explain_rules
        self.doc = doc
        if name in COLUMNS:
            raise RegistrationError(f"column {name!r}: exists already.")
        COLUMNS[name] = self

    def adapt(self, op: type[Operation], cell: Any) -> Rule:
        rule = op.adapt(self.name, cell) if issubclass(op, Operation) else cell
        return self._adapt(op, rule) if self._adapt is not None else rule

    def rule(self, op: type[Operation]) -> Callable[[Any], Any]:
        """Decorator: this function is the cell of ``op``. A second cell for one operation is an error."""

        def register(cell: Any) -> Any:
            if op in self.registry:
                raise RegistrationError(
                    f"{self.name}: {op.__name__} has a rule already, at {where_written(self.cells[op])}.",
                    hint=f"put another one in force in a scope: hx.rules({self.name}={{{op.__name__}: rule}}).",
                )
            self.cells[op] = cell
            self.registry[op] = self.adapt(op, cell)
            return cell

        return register

    def mode(self, runs: str) -> Callable[[Any], Any]:
        """Decorator: the cell of all higher-order operations that run their bodies so and have none of their own."""

        def register(cell: Any) -> Any:
            self.modes[runs] = cell
            return cell

        return register

    @property
    def table(self) -> PMap[type, Any]:
        """The column's value now: a persistent map from operation to cell."""
        return pmap(self.cells).update(config.current().tables.get(self.name, pmap()))

    def find(self, kind: Any) -> Rule:
        """The rule in force for operations of this kind."""
        scoped = config.CONFIG.get()
        if scoped is not None:  # tables are put in force in scopes only
            override = scoped.tables.get(self.name)
            if override is not None and kind in override:
                return self.adapt(kind, override[kind])
        rule = self.registry.get(kind)
        if rule is None and kind.bodied:
            rule = self.modes.get(kind.runs)
        return rule if rule is not None else self.missing(kind)

    def has(self, kind: type[Operation]) -> bool:
        if kind in self.registry:
            return True
        scoped = config.CONFIG.get()
        return scoped is not None and kind in scoped.tables.get(self.name, ())

    def missing(self, kind: type[Operation]) -> Rule:
        raise MissingRule(
            f"{self.name}: {kind.name} has no rule in this column.",
            hint=f"write a function `{self.name}` in its block, or add it from outside: "
            f"@hx.columns.{self.name}.rule({kind.__name__}).",
        )

    def __repr__(self) -> str:
        return f"<column {self.name}: {len(self.registry)} rules>"


COLUMNS: dict[str, Column] = {}


# name -> operation, for reading programs back; "module:qualname" -> operation for every one
OPERATIONS: dict[str, type[Operation]] = {}
_READABLE = re.compile(r"(?!(return|inf|nan)$)[A-Za-z_]\w*(-[A-Za-z]\w*)*")


def place_of(kind: type[Operation]) -> str:
    """``module:qualname`` of an operation's class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def enter(kind: type[Operation]) -> None:
    """Make a new operation known by its name; where that is taken, by its place alone.

    A block that is run again (a notebook's cell, a reloaded module) takes the place of its former self.
    """
    place = place_of(kind)
    known = OPERATIONS.get(kind.name)
    if known is None or place_of(known) == place:
        OPERATIONS[kind.name] = kind
    OPERATIONS[place] = kind


def text_name(kind: type[Operation]) -> str:
    """What an operation is called in the text of a program: ``OPERATIONS[text_name(kind)] is kind``."""
    return kind.name if OPERATIONS.get(kind.name) is kind and _READABLE.fullmatch(kind.name) else place_of(kind)


def where_written(cell: Any) -> str:
    """file:line of a cell, with its name where it is not written for one operation alone."""
    code = getattr(cell, "__code__", None)
    if code is None:
        module, name = getattr(cell, "__module__", None), getattr(cell, "__qualname__", None)
        return repr(cell) if name is None else f"{module or 'numpy'}.{name}"
    place = f"{code.co_filename}:{code.co_firstlineno}"
    return place if "." in cell.__qualname__ or "<" in cell.__qualname__ else f"{place}  {cell.__qualname__}"


def _build(cls: type, effectful: bool, **marks: Any) -> type[Operation]:
    """The operation class of a block: fields become slots, functions named after a column become cells."""
    if not isinstance(cls, type):
        word = "effect" if effectful else "operation"
        raise BadArgument(f"{word}: a class is needed, got {cls!r}.", hint=f"@hx.{word} stands above a class.")
    namespace = dict(cls.__dict__)
    annotations = namespace.get("__annotations__", {})
    names = tuple(name for name, kind in annotations.items() if "ClassVar" not in str(kind))
    taken = [name for name in names if hasattr(Operation, name)]
    if taken:
        raise RegistrationError(
            f"{cls.__name__}: a field must not be called {taken[0]!r}, which every operation has.",
            hint="call it otherwise.",
        )
    for dropped in ("__dict__", "__weakref__"):
        namespace.pop(dropped, None)
    cells = {name: namespace.pop(name) for name in COLUMNS if name in namespace}
    for name in names:  # a default and a slot cannot share a name; dataclass needs the default for its fields
        namespace.pop(name, None)
    bases = cls.__bases__ if issubclass(cls, Operation) else (Operation,)
    namespace.setdefault("name", _snake(cls.__name__))
    namespace["__doc__"] = cls.__doc__ or cls.__name__
    plain: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls) if names else None
    inherited: Any = bases[0]
    every = (*inherited._names, *names)
    made: Any = type(cls.__name__, bases, {"__slots__": names, **namespace, "_names": every, "__match_args__": every})
    made._setters = (*inherited._setters, *(setter(made, name) for name in names))
    fields = getattr(plain, "__dataclass_fields__", {})
    made.__dataclass_fields__ = {**getattr(inherited, "__dataclass_fields__", {}), **fields}
    made.__dataclass_params__ = _FROZEN
    if effectful:  # effects give trees; inside, their leaves
        made.result_tree = namespace.get("result_type", Operation.result_tree)
        made.result_type = _leaf_types
        made.multiple = True
    made.effectful = effectful or getattr(inherited, "effectful", False)
    if not made._names:
        made.memo = {}
    made.__qualname__ = cls.__qualname__
    for name, value in marks.items():
        setattr(made, name, value)
    enter(made)
    for column, cell in cells.items():
        COLUMNS[column].rule(made)(cell)
    if "__post_init__" in namespace:
        made.__init__ = _checked_init
    return made


def _leaf_types(op: Any, *types: Any) -> tuple[Any, ...]:
    return tuple(trees.leaves(op.result_tree(*types)))


def _checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
    Operation.__init__(self, *args, **kwargs)
    self.__post_init__()


@dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    pass


_FROZEN = _Frozen.__dataclass_params__  # type: ignore[attr-defined]


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


@dataclass_transform(frozen_default=True)
def operation(cls: K) -> K:
    """Make the operation of a block: a pure one, which handlers may drop, merge or reorder.

    >>> @operation
    ... class Double:
    ...     def result_type(op, x): return x
    >>> Double() == Double()
    True
    """
    return _build(cls, effectful=False)  # type: ignore[return-value]


@dataclass_transform(frozen_default=True)
def effect(cls: type | None = None, *, vmap: str = "refuse", diff: str = "refuse") -> Any:
    """Make an effect: an operation that is never dropped, merged, duplicated or reordered among its own kind.

    Args:
        vmap: ``once`` (all lanes share one), ``per_lane``, or ``refuse``.
        diff: ``stop`` (no derivative) or ``refuse`` (an operand with a tangent is an error).
    """
    if vmap not in ("once", "per_lane", "refuse") or diff not in ("stop", "refuse"):
        raise BadStaticArgument(f"effect: vmap and diff must be one of their words, got {vmap!r} and {diff!r}.")
    if cls is None:
        return lambda block: _build(block, True, vmap=vmap, diff=diff)
    return _build(cls, True, vmap=vmap, diff=diff)


def is_pure(op: Operation) -> bool:
    """Whether performing ``op`` has no effect."""
    return not op.effects


def result_type(op: Operation, types: tuple[Any, ...]) -> Any:
    """``op.result_type(*types)``, remembered for operations without fields."""
    memo = op.memo
    if memo is None:
        return op.result_type(*types)
    found = memo.get(types)
    if found is None:
        if len(memo) > 4096:
            memo.clear()
        found = memo[types] = op.result_type(*types)
    return found


def explain_rules(op: type[Operation] | Operation) -> str:
    """Every cell of an operation with the file and line where it is written, third-party ones too.

    A cell that is missing says why, where the operation is exempt from the column's laws.

    >>> print(explain_rules(operation(type("Nothing", (), {"exempt": {"jvp": "it has no operand"}}))))
    Nothing (nothing) of handlax.effects.operations
      jvp          none: it has no operand
    """
    kind = op if isinstance(op, type) else type(op)
    if not issubclass(kind, Operation):
        raise BadArgument(
            f"explain_rules: an operation is needed, got {op!r}.", hint="use the operation Sin, not the function sin."
        )
    lines = [f"{kind.__name__} ({kind.name}) of {kind.__module__}"]
    typed = getattr(kind, "result_tree", kind.result_type) if kind.effectful else kind.result_type
    if getattr(Operation, typed.__name__, None) is not typed:
        lines.append(f"  {'result_type':<12} {where_written(typed)}")
    overridden = config.current().tables
    for name, column in COLUMNS.items():
        in_scope = kind in overridden.get(name, {})
        cell = overridden[name][kind] if in_scope else column.cells.get(kind)
        if cell is not None:
            lines.append(f"  {name:<12} {where_written(cell)}{'  (in force in this scope)' if in_scope else ''}")
        elif name in kind.exempt:
            lines.append(f"  {name:<12} none: {kind.exempt[name]}")
    lines += [f"  exempt from {law}: {why}" for law, why in kind.exempt.items() if law not in COLUMNS]
    return "\n".join(lines)


@contextmanager
def rules(**tables: Mapping[type[Operation], Any]) -> Iterator[None]:
    """Put rules in force for the extent of a ``with`` block: ``with hx.rules(jvp={Sin: mine}):``.

    The tables in force are part of every cache key.

    Raises: BadStaticArgument: there is no column of that name.
    """
    for name in tables:
        if name not in COLUMNS:
            raise BadStaticArgument(f"rules: there is no column {name!r}.", hint=f"columns are {', '.join(COLUMNS)}.")
    in_force = config.current().tables
    for name, table in tables.items():
        in_force = in_force.set(name, in_force.get(name, pmap()).update(table))
    with config.configure(tables=in_force):
        yield
