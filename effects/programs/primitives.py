"""Primitives: operations under JAX's interface, by name and parameters. Loaded with the first one that is asked for.

    eqn.primitive.bind(*operands, **eqn.params)         performs the operation of an equation again

Every operation is a primitive, and a ``Primitive`` of the user's is an operation, whose rules are cells of the columns:
so every handler and transformation knows both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from ..base.caches import clear_caches, process_lock
from ..base.errors import BadCall, MissingRule
from ..base.lazy_module import late_module
from ..base.source_locations import is_ours
from ..base.stack import BASE, Run, current, inside
from ..base.value_identity import bits
from ..base.wrapping import wraps
from ..core.arrays import as_array, concrete
from ..core.columns import EVALUATE, Rule
from ..core.operation import EMPTY_ROW, OPERATIONS, Operation, operation, qualified_name
from ..functions.keys import static_key
from ..types.array_type import ArrayType, as_array_type
from ..types.dtypes import ExtendedDType
from .operation_names import every_operation, operation_called
from .printer import row_text


class Snapshot:
    """A parameter without a hash, such as a list: equal to those of the same type and contents, as they are now."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        self.value, self.key = value, static_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> Any:
        return Snapshot, (self.value,)


def _hashable(value: Any) -> Any:
    """A parameter as the field of an operation."""
    try:
        hash(bits(value))
    except TypeError:
        return Snapshot(value)
    return value


# column -> how a primitive gets its cell
_REGISTRATIONS = {
    "evaluate": "{}_p.def_impl(f).",
    "jvp": "extend.ad.primitive_jvps[{}_p] = rule, or one of ad.defjvp and ad.deflinear.",
    "transpose": "extend.ad.primitive_transposes[{}_p] = rule.",
    "batch": "extend.batching.primitive_batchers[{0}_p] = rule, or batching.defvectorized({0}_p).",
    "lower": "extend.mlir.register_lowering({}_p, rule).",
}


class PrimitiveOperation(Operation):
    """The family of operations that a ``Primitive`` makes.

    ``params`` has the parameters in order of their names; ``row`` is the effect row that the abstract evaluation gave
    for the operands. With an effect in it the operation is an effect: under ``vmap`` it is performed once, or by its
    batching rule where an operand is mapped; under derivatives by its own rule.
    """

    __slots__ = ()
    params: tuple[tuple[str, Any], ...]
    row: frozenset[Any]
    vmap = "once"
    effectful = property(lambda op: bool(op.row))
    has_row = effectful
    effects = property(lambda op: op.row)

    @classmethod
    def how_to_add(cls, column: str) -> str:
        known = _REGISTRATIONS.get(column)
        return known.format(cls.name) if known else super().how_to_add(column)

    def as_params(self) -> dict[str, Any]:
        return {name: value.value if type(value) is Snapshot else value for name, value in self.params}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        return cls(tuple([(name, _hashable(params[name])) for name in sorted(params)]), EMPTY_ROW)

    def result_type(self, *types: ArrayType) -> Any:
        made, effects = self._primitive.abstract_eval(*types, **self.as_params())
        if self.row != effects:
            raise BadCall(
                f"{self.name}: the operation must have the effects of its abstract evaluation, {row_text(effects)}, "
                f"got {row_text(self.row)}.",
                hint=f"{self.name}_p.bind(...) performs it with them.",
            )
        try:
            return tuple(map(as_array_type, made)) if self.multiple_results else as_array_type(made)
        except (AttributeError, TypeError) as error:
            several = "a list of types" if self.multiple_results else "a type"
            raise BadCall(
                f"{self.name}: the abstract evaluation must give {several}, got {made!r}.",
                hint="such as x.update(shape=...), or ShapedArray(shape, dtype).",
            ) from error

    def result_tree(self, *types: ArrayType) -> Any:
        """As ``bind`` gives the results: a list of several."""
        made = self.result_type(*types)
        return list(made) if self.multiple_results else made

    def numpy_function(self, types: Sequence[ArrayType]) -> Any:
        """The implementation on random keys, which NumPy has as their data."""
        if not any([isinstance(t.dtype, ExtendedDType) for t in types]) or not EVALUATE.has(type(self)):
            return None
        return lambda *xs: self.evaluated([concrete(t, x) for t, x in zip(types, xs)])

    def evaluated(self, xs: Sequence[Any]) -> Any:
        """The results of the implementation, which performs on no handler, as NumPy arrays."""
        with inside(BASE):
            results = self.as_results(self._primitive.impl(*xs, **self.as_params()))
        arrays: list[Any] = [*map(as_array, results)]
        return self.from_results([y.value for y in arrays])

    def __reduce__(self) -> Any:
        return _bound, (self._primitive, self.params, self.row)


class Primitive:
    """An operation that is defined by its name, and by rules that are registered for it one after the other.

        double_p = Primitive("double")
        double_p.def_impl(lambda x: x + x)
        double_p.def_abstract_eval(lambda x: x)
        double_p.bind(1.0) == 2.0

    Its derivatives, batching and lowering are registered in ``handlax.extend.ad``, ``batching`` and ``mlir``. A rule
    holds from then on, also in functions that were traced before. ``operation``: the class of the operation.
    """

    call_primitive = map_primitive = False
    name: str
    operation: type[Operation]
    _pure = False  # whether its abstract evaluation is known to give no effects

    def __init__(self, name: str):
        self.name = name
        block = {
            "__module__": _maker(), "__qualname__": name, "name": name,
            "__annotations__": {"params": "tuple", "row": "frozenset"}, "params": (), "row": EMPTY_ROW,
            "_primitive": self,
        }
        self.operation = operation(type(name, (PrimitiveOperation,), block))
        declared = type(self).multiple_results
        if isinstance(declared, bool):  # in a subclass
            self.operation.multiple_results = declared

    @property
    def multiple_results(self) -> bool:
        return self.operation.multiple_results

    @multiple_results.setter
    def multiple_results(self, several: bool) -> None:
        self.operation.multiple_results = several

    def bind(self, *args: Any, **params: Any) -> Any:
        """Perform the operation with these parameters; gives its result, or a list of its results.

        Raises: BadCall: it has other parameters. NotAnArray: an argument is no array.
        """
        operands = tuple([as_array(x) for x in args])
        pure = self._pure
        op = self.operation.from_params(params) if pure else self.performed_on([x.type for x in operands], params)
        y = current().answer(op, operands)
        return list(y) if op.multiple_results else y

    def performed_on(self, types: Sequence[ArrayType], params: Mapping[str, Any]) -> Operation:
        """The operation with these parameters, with the effects that it has on operands of these types."""
        op = self.operation.from_params(params)
        if not self._pure:
            _, effects = self.abstract_eval(*types, **params)
            op = replace(op, row=frozenset(effects))  # type: ignore[type-var]
        return op

    def bind_with_trace(self, trace: Run, args: Sequence[Any], avals: Any, params: Mapping[str, Any]) -> Any:
        """``bind`` answered by this run, whichever is in force; ``avals``, the types of ``args``, follow from these."""
        with inside(trace):
            return self.bind(*args, **params)

    def def_impl(self, impl: Rule) -> Rule:
        """Make ``impl(*arrays, **params)`` what the primitive means; returns it."""
        self.impl = impl  # type: ignore[method-assign]
        EVALUATE.assign(self.operation, wraps(impl)(lambda op, *xs: op.evaluated([*map(as_array, xs)])))
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        """Make ``rule(*types, **params)`` the type of the result, or the list of types; returns it."""
        self.def_effectful_abstract_eval(lambda *types, **params: (rule(*types, **params), EMPTY_ROW))
        self._pure = True
        return rule

    def def_effectful_abstract_eval(self, rule: Rule) -> Rule:
        """``def_abstract_eval`` of a rule that also gives the set of effects, objects that compare and hash.

        A primitive with an effect is never dropped, merged, or reordered among those with effects of the same class.
        """
        if "abstract_eval" in vars(self):  # it may have been asked
            clear_caches()
        self.abstract_eval, self._pure = rule, False  # type: ignore[method-assign]
        return rule

    def def_custom_bind(self, bind: Rule) -> Rule:
        """Make ``bind`` what ``self.bind`` calls; returns it. ``Primitive.bind(self, ...)`` is still the original."""
        self.bind = bind  # type: ignore[method-assign]
        return bind

    def impl(self, *args: Any, **params: Any) -> Any:
        raise MissingRule(f"{self.name}: there is no implementation.", hint=f"{self.name}_p.def_impl(f).")

    def abstract_eval(self, *types: ArrayType, **params: Any) -> tuple[Any, Any]:
        """The type of the result, or the list of types, and the effects."""
        raise MissingRule(f"{self.name}: there is no abstract evaluation.", hint=f"{self.name}_p.def_abstract_eval(f).")

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for ``bind``: a function with a rule has its body among ``subfuns``, callable."""
        return self.operation.bind_params(params)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _restored, (qualified_name(self.operation),)


def _maker() -> str:
    """The module of the user's that makes a primitive, also by a subclass of ours."""
    frame = sys._getframe(2)
    while is_ours(frame.f_globals["__name__"]) and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


class OperationPrimitive(Primitive):
    """The primitive of an operation that has a block, whose effects follow from its fields."""

    _pure = True

    def __init__(self, kind: type[Operation]):
        self.name, self.operation = kind.primitive_name or kind.name, kind

    def impl(self, *args: Any, **params: Any) -> Any:
        with inside(BASE):
            return self.bind(*args, **params)

    def abstract_eval(self, *types: ArrayType, **params: Any) -> tuple[Any, Any]:
        op = self.operation.from_params(params)
        made = op.result_type(*types)
        return list(made) if op.multiple_results else made, op.effects


_MAKING = process_lock()


def primitive_of(kind: type[Operation]) -> Primitive:
    """The one primitive of an operation."""
    found = vars(kind).get("_primitive")
    if found is None:
        with _MAKING:  # threads that come at once get the same one
            found = vars(kind).get("_primitive") or OperationPrimitive(kind)
            kind._primitive = found
    return found


def primitive_called(name: str) -> Primitive | None:
    """The primitive of this name among the operations of the package, or None: ``add`` is that of ``lax.add_p``."""
    kind = operation_called(name)
    if kind is None or not is_ours(kind.__module__):  # a user's may have a name that of ours only primitives have
        named = lambda kind: name in (kind.primitive_name, *kind.primitive_aliases) and is_ours(kind.__module__)
        kind = next(filter(named, every_operation()), None)
    return None if kind is None else primitive_of(kind)


def __getattr__(name: str) -> Primitive:
    """``primitives.add_p``: the primitives of the package by their names, followed by ``_p``."""
    found = primitive_called(name.removesuffix("_p")) if name.endswith("_p") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return found


def primitive_names() -> list[str]:
    """The names of all primitives of the package, as far as Python has such names."""
    kinds = [kind for kind in every_operation() if is_ours(kind.__module__)]
    names = {name for kind in kinds for name in (kind.name, primitive_of(kind).name, *kind.primitive_aliases)}
    return sorted(filter(str.isidentifier, names))


def _restored(qualified: str) -> Primitive:
    """The primitive of this name, whose module is imported if need be. Raises BadCall: the module makes none."""
    if qualified not in OPERATIONS:
        late_module(qualified.partition(":")[0])
    if qualified not in OPERATIONS:
        raise BadCall(f"Primitive: {qualified} is not there any more.", hint="make it where its module is imported.")
    return primitive_of(OPERATIONS[qualified])


def _bound(primitive: Primitive, params: Sequence[Any], row: frozenset[Any]) -> Operation:
    return primitive.operation(params, row)
