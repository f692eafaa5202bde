"""The greatest common divisor of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types.dtypes import INTEGER, is_signed
from ..elementwise.arithmetic import abs as _abs
from ..elementwise.arithmetic import like, rem
from ..elementwise.comparison import max as _max
from ..elementwise.comparison import min as _min
from ..elementwise.comparison import ne, select_n
from ..elementwise.conversion import convert
from ..foundations.elementwise_factory import elementwise, surface
from ..reductions.reductions import reduce_or


def _lower_gcd(op: Any, emit: Any, x: Any, y: Any) -> Any:
    """Euclid's algorithm on all pairs in one loop, until every remainder is 0."""
    result = emit.made

    def start(a: Any, b: Any) -> list[Any]:
        if is_signed(result.dtype):  # abs of the least signed integer needs the unsigned dtype
            a, b = (convert(_abs(v), np.dtype(f"u{result.dtype.name}")) for v in (a, b))
        return [_max(a, b), _min(a, b)]

    def more(a: Any, b: Any) -> Any:
        return reduce_or(ne(b, like(b, 0)), tuple(range(len(b.type.shape))))

    def step(a: Any, b: Any) -> list[Any]:
        going = ne(b, like(b, 0))
        return [select_n(going, a, b), select_n(going, b, rem(a, select_n(going, like(b, 1), b)))]

    pair = emit.decompose(start, *emit.spread(x, y))
    return emit.convert(emit.loop(more, step, *pair)[0], result.dtype)


# z = the greatest common divisor of x and y
Gcd = elementwise(
    "gcd", INTEGER, np.gcd, arity=2, lower=_lower_gcd,
    doc="The greatest common divisor of ``x[i]`` and ``y[i]``, not negative; of 0 and ``y[i]`` it is ``|y[i]|``.",
)
gcd = surface(Gcd)
