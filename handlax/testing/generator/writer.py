"""The author of Python text: statements assign what expressions give, and define functions with bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...effects.trees import pytrees
from .author import Author, Scope, Unfit


class Body(Scope):
    """The body of a function: its ``lines``. ``head``: the name and the parameters; ``outer``: where it is defined."""

    head: str
    outer: Body

    def __init__(self, *scope: Any):
        super().__init__(*scope)
        self.lines: list[str] = []

    def mark(self) -> Any:
        return len(self.names), len(self.lines)

    def reset(self, mark: Any) -> None:
        del self.names[mark[0] :], self.lines[mark[1] :]


FUNCTION: Callable[..., Any] = lambda *args: None  # an example of a function


class Writer(Author):
    """Writes Python text. What it gives is said by examples, or each statement is executed on the probe."""

    def probed(self, run: Callable[..., Any], text: str, scope: Body) -> Any:
        """``eval`` or ``exec`` of a text. Raises: Unfit: the probe refuses it."""
        try:
            return run(text, scope.space)
        except self.vocabulary.refused:
            raise Unfit from None

    def let(self, scope: Body, text: str, y: Any = None) -> Any:
        """Assign what an expression gives to new variables, a tuple of them for a tuple. Returns: their names.

        ``y``: examples of what it gives; without them it is executed.
        """
        if y is None:
            y = self.probed(eval, text, scope)
        if not all(map(self.vocabulary.fits, pytrees.leaves(y))):
            raise Unfit
        target = self.target(scope, y)
        scope.lines.append(f"{text_of(target)} = {text}")
        return target

    def target(self, scope: Body, y: Any) -> Any:
        """A new variable of this value, for each array in tuples; a function is no operand, and gets a name alone."""
        if isinstance(y, tuple | list):
            return tuple([self.target(scope, each) for each in y])
        name = self.fresh("linear" if callable(y) else y.dtype.kind)
        scope.space[name] = y
        if not callable(y):
            scope.names.append(name)
        return name

    def line(self, scope: Body, text: str) -> None:
        """Write a statement, or several, that assigns to no variable."""
        if self.vocabulary.executed:
            self.probed(exec, text, scope)
        scope.lines += text.splitlines()

    def function(
        self,
        scope: Body,
        parameters: Sequence[Any],
        *,
        within: Iterable[str] = (),
        without: Iterable[str] = (),
        captured: Sequence[str] | None = None,
        depth: int | None = None,
    ) -> tuple[str, Body]:
        """Write a function up to its ``returns``. Returns: its name, and its body.

        Args:
            parameters: an example of each argument on the probe, an array or a tuple of arrays.
            within: words for what surrounds the body, beside those around the function but ``without`` these.
            captured: the outer variables that it may read, all by default.
        """
        name, names = self.fresh("g"), scope.names if captured is None else captured
        around = (scope.around | {*within}) - {*without}
        outer = Body(scope.space, names, scope.depth if depth is None else depth + 1, around)
        body = self.opened(outer, name, parameters)
        body.outer = scope
        self.statements(body, self.size, self.chance(self.nesting))
        return name, body

    def opened(self, scope: Body, name: str, parameters: Sequence[Any]) -> Body:
        """The body of a function of these examples, in which no statement stands so far."""
        body = Body({**scope.space}, scope.names, scope.depth - 1, scope.around)
        heads = []
        for example in parameters:
            target = self.target(body, example)
            heads.append(self.fresh("c") if isinstance(target, tuple) else target)
            if isinstance(target, tuple) and target:
                body.lines.append(f"{text_of(target)} = {heads[-1]}")
        body.head = f"{name}({', '.join(heads)})"
        return body

    def returns(self, body: Body, text: str) -> None:
        """Write the whole function where it is defined: its body, and the ``return`` of this text."""
        self.line(body.outer, function_text(body, text))


def function_text(body: Body, result: str) -> str:
    """The text of a function."""
    return "\n    ".join([f"def {body.head}:", *body.lines, f"return {result}"])


def text_of(names: Any) -> str:
    """The text of a name, or of a tuple of texts."""
    return names if isinstance(names, str) else f"({', '.join(map(text_of, names))}{',' * (len(names) == 1)})"
