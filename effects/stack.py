"""The handler stack: runs linked from the innermost outwards, one stack per thread and async task.

    perform(op, *xs)          offers op to the innermost run
    run.answer(op, operands)  a run answers, or passes it to ``run.outer``
    inside(run)               the stack is ``run`` for the extent of a ``with``

A snapshot of the stack is one pointer. While a rule or clause works, the stack is the one outside its handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, Token
from typing import Any

from .sources import NOWHERE, Seen, Site, user_site

Place = tuple[Any, int]


UNSEEN = Seen(())  # where nobody records what is performed


class Cell:
    """The user's line of what is being performed, shared by the runs of one stack.

    The first run that answers an operation looks it up; the rules that it starts, and every run further out,
    read it here.
    """

    __slots__ = ("site",)
    site: Place | None

    def __init__(self) -> None:
        self.site = None


class Run:
    """One installation of a handler: a fresh identity, its boxes, and a link to what lies outside.

    ``ended`` is set when the transformation returns: a box met afterwards has escaped.
    """

    __slots__ = ("outer", "site", "ended", "cell", "label", "_seen")
    outer: Run
    cell: Cell
    _seen: Seen | None
    label: str  # how messages call it: ``vmap('batch')``; empty for what is part of another

    def __init__(self, outer: Run, label: str, site: Place | None = None):
        self.outer = outer
        self.label = label
        self.site = site
        self.ended = False
        self.cell = outer.cell or Cell()
        self._seen = None

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer ``op``, or pass it on."""
        return self.outer.answer(op, operands)

    def take(self, program: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results of a formula, whose equations are performed here, at the place in force.

        A formula is a pure program without bodies in which every equation has one result.
        """
        token = STACK.set(self)
        try:
            answer = self.answer
            values = [*operands, *[None] * len(program.ops), *reversed(program.consts)]
            for number, op, args in zip(range(len(operands), len(values)), program.ops, program.args):
                values[number] = answer(op, tuple([values[n] for n in args]))
            return tuple([values[n] for n in program.outs])
        finally:
            STACK.reset(token)

    def splice(self, program: Any, operands: Sequence[Any]) -> tuple[Any, ...] | None:
        """The results of a program whose equations this run takes over as they are; None where it answers each."""
        return None

    @property
    def whole(self) -> bool:
        """Whether it answers everything with an equation of its own: no handler further out sees what is performed."""
        return False

    @property
    def seen(self) -> Seen:
        """Places as equations have them that come through this run and those outside it, up to what records them."""
        if self._seen is None:
            labels, run = [], self
            while run is not BASE and not run.whole:
                labels.append(run.label)
                run = run.outer
            self._seen = UNSEEN if run is BASE else Seen(tuple(filter(None, labels)))
        return self._seen

    def place(self) -> Place:
        """The user's line of what is being performed, as this run sees it; for a run that answers it first."""
        place = user_site(3)
        seen = self._seen
        if seen is None:
            seen = self.seen
        if not seen.under:  # nobody records it, or nobody it came through has a name
            return place
        code, offset = place
        return seen.get(id(code)) or seen.add(code), offset

    @property
    def installed_at(self) -> Site:
        return Site(*self.site) if self.site is not None else NOWHERE


class Base(Run):
    """The bottom of every stack. What it does is installed once, when the package is imported."""

    __slots__ = ("answer", "take")  # slots in place of the methods
    answer: Callable[[Any, tuple[Any, ...]], Any]  # type: ignore[assignment]
    take: Callable[[Any, Sequence[Any]], tuple[Any, ...]]  # type: ignore[assignment]

    def __init__(self) -> None:
        self.outer = None  # type: ignore[assignment]
        self.label = "base"
        self.site = None
        self.ended = False
        self.cell = None  # type: ignore[assignment]
        self._seen = UNSEEN


BASE = Base()
STACK: ContextVar[Run] = ContextVar("handlax_stack", default=BASE)
current: Callable[[], Run] = STACK.get


def perform(op: Any, *operands: Any) -> Any:
    """Send ``op`` to the innermost handler. Operands are arrays already; ``arrays.perform`` lifts them."""
    return current().answer(op, operands)


class inside:
    """``with inside(run):`` the stack is ``run``, and nothing that lay within it."""

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
    """Like ``inside``, and the run ends with the extent: its boxes are dead afterwards."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        STACK.reset(self.token)
        self.run.ended = True


def runs(top: Run | None = None) -> Iterator[Run]:
    """The runs of the stack, innermost first, without the base."""
    run = current() if top is None else top
    while run is not None and run is not BASE:
        yield run
        run = run.outer


def in_force(run: Run, top: Run) -> bool:
    """Whether ``run`` is ``top`` or lies outside it."""
    node: Run | None = top
    while node is not None:
        if node is run:
            return not run.ended
        node = node.outer
    return False


def here() -> tuple[Any, int]:
    """The user's site of the call being made, for a run that is being installed."""
    return user_site(2)
