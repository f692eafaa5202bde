"""The author of nests: writes random statements as text, and what nodes with bodies are written with.

What a statement uses is chosen among what is in sight, the latest mostly, so that what is computed is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """What a value in a nest is: a float, an integer or a truth value, of some shape."""

    letter: str
    shape: tuple[int, ...] = ()


Named = tuple[str, Kind]
NUMBER = Kind("f")
COUNT = Kind("i")
TRUTH = Kind("b")
INPUTS: tuple[Named, ...] = (
    ("x", NUMBER), ("v", Kind("f", (3,))), ("w", Kind("f", (2, 3))), ("k", COUNT), ("p", TRUTH),
)  # fmt: skip


class Scope(NamedTuple):
    """Where a statement stands."""

    values: list[Named]  # what it can see
    indent: int
    depth: int  # how deep it may nest
    reverse: bool  # whether reverse mode will cross it
    tells: bool = False  # whether there is a handler that it may perform for
    flat: bool = False  # whether nothing may depend on a value that is not known while tracing

    def inner(self, **changes: Any) -> Scope:
        """The scope of a function that is written here."""
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

    def late(self, items: Sequence[Any]) -> Any:
        """One of the last of them, mostly."""
        return items[-1 - int(len(items) * self.random.random() ** 3)]

    def chance(self) -> bool:
        return self.random.random() < 0.5

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def parameters(self, kinds: Iterable[Kind]) -> list[Named]:
        """New names for values of these kinds."""
        return [(self.name(kind.letter), kind) for kind in kinds]

    def line(self, scope: Scope, text: str) -> None:
        self.lines.append("    " * scope.indent + text)

    def let(self, scope: Scope, kind: Kind, text: str) -> None:
        """A statement that names the value of an expression."""
        name = self.name(kind.letter)
        self.line(scope, f"{name} = {text}")
        scope.values.append((name, kind))

    def bind(self, scope: Scope, kinds: Sequence[Kind], text: str) -> None:
        """A statement that names the parts of a tuple."""
        made = self.parameters(kinds)
        self.line(scope, f"{listed(made)} = {text}")
        scope.values.extend(made)

    def bind_two(self, scope: Scope, first: Sequence[Kind], second: Sequence[Kind], text: str) -> None:
        """A statement that names the parts of two tuples."""
        groups = [self.parameters(first), self.parameters(second)]
        targets = [f"({listed(group)})" if group else self.name("none") for group in groups]
        self.line(scope, f"{', '.join(targets)} = {text}")
        scope.values.extend([*groups[0], *groups[1]])

    def bind_beside(self, scope: Scope, first: Kind, kinds: Sequence[Kind], text: str) -> None:
        """A statement that names a value and the parts of a tuple beside it."""
        name, made = self.name(first.letter), self.parameters(kinds)
        self.line(scope, f"{name}, ({listed(made)}) = {text}")
        scope.values.extend([*made, (name, first)])

    def kind(self, scope: Scope, letters: str = "fib") -> Kind:
        """The kind of something in sight."""
        return self.late([kind for _, kind in scope.values if kind.letter in letters])

    def kinds(self, scope: Scope, low: int, high: int, letters: str = "fib") -> list[Kind]:
        return [self.kind(scope, letters) for _ in range(self.random.randint(low, high))]

    def value(self, scope: Scope, kind: Kind) -> str:
        """An expression of this kind: something in sight, or a constant."""
        fitting = [name for name, found in scope.values if found == kind]
        if fitting and self.random.random() < 0.9:
            return self.late(fitting)
        if kind.letter == "f" and self.chance():
            x, found = self.late([(name, found) for name, found in scope.values if found.letter == "f"])
            number = x if found == NUMBER else f"0.3 * hnp.sum({x})"
            return f"hnp.broadcast_to({number}, {kind.shape})" if kind.shape else f"({number})"
        constant = {"f": "0.25", "i": "hnp.int32(2)", "b": "True"}[kind.letter]
        return f"hnp.full({kind.shape}, {constant})" if kind.shape else f"hnp.asarray({constant})"

    def given(self, scope: Scope, kinds: Iterable[Kind]) -> str:
        """A tuple of values of these kinds."""
        return parenthesized([self.value(scope, kind) for kind in kinds])

    def start(self, scope: Scope, kinds: Iterable[Kind]) -> str:
        """A first carry; some of it are Python numbers."""
        literal = {"f": "0.5", "i": "0", "b": "False"}
        return parenthesized([
            literal[kind.letter] if not kind.shape and self.random.random() < 0.2 else self.value(scope, kind)
            for kind in kinds
        ])  # fmt: skip

    def function(self, scope: Scope, parameters: Sequence[Any], **changes: Any) -> tuple[str, Scope]:
        """The head and the statements of a function; what it gives is still to be written.

        A parameter is a named value, or a list of such, which is a tuple of them.
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

    def give(self, scope: Scope, *groups: Sequence[Kind]) -> None:
        """The last statement of a function: a tuple of values of these kinds, or several."""
        self.line(scope, f"return {', '.join([self.given(scope, kinds) for kinds in groups])}")

    def statements(self, scope: Scope, size: int, nested: bool = False) -> None:
        """Up to ``size`` statements; one of them has bodies, if ``nested``."""
        count = self.random.randint(1, size)
        place = self.random.randint(0, count - 1)
        for i in range(count):
            if scope.depth > 0 and ((nested and i == place) or self.random.random() < 0.25):
                self.nodes[self.pick(list(self.nodes))](self, scope)
            else:
                self.plain(scope)

    def plain(self, scope: Scope) -> None:
        """A statement without bodies."""
        if scope.tells and self.random.random() < 0.3:
            self.let(scope, NUMBER, f"hx.tell({self.value(scope, NUMBER)})")
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
        )  # fmt: skip
        self.let(scope, kind, self.pick(forms))

    def shaped(self, scope: Scope) -> None:
        kind = self.kind(scope, "f")
        x, shape = self.value(scope, kind), kind.shape
        if not shape:
            self.let(scope, Kind("f", (2,)), f"hnp.stack([{x}, {self.value(scope, kind)}])")
            return
        forms = [
            (shape[1:], f"0.5 * hnp.sum({x}, axis=0)"), (shape[::-1], f"{x}.T"), (shape, f"{x}[::-1]"),
            ((0, *shape[1:]), f"{x}[:0]"), (shape, f"0.4 * hnp.cumsum({x}, axis=0)"),
        ]  # fmt: skip
        if shape[0]:
            i = f"{self.value(scope, COUNT)} % {shape[0]}"
            row = Kind("f", shape[1:])
            forms += [(row.shape, f"{x}[{i}]"), (shape, f"{x}.at[{i}].set({self.value(scope, row)})")]
        found, text = self.pick(forms)
        self.let(scope, Kind("f", found), text)

    def counted(self, scope: Scope) -> None:
        i, j, b = self.value(scope, COUNT), self.value(scope, COUNT), self.value(scope, TRUTH)
        self.let(scope, COUNT, self.pick((f"({i} * 2 + {j}) % 5", f"({i} + 1) % 4", f"hnp.where({b}, {i}, {j})")))

    def tested(self, scope: Scope) -> None:
        x, i, j = self.value(scope, NUMBER), self.value(scope, COUNT), self.value(scope, COUNT)
        b = self.value(scope, TRUTH)
        self.let(scope, TRUTH, self.pick((f"{x} > 0.1234", f"{i} % 2 == 0", f"{i} > {j}", f"~{b}")))


def listed(named: Iterable[Named]) -> str:
    """Names as the target of an assignment: each with its comma."""
    return " ".join([f"{name}," for name, _ in named])


def parenthesized(items: Sequence[str]) -> str:
    """A tuple of expressions."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"
