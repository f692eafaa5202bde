"""The handler stack: a linked list of runs, innermost first, one per thread and async task.

    perform(op, *xs)          sends op to the innermost run
    run.answer(op, operands)  the run's results for op, or those of ``run.outer``
    inside(run)               the stack is ``run`` for the extent of a ``with``

The stack is its innermost run: saving and restoring it is one pointer. While a rule or clause of a handler is executed,
the stack is ``run.outer`` of that handler's run, so that what the rule performs goes to the handlers further out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from itertools import repeat
from typing import Any, NamedTuple
from weakref import ref

from .source_locations import (
    NO_LABELS,
    NOWHERE,
    CodeLabeller,
    RawSite,
    ScopeName,
    Site,
    labeller_of,
    labels_of,
    relabelled,
    user_site,
)
from .wrapping import context_variable


class SiteCell:
    """The site of the operation being performed, shared by the runs of one stack up to the innermost that records.

    The first run that answers an operation sets it; the rules that it calls, and the runs further out, read it. None:
    no run has answered yet, and whoever needs the site calls ``user_site``.
    """

    __slots__ = ("site",)
    site: RawSite | None

    def __init__(self, site: RawSite | None = None) -> None:
        self.site = site


class Binding(NamedTuple):
    """Named axes that one run binds, with their sizes.

    ``mesh``: the one that has these axes, where its devices are the lanes. ``tracks``: types tell along which of them a
    value varies.
    """

    axes: tuple[tuple[Hashable, int], ...]
    tracks: bool = False
    mesh: Any = None


_WATCHERS: list[Callable[[Run], object]] = []  # called with each run that begins; empty, but where somebody asks


class Run:
    """One installation of a handler: an identity that owns boxes, and a link to the next run out.

    ``site``: where the handler was installed. ``ended``: the transformation has returned; a box of this run that is
    used afterwards has escaped. ``located``: a clause further in asked for its ``site``.
    """

    __slots__ = ("outer", "site", "ended", "cell", "label", "located", "_labeller", "scope", "traces", "__weakref__")
    outer: Run
    cell: SiteCell
    _labeller: CodeLabeller | None
    traces: dict[Any, Any] | None  # traces of functions that are valid under this run alone
    scope: tuple[Binding, ...]  # the named axes that are bound under this run, those of the innermost run first
    advice: str = ""  # what to do, in messages, where Python needs the value of its boxes, or uses them after its end
    label: str  # its name in messages, ``vmap('batch')``; empty: part of another handler, and not shown
    owns_boxes: bool = True  # whether values under this run may be boxes that are none outside of it
    records_everything: bool = False  # so that no handler further out receives any operation
    lengths: Container[int] = ()  # the numbers of the lengths that its lanes have

    def __init__(self, outer: Run, label: str, site: RawSite | None = None):
        self.outer = outer
        self.label = label
        self.site = site
        self.ended = self.located = False
        self.cell = outer.cell or SiteCell()
        self._labeller = None
        self.traces = None
        self.scope = outer.scope
        if _WATCHERS:  # a loop over an empty list takes four times as long
            for watch in _WATCHERS:
                watch(self)

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """The results of ``op`` on these operands, by this handler or by the next one out."""
        return self.outer.answer(op, operands)

    def inline(self, program: Any, operands: Sequence[Any], sites: Iterable[RawSite] | None = None) -> tuple[Any, ...]:
        """The results of a program, its equations answered by this run one after the other, each at its own site.

        ``sites=None``: a cached rule program (pure, without bodies, one result per equation); all its equations have
        the site of the operation being performed. A run that can inline a program faster overrides this.
        """
        cell = self.cell or SiteCell()
        outside = cell.site
        number = len(operands)
        values = [*operands, *[None] * (program.count - number), *reversed(program.consts)]
        around = STACK.get()
        try:
            STACK.set(self)
            answer = self.answer
            for op, args, cell.site in zip(program.ops, program.args, repeat(outside) if sites is None else sites):
                y = answer(op, tuple([values[n] for n in args]))
                if op.multiple_results:
                    for result in y:
                        values[number] = result
                        number += 1
                else:
                    values[number] = y
                    number += 1
            return tuple([values[n] for n in program.outs])
        finally:
            cell.site = outside
            STACK.set(around)

    @property
    def home(self) -> Run:
        """The run that the user installed, if this run only answers for its lanes inside bodies; else this run."""
        return self

    @property
    def main(self) -> Run:
        """``home``, under the name by which libraries compare transformations."""
        return self.home

    @property
    def labeller(self) -> CodeLabeller:
        """Appends the labels of this run and of those outside it, up to the innermost run that records everything.

        ``NO_LABELS`` where no run records and no scope is open: then nobody reads them.
        """
        if self._labeller is None:
            labels, run = [], self
            while run is not BASE and not run.records_everything:
                labels.append(run.label)
                run = run.outer
            read = run is not BASE or any([type(label) is ScopeName for label in labels])
            self._labeller = CodeLabeller(tuple([label for label in labels if label])) if read else NO_LABELS
        return self._labeller

    @property
    def inlining_labeller(self) -> CodeLabeller:
        """Appends, to sites of a program that this run performs, the labels of what it is performed in place of.

        That is the operation being answered, if one is; else what stands on the stack: ``labeller``.
        """
        at = None if self.cell is None else self.cell.site
        return self.labeller if at is None else labeller_of(at)

    @property
    def around(self) -> tuple[str, ...]:
        """The labels that surround the program that this run records, up to the next run out that records everything.
        """
        return self.outer.labeller.labels

    @property
    def surroundings(self) -> tuple[str, ...]:
        """The labels that surround what is recorded under this run, out to the base."""
        return tuple([label for run in runs(self) if run.records_everything for label in run.around])

    def labelled_site(self) -> RawSite:
        """The user's line being executed, with labels as an equation has it; for the run that answers first."""
        site = user_site(3)
        labeller = self._labeller
        if labeller is None:
            labeller = self.labeller
        return labeller.site(site) if labeller.labels else site  # without labels, the common case, no call

    @property
    def described(self) -> str:
        """The name of the run in messages about its boxes: its label, or that of the handler it is part of."""
        return self.label

    @property
    def installed_at(self) -> Site:
        return Site(*self.site) if self.site is not None else NOWHERE


class Base(Run):
    """The bottom of every stack: evaluates. Importing the package installs its ``answer`` and ``inline``."""

    __slots__ = ("answer", "inline")  # attributes, which shadow the methods of Run
    answer: Callable[[Any, tuple[Any, ...]], Any]  # type: ignore[assignment]
    inline: Callable[..., tuple[Any, ...]]

    def __init__(self) -> None:
        self.outer = None  # type: ignore[assignment]
        self.label = "base"
        self.site = None
        self.ended = self.located = False
        self.cell = None  # type: ignore[assignment]
        self._labeller = NO_LABELS
        self.traces = None
        self.scope = ()


BASE = Base()
STACK: ContextVar[Run] = context_variable("handlax_stack", BASE)
"""The innermost run in force; each thread and each async task has its own."""
current: Callable[[], Run] = STACK.get


def perform(op: Any, *operands: Any) -> Any:
    """Send ``op`` to the innermost handler, from rules and functions whose operands are arrays already.

    ``arrays.perform``, which users have as ``hx.perform``, converts operands, explains mistakes, and gives the result
    of an effect the structure that its block declares.
    """
    return current().answer(op, operands)


def push(run: Run) -> None:
    """Make ``run`` the stack until an enclosing block ends, for a run without a block of its own."""
    STACK.set(run)


class inside:
    """``with inside(run):`` the stack is ``run`` and the runs outside it; the previous stack is restored at the end."""

    __slots__ = ("run", "token")
    token: Token[Run]

    def __init__(self, run: Run):
        self.run = run

    def __enter__(self) -> Run:
        self.token = STACK.set(self.run)
        return self.run

    def __exit__(self, *_: object) -> None:
        STACK.reset(self.token)


class installed(inside):
    """``inside`` for a new run, which is marked ``ended`` at the end: its boxes have escaped if used afterwards."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        self.run.ended = True
        STACK.reset(self.token)


class at_site:
    """``with at_site(site):`` what is performed has this site, such as an equation's, not that of the line executed.

    ``cell``: that of the stack, by default of the one in force.
    """

    __slots__ = ("cell", "site")

    def __init__(self, site: RawSite | None, cell: SiteCell | None = None):
        self.cell = cell or current().cell or SiteCell()
        self.site = site

    def __enter__(self) -> None:
        self.cell.site, self.site = self.site, self.cell.site

    def __exit__(self, *_: object) -> None:
        self.cell.site = self.site


# The cell of the handler installed last: where it stands on the base, so does the stack of its clauses, without a cell
_GROUND: ContextVar[SiteCell | None] = context_variable("handlax_ground", None)


class grounded:
    """``with grounded(run):`` clauses of ``run`` find the site of what they answer, also where their stack is the base.
    """

    __slots__ = ("cell", "token")
    token: Token[SiteCell | None]

    def __init__(self, run: Any):
        self.cell = run.cell

    def __enter__(self) -> None:
        self.token = _GROUND.set(self.cell)

    def __exit__(self, *_: object) -> None:
        _GROUND.reset(self.token)


def answered_site() -> RawSite | None:
    """The site of the operation being answered, relative to the innermost record; None: none is."""
    cells = (current().cell, _GROUND.get())
    return next((cell.site for cell in cells if cell is not None and cell.site is not None), None)


def site() -> Site:
    """The site of the operation that is being answered: in a clause, the user's line and scopes that performed it.

    Elsewhere it is the line being executed. ``site().scopes`` are the ``named_scope``s around it, outermost first, with
    those around the loops, branches and compiled functions that it is in. The same is seen eagerly and recorded, except
    that equal programs share what is derived from them: of two functions with equal operations and scopes in loops or
    compiled functions, the lines may be those of the first.

    >>> import handlax as hx
    >>> def forward(op, x):
    ...     print(hx.site().scopes)
    ...     return hx.perform(op, x)
    >>> @hx.handle(hx.handler({hx.operations.Sin: forward}))
    ... def f(x):
    ...     with hx.named_scope("encoder"), hx.named_scope("attention"):
    ...         return hx.numpy.sin(x)
    >>> _ = f(1.0)
    ('encoder', 'attention')
    """
    run = current()
    here = answered_site() or run.labelled_site()
    for each in runs(run):
        each.located = True
    return Site(*relabelled(here, labels_of(here) + run.surroundings))


def runs(top: Run | None = None) -> Iterator[Run]:
    """The runs of the stack (of ``top``, if it is passed), innermost first, without the base."""
    run = current() if top is None else top
    while run is not BASE:
        yield run
        run = run.outer


@contextmanager
def watched_runs() -> Iterator[list[ref[Run]]]:
    """The runs that begin in the block, in any thread, by weak references."""
    begun: list[ref[Run]] = []
    watch = lambda run: begun.append(ref(run))
    _WATCHERS.append(watch)
    try:
        yield begun
    finally:
        _WATCHERS.remove(watch)


def in_force(run: Run, top: Run) -> bool:
    """Whether ``run`` is ``top`` or lies outside it, and has not ended."""
    node: Run | None = top
    while node is not None:
        if node is run:
            return not run.ended
        node = node.outer
    return False
