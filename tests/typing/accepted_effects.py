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


@hx.effect(scopes=1, vmap="per_lane", diff="bodies", default=lambda op, body, *xs: body(*xs))
class Local:
    by: float


assert_type(Local(2.0).by, float)
assert_type(Log("read", level=2).message, str)
assert_type(Read("x"), Read)
assert_type(Shifted(2.0).by, float)
assert_type(Log("a") == Log("a"), bool)


def total(x: Array) -> Array:
    hx.perform(Log("total"), x)
    return x.sum()


def scaled(x: Array) -> Any:
    return hx.perform(Local(2.0), lambda x: x.sum(), x)


assert Local(2.0) in hx.effects_of(scaled)(hnp.ones(3))
assert Log("total") in hx.effects_of(total)(hnp.ones(3))
