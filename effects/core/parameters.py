"""Parameters: the fields of an operation, what they may be called, and how JAX's primitive has them.

    type(op).from_params(op.as_params()) == op
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, Self

from ..base.errors import BadCall, BadStaticArgument, RegistrationError
from ..base.lazy_module import LazyModule
from ..base.value_identity import same_data
from .columns import COLUMNS, RESERVED

_annotationlib, _difflib = LazyModule("annotationlib"), LazyModule("difflib")
_LATE_ANNOTATIONS = sys.version_info >= (3, 14)  # evaluated when asked for

# What the class of an operation has from its decorator, so that no block defines it.
OF_EVERY_OPERATION = frozenset({
    "__eq__", "__hash__", "__init__", "as_params", "as_results", "bind_params", "bodied", "effectful", "fields",
    "from_params", "from_results", "has_param", "has_row", "how_to_add", "key", "memo", "result_tree",
})
OF_EFFECTS = frozenset({"diff", "scopes", "vmap"})  # arguments of ``@effect``


class Parametrised:
    """The part of an operation that says how its primitive is called, and what the parameters of this are.

    A field is a parameter of the same name, except where the block declares another one.
    """

    __slots__ = ()
    name: ClassVar[str]
    _names: ClassVar[tuple[str, ...]]
    _primitive: ClassVar[Any] = None  # what equations show as their primitive, made when first asked for
    primitive_name: ClassVar[str | None] = None  # where it is not that of the operation
    primitive_aliases: ClassVar[tuple[str, ...]] = ()  # further names of it
    param_names: ClassVar[Mapping[str, str | None]] = {}  # field -> parameter; None: shown where it is not the default
    fixed_params: ClassVar[Mapping[str, Any]] = {}  # parameters that have the same value in every program
    derived_params: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}  # parameters that follow from the operation

    def as_params(self) -> dict[str, Any]:
        """The parameters of the primitive."""
        params = self._implied()
        for field in self._names:
            name, value = self.param_names.get(field, field), getattr(self, field)
            if name is not None:
                params[name] = value
            elif not same_data(self.__dataclass_fields__[field].default, value):  # type: ignore[attr-defined]
                params[field] = value
        return params

    def _implied(self) -> dict[str, Any]:
        """The parameters that are no fields."""
        return {**self.fixed_params, **{name: derive(self) for name, derive in self.derived_params.items()}}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The operation whose primitive has these parameters; fixed and derived ones may be left out.

        Raises: BadStaticArgument: one of these has another value. BadCall: one is unknown, or missing.
        """
        fields, by_name = {}, {cls.param_names.get(field) or field: field for field in cls._names}
        implied = (*cls.fixed_params, *cls.derived_params)
        for name, value in params.items():
            if name in by_name:
                fields[by_name[name]] = value
            elif name not in implied:
                known = ", ".join([*by_name, *implied]) or "none"
                raise BadCall(f"{cls.name}: it has no parameter {name!r}.", hint=f"its parameters are {known}.")
        made = cls(**fields)
        for name, expected in made._implied().items() if implied else ():
            if not same_data(params.get(name, expected), expected):
                raise BadStaticArgument(f"{cls.name}: {name} must be {expected!r}, got {params[name]!r}.")
        return made

    @classmethod
    def has_param(cls, name: str) -> bool:
        """Whether the primitive has a parameter of this name."""
        fields = [cls.param_names.get(field) or field for field in cls._names]
        return name in (*fields, *cls.fixed_params, *cls.derived_params)

    @classmethod
    def bind_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """These parameters of an equation as its primitive is bound with them; ``from_params`` takes both."""
        return dict(params)

    def primitive_operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The operands of the primitive, from a sequence parallel to those of the operation."""
        return operands


def annotations_of(block: type) -> Mapping[str, Any]:
    """The annotations in the body of a class; of a name that is not defined yet, a forward reference."""
    if _LATE_ANNOTATIONS:
        late: Mapping[str, Any] = _annotationlib.get_annotations(block, format=_annotationlib.Format.FORWARDREF)
        return late
    found: Mapping[str, Any] = vars(block).get("__annotations__", {})
    return found


def field_names(block: type, cells: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the fields of a block with these cells.

    Raises: RegistrationError: every operation has an attribute of that name; or the default of a field stands where a
    rule of that name would.
    """
    names = tuple([name for name, kind in annotations_of(block).items() if "ClassVar" not in str(kind)])
    for name in names:
        if name in RESERVED:
            reason = "which every operation has"
        elif not callable(cells.get(name, callable)):
            reason = f"with a default, since what stands there is the rule of the column {name}"
        else:
            continue
        raise RegistrationError(
            f"{block.__name__}: a field must not be called {name!r}, {reason}.",
            hint="choose another name for the field, such as label.",
        )
    return names


def need_declared(block: type, base: type) -> None:
    """Check the values that a block assigns without an annotation: each is a rule or a declaration of its base class.

    Functions and properties may have any name, and so may what begins with ``_`` or a capital letter.

    Raises: RegistrationError: no base class has the attribute, so that nothing would read it.
    """
    annotated = [annotations_of(cls) for cls in (block, *base.__mro__)]
    declared = {*COLUMNS, *dir(base)}.union(*annotated)
    for name, value in vars(block).items():
        free = callable(value) or hasattr(type(value), "__get__") or name[0] == "_" or name[0].isupper()
        if not free and name not in declared:
            near = _difflib.get_close_matches(name, [known for known in declared if known[0] != "_"], 1)
            raise RegistrationError(
                f"{block.__name__}: {name!r} is neither a field nor a declaration of {base.__name__}.",
                hint="".join([f"{known} is one; " for known in near]) + f"a field is annotated, {name}: int = 3, and "
                f"so is a constant, {name}: ClassVar[int] = 3.",
            )


def check_block(block: type, operation: type, effectful: bool) -> None:
    """Check the names and the functions of a user's block.

    Raises: RegistrationError: a name belongs to ``operation``, which every operation has, or a function takes nothing.
    """
    _need_free_names(block, operation, effectful)
    _need_operation_first(block)


def _need_free_names(block: type, operation: type, effectful: bool) -> None:
    """Check what a block defines under the names of attributes of ``operation``, which every operation has.

    Raises: RegistrationError: the class or its decorator defines it; or there is a function in the place of a value, or
    a value in the place of a function.
    """
    family = issubclass(block, operation)  # what it is given as a subclass, and what its family provides for
    for name, given in vars(block).items():
        private = name[0] == "_" != name[1:2] and name in RESERVED and not family
        hint = "choose another name."
        if name in OF_EVERY_OPERATION or private:
            reason = "which every operation has"
            if name == "__init__":
                hint = "annotations are fields, without @dataclass; __post_init__ may check them."
        elif name in OF_EFFECTS:
            reason, hint = "an argument of the decorator of an effect", f"@hx.effect({name}=...)."
        elif effectful and name == "multiple_results":
            reason, hint = "which follows from what its result_type gives", "leave it out."
        elif name in RESERVED and name[0] != "_" and _is_function(given) != (own := _is_function(operation, name)):
            reason = f"since every operation has a {'function' if own else 'value'} of that name"
        elif name == "name" and not isinstance(given, str):
            reason = f"its name in texts, as {given!r}"
        else:
            continue
        raise RegistrationError(f"{block.__name__}: a block must not define {name!r}, {reason}.", hint=hint)


def how_to_make(kind: type[Parametrised]) -> str:
    """The hint that says how an operation of this class is made: ``Say(label=...); operands are arguments of perform.``
    """
    return f"{kind.__name__}({', '.join([f'{name}=...' for name in kind._names])}); operands are arguments of perform."


def _need_operation_first(block: type) -> None:
    """Raises RegistrationError if a function of the block, ``result_type`` or a rule, has no parameters at all."""
    for name, given in vars(block).items():
        plain = isinstance(given, FunctionType) and (name == "result_type" or name in COLUMNS)
        if plain and not inspect.signature(given).parameters:
            raise RegistrationError(
                f"{block.__name__}: {name} must take the operation as its first parameter, it takes none.",
                hint=f"def {name}(op{', x' * (name != 'result_type')}): ...",
            )


def _is_function(x: Any, *attribute: str) -> bool:
    """Whether ``x``, or its attribute as the class defines it, is a function or method, not a value or property."""
    return isinstance(inspect.getattr_static(x, *attribute) if attribute else x, FunctionType | classmethod)
