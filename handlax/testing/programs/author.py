"""The generator of nests: it writes random statements as text, by functions that nodes with bodies use too.

The operands of a statement are chosen among the variables in scope, mostly recent ones, so that few results are dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple


class ValueKind(NamedTuple):
    """The type of a variable in a nest: a float ``f``, an integer ``i`` or a bool ``b``, of some shape."""

    letter: str
    shape: tuple[int, ...] = ()


Named = tuple[str, ValueKind]
NUMBER = ValueKind("f")
COUNT = ValueKind("i")
TRUTH = ValueKind("b")
INPUTS: tuple[Named, ...] = (
    ("x", NUMBER), ("v", ValueKind("f", (3,))), ("w", ValueKind("f", (2, 3))), ("k", COUNT), ("p", TRUTH),
)


class Scope(NamedTuple):
    """Where a statement is written: the variables in scope, the depth of nesting, and what may be written there."""

    values: list[Named]  # the variables in scope
    indent: int
    depth: int  # how many levels of bodies it may nest
    reverse: bool  # whether it is differentiated in reverse mode
    tells: bool = False  # whether a handler for ``tell`` is in force
    flat: bool = False  # whether Python control flow on traced values is excluded

    def inner(self, **changes: Any) -> Scope:
        """The scope of a function defined by a statement of this scope."""
        return self._replace(values=[*self.values], indent=self.indent + 1, depth=self.depth - 1)._replace(**changes)


Node = Callable[["Author", Scope], None]


class Author:
    """Writes the statements of one function, choosing at random."""

    def __init__(self, random: Random, nodes: Mapping[str, Node]):
        self.random = random
        self.nodes = nodes
        self.lines: list[str] = []
        self.names = 0

    def pick(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    def recent(self, items: Sequence[Any]) -> Any:
        """A random item, with a preference for the last items."""
        return items[-1 - int(len(items) * self.random.random() ** 3)]

    def chance(self) -> bool:
        return self.random.random() < 0.5

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def parameters(self, kinds: Iterable[ValueKind]) -> list[Named]:
        """New variables of these kinds."""
        return [(self.name(kind.letter), kind) for kind in kinds]

    def line(self, scope: Scope, text: str) -> None:
        self.lines.append("    " * scope.indent + text)

    def let(self, scope: Scope, text: str, *groups: ValueKind | Sequence[ValueKind]) -> None:
        """Write an assignment of an expression to new variables; a group of several is a tuple."""
        targets = []
        for group in groups:
            if isinstance(group, ValueKind):
                named = self.parameters([group])
                targets.append(named[0][0])
            else:
                named = self.parameters(group)
                targets.append(f"({listed(named)})" if named else self.name("none"))
            scope.values.extend(named)
        self.line(scope, f"{', '.join(targets)} = {text}")

    def kind(self, scope: Scope, letters: str = "fib") -> ValueKind:
        """The kind of a random variable in scope whose letter is among ``letters``."""
        return self.recent([kind for _, kind in scope.values if kind.letter in letters])

    def kinds(self, scope: Scope, low: int, high: int, letters: str = "fib") -> list[ValueKind]:
        return [self.kind(scope, letters) for _ in range(self.random.randint(low, high))]

    def value(self, scope: Scope, kind: ValueKind) -> str:
        """An expression of this kind: a variable in scope, or a constant."""
        candidates = [name for name, other in scope.values if other == kind]
        if candidates and self.random.random() < 0.9:
            return self.recent(candidates)
        if kind.letter == "f" and self.chance():
            x, other = self.recent([(name, other) for name, other in scope.values if other.letter == "f"])
            number = x if other == NUMBER else f"0.3 * hnp.sum({x})"
            return f"hnp.broadcast_to({number}, {kind.shape})" if kind.shape else f"({number})"
        constant = {"f": "0.25", "i": "hnp.int32(2)", "b": "True"}[kind.letter]
        return f"hnp.full({kind.shape}, {constant})" if kind.shape else f"hnp.asarray({constant})"

    def tuple_of(self, scope: Scope, kinds: Iterable[ValueKind]) -> str:
        """The text of a tuple of values of these kinds."""
        return parenthesized([self.value(scope, kind) for kind in kinds])

    def start(self, scope: Scope, kinds: Iterable[ValueKind]) -> str:
        """The text of an initial carry; some of its values are Python numbers."""
        literal = {"f": "0.5", "i": "0", "b": "False"}
        return parenthesized([
            literal[kind.letter] if not kind.shape and self.random.random() < 0.2 else self.value(scope, kind)
            for kind in kinds
        ])

    def function(self, scope: Scope, parameters: Sequence[Any], **changes: Any) -> tuple[str, Scope]:
        """Write a function without its ``return``; returns its name and the scope in which to write the ``return``.

        A parameter is a variable, or a list of variables for a parameter that is a tuple.
        """
        name = self.name("g")
        heads = [self.name("c") if isinstance(group, list) else group[0] for group in parameters]
        self.line(scope, f"def {name}({', '.join(heads)}):")
        inner = scope.inner(**changes)
        for head, group in zip(heads, parameters):
            if not isinstance(group, list):
                inner.values.append(group)
            elif group:
                self.line(inner, f"{listed(group)} = {head}")
                inner.values.extend(group)
        self.statements(inner, 3, self.chance())
        return name, inner

    def write_return(self, scope: Scope, *groups: Sequence[ValueKind]) -> None:
        """Write the ``return`` of a function: one tuple of values for each group of kinds."""
        self.line(scope, f"return {', '.join([self.tuple_of(scope, kinds) for kinds in groups])}")

    def statements(self, scope: Scope, size: int, nested: bool = False) -> None:
        """Write up to ``size`` statements; if ``nested``, at least one has bodies."""
        count = self.random.randint(1, size)
        position = self.random.randint(0, count - 1)
        for i in range(count):
            if scope.depth > 0 and ((nested and i == position) or self.random.random() < 0.25):
                self.nodes[self.pick(list(self.nodes))](self, scope)
            else:
                self.plain(scope)

    def plain(self, scope: Scope) -> None:
        """Write a statement without bodies."""
        if scope.tells and self.random.random() < 0.3:
            self.let(scope, f"hx.tell({self.value(scope, NUMBER)})", NUMBER)
            return
        make = self.pick((self.smooth, self.smooth, self.smooth, self.shaped, self.counted, self.tested))
        make(scope)

    def smooth(self, scope: Scope) -> None:
        kind = self.kind(scope, "f")
        x, y, i = self.value(scope, kind), self.value(scope, self.pick((kind, NUMBER))), self.value(scope, COUNT)
        b = self.value(scope, TRUTH)
        forms = (
            f"hnp.tanh({x} + {y})", f"hnp.sin({x}) * {y}", f"0.5 * {x} * hnp.cos({y})", f"hnp.tanh({x} - 0.5 * {y})",
            f"hnp.where({b}, {x}, {y})", f"hnp.tanh({x}) * (1 + {i})", f"hnp.exp(-{x} * {x})", f"0.5 * {x}",
        )
        self.let(scope, self.pick(forms), kind)

    def shaped(self, scope: Scope) -> None:
        kind = self.kind(scope, "f")
        x, shape = self.value(scope, kind), kind.shape
        if not shape:
            self.let(scope, f"hnp.stack([{x}, {self.value(scope, kind)}])", ValueKind("f", (2,)))
            return
        forms = [
            (shape[1:], f"0.5 * hnp.sum({x}, axis=0)"), (shape[::-1], f"{x}.T"), (shape, f"{x}[::-1]"),
            ((0, *shape[1:]), f"{x}[:0]"), (shape, f"0.4 * hnp.cumsum({x}, axis=0)"),
        ]
        if shape[0]:
            i = f"{self.value(scope, COUNT)} % {shape[0]}"
            row = ValueKind("f", shape[1:])
            forms += [(row.shape, f"{x}[{i}]"), (shape, f"{x}.at[{i}].set({self.value(scope, row)})")]
        new_shape, text = self.pick(forms)
        self.let(scope, text, ValueKind("f", new_shape))

    def counted(self, scope: Scope) -> None:
        i, j, b = self.value(scope, COUNT), self.value(scope, COUNT), self.value(scope, TRUTH)
        self.let(scope, self.pick((f"({i} * 2 + {j}) % 5", f"({i} + 1) % 4", f"hnp.where({b}, {i}, {j})")), COUNT)

    def tested(self, scope: Scope) -> None:
        x, i, j = self.value(scope, NUMBER), self.value(scope, COUNT), self.value(scope, COUNT)
        b = self.value(scope, TRUTH)
        self.let(scope, self.pick((f"{x} > 0.1234", f"{i} % 2 == 0", f"{i} > {j}", f"~{b}")), TRUTH)


def listed(named: Iterable[Named]) -> str:
    """The names of variables as the target of an assignment, each with its comma."""
    return " ".join([f"{name}," for name, _ in named])


def parenthesized(items: Sequence[str]) -> str:
    """The text of a tuple of expressions."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"
