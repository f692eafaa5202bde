"""Numbers with infinitesimals, in plain Python: derivatives of any order, without anything of the package.

Source: Siskind & Pearlmutter, "Nesting Forward-Mode AD in a Functional Framework" (2008), for the tags.
"""

from __future__ import annotations

import math


class Dual:
    """``p + t e``, with the infinitesimal ``e`` of the derivative ``tag``; inner derivatives have higher tags."""

    def __init__(self, tag, p, t):
        self.tag, self.p, self.t = tag, p, t


def parts(x, tag):
    return (x.p, x.t) if isinstance(x, Dual) and x.tag == tag else (x, 0.0)


def top(*xs):
    return max([x.tag for x in xs if isinstance(x, Dual)], default=None)


def tags(x):
    """The tags of the infinitesimals of a number, ascending."""
    return sorted({x.tag, *tags(x.p), *tags(x.t)}) if isinstance(x, Dual) else []


def add(a, b):
    if (tag := top(a, b)) is None:
        return a + b
    (p, t), (q, u) = parts(a, tag), parts(b, tag)
    return Dual(tag, add(p, q), add(t, u))


def mul(a, b):
    if (tag := top(a, b)) is None:
        return a * b
    (p, t), (q, u) = parts(a, tag), parts(b, tag)
    return Dual(tag, mul(p, q), add(mul(t, q), mul(p, u)))


def sin(a):
    return math.sin(a) if (tag := top(a)) is None else Dual(tag, sin(a.p), mul(cos(a.p), a.t))


def cos(a):
    return math.cos(a) if (tag := top(a)) is None else Dual(tag, cos(a.p), mul(mul(-1.0, sin(a.p)), a.t))


def number(x):
    """The value without infinitesimals."""
    return number(x.p) if isinstance(x, Dual) else x


def maximum(a, b):
    if number(a) == number(b):  # both have a share in the derivative
        return add(mul(0.5, a), mul(0.5, b))
    return a if number(a) > number(b) else b


def without(x, tag):
    """The value without one infinitesimal."""
    if not isinstance(x, Dual):
        return x
    return without(x.p, tag) if x.tag == tag else Dual(x.tag, without(x.p, tag), without(x.t, tag))


def without_derivative(x, tag):
    """The value without the infinitesimals of one derivative: its own and those of custom functions in it."""
    while (own := top(x)) is not None and math.floor(own) == tag:
        x = without(x, own)
    return x if own is None or own < tag else Dual(own, *[without_derivative(part, tag) for part in (x.p, x.t)])


def merged(x, one, other):
    """The value with one infinitesimal as another."""
    if not isinstance(x, Dual):
        return x
    p, t = merged(x.p, one, other), merged(x.t, one, other)
    return add(p, Dual(other, 0.0, t)) if x.tag == one else Dual(x.tag, p, t)
