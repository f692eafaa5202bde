"""Common divisors of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import abs as _abs
from .arithmetic import like, rem
from .comparison import max as _max
from .comparison import min as _min
from .comparison import ne, select_n
from .conversion import convert
from .dtypes import INTEGER, is_signed
from .elementwise import elementwise, surface
from .reductions import reduce_or


def _lower_gcd(op: Any, emit: Any, x: Any, y: Any) -> Any:
    """Euclid's algorithm on all pairs at once, until every remainder is 0."""

    made = emit.made

    def start(a: Any, b: Any) -> list[Any]:
        if is_signed(made.dtype):  # the absolute value of the least integer is one too large for its dtype
            a, b = (convert(_abs(v), np.dtype(f"u{made.dtype.name}")) for v in (a, b))
        return [_max(a, b), _min(a, b)]

    def more(a: Any, b: Any) -> Any:
        return reduce_or(ne(b, like(b, 0)), tuple(range(len(b.type.shape))))

    def step(a: Any, b: Any) -> list[Any]:
        done = ne(b, like(b, 0))
        return [select_n(done, a, b), select_n(done, b, rem(a, select_n(done, like(b, 1), b)))]

    pair = emit.decompose(start, *emit.spread(x, y))
    return emit.convert(emit.loop(more, step, *pair)[0], made.dtype)


# z = the greatest integer that divides x and y
Gcd = elementwise(
    "gcd", INTEGER, np.gcd, arity=2, lower=_lower_gcd,
    doc="The greatest common divisor of ``x[i]`` and ``y[i]``, not negative; of 0 and ``y[i]`` it is ``|y[i]|``.",
)  # fmt: skip
gcd = surface(Gcd)
