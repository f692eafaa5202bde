"""Named scopes: names for parts of a program, such as the layers of a model, that the sites of its operations keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...effects.base.errors import BadCall, text_of
from ...effects.base.source_locations import RawSite, ScopeName, labels_of, relabelled, user_site
from ...effects.base.stack import BASE, STACK, Run, at_site, installed
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import name_of, wraps

F = Callable[..., Any]


class NamedScope(Run):
    """A name for the operations performed in a block; forwards them all, with the name at their sites.

    ``beyond``: the next run out that is no scope.
    """

    __slots__ = ("beyond",)
    owns_boxes = False

    def __init__(self, outer: Run, name: ScopeName, site: RawSite):
        super().__init__(outer, name, site)
        self.beyond: Run = outer.beyond if isinstance(outer, NamedScope) else outer

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        cell, beyond = self.cell, self.beyond
        if cell.site is not None or beyond is BASE:  # known already, or nobody asks
            return beyond.answer(op, operands)
        cell.site = self.labelled_site()
        try:
            return beyond.answer(op, operands)
        finally:
            cell.site = None

    def inline(self, program: Any, operands: Sequence[Any], sites: Any = None) -> tuple[Any, ...]:
        with at_site(self.cell.site or self.labelled_site(), self.cell):
            return self.beyond.inline(program, operands, sites)


@contextmanager
def named_scope(name: str) -> Iterator[str]:
    """Within the block, or in a function that it decorates, operations are performed under ``name``.

    The sites of equations have the names, ``equation.site.scopes``; what derivatives and ``vmap`` perform in place of
    an operation has those of the operation. ``costs(f)(*args).by_scope()`` adds up by them, compiled programs have them
    in the metadata of their operations, and errors list them among the handlers in force.

    Raises: BadCall: the name is no string.

    >>> from handlax import make_program, numpy
    >>> @named_scope("encoder")
    ... def f(x):
    ...     with named_scope("attention"):
    ...         return numpy.sin(x)
    >>> [str(equation.source_info.name_stack) for equation in make_program(f)(1.0).eqns]
    ['encoder/attention']
    """
    if not isinstance(name, str):
        raise BadCall(f"named_scope: the name must be a string, got {text_of(name)}.", hint='hx.named_scope("layer").')
    scope = ScopeName(name)
    run = NamedScope(STACK.get(), scope, user_site(3))
    at = run.cell.site  # of the operation whose clause or rule opens the scope
    with installed(run), at_site(at and relabelled(at, (scope, *labels_of(at))), run.cell):
        yield name


def named_call(fun: F, *, name: str | None = None) -> F:
    """``fun`` inside ``named_scope(name)``."""
    label = str(name or name_of(fun))

    @wraps(fun)
    @unnamed_boundary
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    named.__name__ = label
    return named
