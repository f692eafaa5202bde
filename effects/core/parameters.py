"""Parameters: the fields of an operation as JAX's primitive has them, by name.

    type(op).from_params(op.as_params()) == op
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from ..base.errors import BadCall, BadStaticArgument
from ..base.value_identity import same_data


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
