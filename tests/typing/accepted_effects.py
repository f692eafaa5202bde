"""Operations and effects are frozen dataclasses."""

from typing import Any, assert_type

import handlax as hx
from handlax import Array
from handlax import numpy as hnp


@hx.effect
class Log:
    message: str
    level: int = 0

    def result_type(op, x: Any) -> None: ...


@hx.effect(vmap="once")
class Read:
    source: str

    def result_type(op) -> Any:
        return hx.ArrayType((), hx.dtypes.float32)


@hx.operation
class Shifted:
    by: float

    def result_type(op, x: Any) -> Any:
        return x


assert_type(Log("read", level=2).message, str)
assert_type(Read("x"), Read)
assert_type(Shifted(2.0).by, float)
assert_type(Log("a") == Log("a"), bool)


def total(x: Array) -> Array:
    hx.perform(Log("total"), x)
    return x.sum()


assert Log("total") in hx.effects_of(total)(hnp.ones(3))
