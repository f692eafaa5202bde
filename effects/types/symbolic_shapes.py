"""Symbolic shapes as text, ``"b, 2*n + 1"``, and the scopes of their variables."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from ..base.errors import BadArgument, BadShape
from ..base.immutables import OwnCopy
from .extent import DEGREE, SYMBOLIC, Extent, extent, least, length, positive, unbound
from .extent_factors import VARIABLES, PositivePart, Quotient, Remainder, Symbol, degree
from .sized import larger, smaller


class SizeConstraint(NamedTuple):
    """What holds of sizes: their ``difference`` is 0, or at least 0."""

    text: str
    difference: Any
    equal: bool

    def __repr__(self) -> str:
        return self.text


class AtomEquality(NamedTuple):
    """``multiple * atom == value``, where ``value`` has none but smaller atoms."""

    atom: Any
    multiple: int
    value: Any


def _atom_equalities(difference: Extent) -> Iterator[AtomEquality]:
    """That of the largest atom of a size that is 0, if the size is linear in it.

    An atom is larger than those within it. Since values have smaller ones, replacing them ends.
    """
    largest = lambda factor: (type(factor) not in VARIABLES, len(repr(factor)), repr(factor))
    atom = max([factor for monomial, _ in difference.terms for factor in monomial], key=largest)
    match [(monomial, factor) for monomial, factor in difference.terms if atom in monomial]:
        case [((_,), factor)] if type(atom) not in VARIABLES:
            value = extent([term for term in difference.terms if term[0] != (atom,)])
            yield AtomEquality(atom, abs(factor), -value if factor > 0 else value)


def _bounds(equality: AtomEquality) -> Iterator[Any]:
    """The sizes that are at least 0 by what the atom is: ``0 <= x - k (x // k) <= k - 1``, ``max(x, 0) >= 0``."""
    atom, multiple, value = equality
    match atom:
        case Quotient(of, int() as divisor):
            remainder = multiple * of - divisor * value
            yield from (remainder, multiple * (divisor - 1) - remainder)
        case PositivePart() | Remainder():
            yield value


class SymbolicScope(OwnCopy):
    """The variables of symbolic shapes, and what is known of them: each is at least 1, and the constraints hold.

    Variables of different scopes are different ones, also those of one name. A constraint is the text of a comparison,
    ``a >= 2*b``, ``a <= b`` or ``a == b``; one that says what a variable equals replaces it, and one that says what a
    multiple of a ``floordiv``, ``mod`` or ``max`` equals replaces that.

    Raises: BadArgument: a constraint is none.

    >>> scope = SymbolicScope(["a >= b", "c == 4*a"])
    >>> a, b, c = symbolic_shape("a, b, c", scope=scope)
    >>> a - b >= 0, c
    (True, 4*a)
    >>> (n,) = symbolic_shape("n", constraints=["mod(n, 3) == 1"])
    >>> n % 3, n // 3 * 3
    (1, n-1)
    """

    __slots__ = ("constraints", "facts", "replaced", "equalities")
    _guard = ("scopes", "SymbolicScope(constraints) makes another one.")
    constraints: tuple[SizeConstraint, ...]
    facts: tuple[Extent, ...]  # sizes that are at least 0
    replaced: dict[str, Any]  # the sizes that variables equal, by name
    equalities: tuple[AtomEquality, ...]

    def __init__(self, constraints_str: Sequence[str] = ()):
        self._fill(constraints=(), facts=(), replaced={}, equalities=())
        for text in [constraints_str] if isinstance(constraints_str, str) else constraints_str:
            self._add(text)

    def _add(self, text: str) -> None:
        match _parsed(text, "SymbolicScope"):
            case ast.Compare(x, [(ast.GtE() | ast.LtE() | ast.Eq()) as kind], [y]):
                left, right = [_size(part, self, text) for part in ((y, x) if isinstance(kind, ast.LtE) else (x, y))]
            case _:
                raise BadArgument(f"SymbolicScope: a constraint must compare sizes by >=, <= or ==, got {text!r}.")
        equal, difference = isinstance(kind, ast.Eq), left - right
        facts = [size for size in ((difference, -difference) if equal else (difference,)) if type(size) is Extent]
        if not facts and (difference != 0 if equal else difference < 0):
            raise BadArgument(f"SymbolicScope: a constraint must be one that can hold, got {text!r}.")
        constraint = SizeConstraint(text, difference, equal)
        self._fill(constraints=(*self.constraints, constraint), facts=(*self.facts, *facts))
        if equal and isinstance(x, ast.Name) and Symbol(x.id, self) not in getattr(right, "lengths", ()):
            self.replaced[x.id] = right
        elif equal and type(difference) is Extent:
            found = [*_atom_equalities(difference)]
            bounded = [size for each in found for size in _bounds(each) if type(size) is Extent]
            self._fill(equalities=(*self.equalities, *found), facts=(*self.facts, *bounded))

    def variable(self, name: str) -> Any:
        """The size with this name: a symbol, or what it equals."""
        return self.replaced.get(name) or length(Symbol(name, self))

    def reduced(self, size: Extent) -> Any:
        """The size with the multiples of atoms that equal a size replaced by it."""
        for atom, multiple, value in self.equalities:
            for monomial, factor in size.terms:
                if atom in monomial and (times := factor // multiple):
                    rest = list(monomial)
                    rest.remove(atom)
                    kept = extent([*size.terms, (monomial, -times * multiple)])
                    return kept + times * extent([(tuple(rest), 1)]) * value
        return size

    def __reduce__(self) -> Any:
        return SymbolicScope, ([constraint.text for constraint in self.constraints],)

    def __repr__(self) -> str:
        return f"SymbolicScope({', '.join(map(str, self.constraints))})"


_FUNCTIONS: dict[Any, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, **{f.__name__: f for f in (operator.floordiv, operator.mod)},
}


def _parsed(text: str, function: str) -> ast.expr:
    """The tree of an expression, in which ``^`` is a power. Raises: BadShape: it is none."""
    try:
        return ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, UnicodeEncodeError) as error:
        raise BadShape(f"{function}: sizes must be written as in '2*b + 1, max(n - 1, 0), 4', got {text!r}.") from error


def _size(node: ast.expr, scope: SymbolicScope, text: str) -> Any:
    """The size of an expression. Raises: BadShape: it is none."""
    size = lambda node: _size(node, scope, text)
    match node:
        case ast.Constant(int() as number) if type(number) is int:
            return number
        case ast.Name(name):
            return scope.variable(name)
        case ast.UnaryOp(ast.USub(), x):
            return -size(x)
        case ast.BinOp(x, ast.Pow(), ast.Constant(int() as exponent)) if type(exponent) is int:
            base = size(x)
            if exponent * degree(base) <= DEGREE:
                return prod([base] * exponent)
        case ast.Call(ast.Name("max"), [x, y], []):
            return larger(size(x), size(y))
        case ast.Call(ast.Name("min"), [x, y], []):
            return smaller(size(x), size(y))
        case ast.Call(ast.Name("non_negative"), [x], []):
            return positive(size(x))
        case ast.BinOp(x, name, y) | ast.Call(ast.Name(name), [x, y], []):
            f, left, right = _FUNCTIONS.get(name if type(name) is str else type(name)), size(x), size(y)
            if f is not None and (f not in (operator.floordiv, operator.mod) or least(right) > 0):
                return f(left, right)
    raise BadShape(
        f"symbolic_shape: sizes must be numbers, variables, and sums, products, powers up to {DEGREE}, max, min, and "
        f"floordiv and mod by positive sizes, of these, got {ast.unparse(node)!r} in {text!r}.",
    )


def parse_size(text: str, scope: SymbolicScope) -> Any:
    """The size that this text denotes. Raises: BadShape: it denotes none."""
    return _size(_parsed(text, "symbolic_shape"), scope, text)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """The shape that a text denotes: numbers, variables, and sums, differences, products, powers and ``floordiv``,
    ``mod``, ``max`` and ``min`` of these.

        symbolic_shape("b, 2*n + 1, 4")

    Args:
        shape_spec: the sizes, with commas; ``_`` stands for that of ``like``, ``...`` for all others; None is ``...``.
        constraints: what is known of the variables, of a new scope.
        scope: that of the variables, by default a new one.
        like: the sizes that are left open.

    Raises: BadShape: the text denotes no shape, or none like ``like``. BadArgument: both ``constraints`` and a scope.

    >>> symbolic_shape("b, _, 4", like=(8, 3, 4))
    (b, 3, 4)
    """
    if scope is not None and constraints:
        raise BadArgument("symbolic_shape: constraints are those of a scope, got both.", hint="SymbolicScope([...]).")
    if not isinstance(shape_spec, str | None):
        raise BadArgument(f"symbolic_shape: a shape is written as text, got {shape_spec!r}.")
    scope = SymbolicScope(constraints) if scope is None else scope
    text = "..." if shape_spec is None else shape_spec
    tree = _parsed(text, "symbolic_shape") if text.strip() else ast.Tuple([])
    nodes = _completed(tree.elts if isinstance(tree, ast.Tuple) else [tree], like, text)
    sizes = []
    for node, known in nodes:
        open_size = isinstance(node, ast.Name) and node.id == "_"
        size = known if open_size else _size(node, scope, text)
        if size is None or (isinstance(size, int) and known not in (None, size)):
            raise BadShape(f"symbolic_shape: the shape must be like {like}, got {text!r}.")
        sizes.append(size)
    return tuple(sizes)


def _completed(nodes: list[ast.expr], like: Any, text: str) -> list[tuple[ast.expr, Any]]:
    """The expressions, each with the size of ``like`` at its place, ``...`` replaced by as many as are left open."""
    dots = [i for i, node in enumerate(nodes) if isinstance(node, ast.Constant) and node.value is ...]
    known = [None] * len(nodes) if like is None else [*like]
    if dots:
        if len(dots) > 1 or like is None or len(known) < len(nodes) - 1:
            raise BadShape(f"symbolic_shape: one '...' may stand for sizes of like={like}, got {text!r}.")
        nodes[dots[0] : dots[0] + 1] = [ast.Name("_")] * (len(known) - len(nodes) + 1)
    if len(nodes) != len(known):
        raise BadShape(f"symbolic_shape: the shape must have the rank of like={like}, got {text!r}.")
    return [*zip(nodes, known)]


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic, not a number.

    >>> [is_symbolic_dim(size) for size in symbolic_shape("b, 4")]
    [True, False]
    """
    return isinstance(unbound(p), SYMBOLIC)
