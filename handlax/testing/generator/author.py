"""The author of random programs: it chooses kinds of statements and variables, and knows nothing of what is written.

    @statement
    def smooth(a, scope): ...      ``a`` chooses and writes, ``scope`` has the variables; ``Unfit``: none of them fits

The kinds of statements of a program are its vocabulary. Each variable in scope has an example: one of its type that a
statement says that it gives, or its value on a *probe*, for which a program runs while it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

TRIES = 20  # kinds of statements that are tried where one is to stand
KEPT = 31 / 32  # of the statements


class Unfit(Exception):
    """A statement cannot be written: no variable in scope fits it, or the probe refuses it."""


class Scope:
    """Where statements are written: the variables ``names``, oldest first, and examples of them in ``space``.

    ``depth``: how many levels of bodies may be nested here. ``around``: what the body stands in, which decides what may
    be written: of nests a set of words, as ``"reverse"`` for a derivative or ``"handler"``; else of the vocabulary's
    own type.
    """

    def __init__(self, space: dict[Any, Any], names: Iterable[Any], depth: int, around: Any = frozenset()):
        self.space, self.names, self.depth, self.around = space, [*names], depth, around

    def __getitem__(self, name: Any) -> Any:
        """The example of a variable."""
        return self.space[name]

    def mark(self) -> Any:
        """What is written so far."""
        return len(self.names)

    def reset(self, mark: Any) -> None:
        """Remove what was written after a mark."""
        del self.names[mark:]


class Vocabulary(NamedTuple):
    """Kinds of statements and how often each is chosen; ``bodied``: those that have functions in them.

    ``fits``: whether a value may be that of a variable; ``interest``: how often a variable is chosen because of it.
    ``executed``: whether statements are executed on the probe; ``refused``: by what it says that one has no meaning.
    ``without``: names of variants of statements that are not written.
    """

    plain: Mapping[Statement, float]
    bodied: Mapping[Statement, float]
    fits: Callable[[Any], bool] = lambda value: True
    interest: Callable[[Any], float] = lambda value: 1.0
    executed: bool = False
    refused: tuple[type[Exception], ...] = ()
    without: frozenset[str] = frozenset()


class Author:
    """Writes a random program: draws the kind of each statement, which asks it for variables, numbers and new names.

    ``random``: whose choices they are. ``vocabulary``: the kinds of statements. ``size``: the greatest number of
    statements of a body. ``nesting``: the probability that a body must have a statement with a body of its own.
    """

    def __init__(self, random: Random, vocabulary: Vocabulary, size: int = 3, nesting: float = 0.5):
        self.random, self.vocabulary, self.size, self.nesting = random, vocabulary, size, nesting
        self.named = 0

    def choice(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    def chance(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def integer(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return self.random.randint(low, high)

    def weighted(self, items: Mapping[Any, float]) -> Any:
        """One of the keys, as often as its value says."""
        return self.random.choices([*items], [*items.values()])[0]

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.named += 1
        return f"{prefix}{self.named}"

    def has(self, variant: str) -> bool:
        """Whether the vocabulary has this variant of a statement."""
        return variant not in self.vocabulary.without

    def variant(self, variants: Iterable[str]) -> str:
        """One of these variants, of those that the vocabulary has. Raises: Unfit: it has none of them."""
        known = [each for each in variants if self.has(each)]
        if not known:
            raise Unfit
        return self.choice(known)

    def variable(self, scope: Scope, fits: Callable[[Any], bool] = lambda value: True) -> Any:
        """A variable whose example fits, of the later ones rather, so that few results are dead. Raises: Unfit."""
        fitting = [name for name in scope.names if fits(scope[name])]
        if not fitting:
            raise Unfit
        interest = self.vocabulary.interest
        return self.weighted({name: (1 + i) ** 2 * interest(scope[name]) for i, name in enumerate(fitting)})

    def statements(self, scope: Scope, size: int, nested: bool = False) -> None:
        """Write up to ``size`` statements; if ``nested``, at least one has bodies, where it fits."""
        count = self.integer(1, size)
        position = self.integer(0, count - 1)
        for i in range(count):
            needed = nested and i == position and scope.depth > 0
            with_bodies = needed or (scope.depth > 0 and self.chance(0.25))
            self.statement(scope, self.vocabulary.bodied if with_bodies else self.vocabulary.plain, needed)

    def statement(self, scope: Scope, kinds: Mapping[Statement, float], needed: bool = False) -> None:
        """Write a statement of one of these kinds, unless none of them fits.

        Some that are neither executed nor ``needed`` are taken back: so an example can shrink by a statement without
        another choice for those after it.
        """
        kept, mark = self.vocabulary.executed or self.chance(KEPT) or needed, scope.mark()
        for _ in range(TRIES if kinds else 0):
            try:
                self.weighted(kinds)(self, scope)
                break
            except Unfit:
                scope.reset(mark)
        if not kept:
            scope.reset(mark)


Statement = Callable[[Any, Any], None]
