"""The types that a block's ``result_type`` gives, as array types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import PythonAnswer, RegistrationError, shortened
from ..base.wrapping import wraps
from ..trees import pytrees
from .array_type import ArrayType, as_array_type


def leaf_types(op: Any, *types: Any) -> tuple[Any, ...]:
    """The ``result_type`` of every effect: the types at the leaves of its ``result_tree``."""
    if (tree := op.result_tree(*types)) is object:
        raise PythonAnswer(
            f"{op.name}: its answer is a Python object, which no program or transformation holds.",
            hint="perform it outside of jit, vmap and grad; under a clause that takes resume, in direct style: "
            "hx.direct(h)(f).",
        )
    return tuple([_declared_type(op, leaf) for leaf in pytrees.leaves(tree)])


def in_array_types(result_type: Callable[..., Any]) -> Callable[..., Any]:
    """``result_type``, of a user's block, with its results converted to ArrayType, such as ``ShapeDtypeStruct``."""

    @wraps(result_type)
    def converted(op: Any, *types: Any) -> Any:
        declared = result_type(op, *types)
        if isinstance(declared, tuple):
            return tuple([_declared_type(op, each) for each in declared])
        return _declared_type(op, declared)

    return converted


def _declared_type(op: Any, declared: Any) -> ArrayType:
    """The array type that the block of ``op`` declares. Raises: RegistrationError: it has no shape or dtype."""
    try:
        return as_array_type(declared)
    except (AttributeError, TypeError):  # a class has the attributes of its instances, as np.float32 has a shape
        raise RegistrationError(
            f"{op.name}: result_type must give types of arrays, got {shortened(repr(declared), 60)}.",
            hint="hx.ArrayType((), hx.numpy.float32) is that of a scalar; or give the type of an operand.",
        ) from None
