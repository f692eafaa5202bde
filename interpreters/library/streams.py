"""Keyless random: every draw has a key of its own, made from its name.

    fresh_key()                 a key that no other draw has
    seed(f, key)(*args)         f, with all its fresh keys made from ``key``

A key's name is the path of calls that leads to it and, in loops and lanes, the number of the run: a new draw shifts no
other, the same program draws the same numbers, and no two draws are equal. A call is named by its function and the text
of its line; where both occur again, by how often before. What runs once is transparent: ``jit`` changes no draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrsistent import PMap, pmap

from ...effects.arrays import Array, lift, perform, scalar
from ...effects.control import HigherOrder
from ...effects.creation import iota
from ...effects.dtypes import uint32
from ...effects.errors import BadArgument
from ...effects.operations import effect
from ...effects.sources import Site, call_path, line_text
from ...effects.threefry import KEY, random_fold_in, random_wrap
from ...effects.types import ArrayType, array_type
from ...effects.wrapping import wraps
from ..cross import Flow, Joined, Lifted
from ..handle import handle
from ..handler import handler
from ..movements import Movement

Path = tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """Where keys come from: a key, how often each name has been used under it, and the calls in which names stand."""

    key: Any
    used: PMap[Any, int] = field(default_factory=pmap)
    within: Path = ()

    def next(self, path: Path) -> tuple[Stream, Any]:
        """The key of this name, and the stream behind it."""
        count = self.used.get(path, 0)
        number = zlib.crc32("\n".join([*path, str(count)]).encode())
        while number in self.used:  # two names of one checksum
            number = (number + 1) % 2**32
        used = self.used.set(path, count + 1).set(number, 1)
        return Stream(self.key, used, self.within), random_fold_in(self.key, scalar(number, uint32))


# a key that no other draw has, by the path of calls to it
@effect(vmap="per_lane", diff="stop")
class FreshKey:
    path: tuple[str, ...]
    remedy = "give the program a key: seed(f, key)(x)."

    def result_type(op):
        return array_type((), KEY)


class Diverging(Movement):
    """Bodies draw from streams of their own: one for each run of a loop, each lane and each branch.

    A body that runs once draws from the stream around it.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Through(run) if op.runs == "once" else Diverged(run, op)


class Through(Flow):
    """The names in the body stand within the calls that led there; those it has used are used afterwards."""

    def __init__(self, run: Any):
        self.before: Stream = run.current
        self.calls = self.before.within + _calls(run)
        self.operands: Sequence[Any] = (self.before.key,)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = Stream(values[0], self.before.used, self.calls)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return (), run.current.used

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined((), lifted[0].structure, (0,))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = Stream(self.before.key, structure, self.before.within)


class Diverged(Flow):
    """The key of the operation's own name goes in; nothing comes out, but that the name has been used."""

    def __init__(self, run: Any, op: HigherOrder):
        before: Stream = run.current
        self.after_it, key = before.next((op.name, *_name(run, op, before.within)))
        self.turns = op.runs == "until"
        self.operands: Sequence[Any] = (key,)
        if self.turns:
            self.operands = (key, scalar(0, uint32))
        elif op.stacks:
            self.operands = (random_fold_in(key, iota(uint32, op.length)),)
        self.stacked = op.stacks
        self.entered: Sequence[Any] = ()

    def inner_types(self) -> list[ArrayType]:
        types = [x.type for x in self.operands]
        return [t.update(shape=t.shape[1:]) for t in types] if self.stacked else types

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        self.entered = values
        run.current = Stream(random_fold_in(*values) if self.turns else values[0])

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        if not self.turns:
            return (), None
        key, count = self.entered
        return (key, count + scalar(1, uint32)), None

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined(lifted[0].state, None, (0,) * len(lifted))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = self.after_it


def _name(run: Any, op: HigherOrder, within: Path) -> Path:
    """The name of an operation: its own, where it has one; lanes of one effect have that of the effect."""
    one: Any = op
    if op.runs == "lanes" and not hasattr(op, "path") and len(op.bodies[0].ops) == 1:
        one = op.bodies[0].ops[0]
    if not hasattr(one, "path"):
        return (*within, *_calls(run))
    return (*within, *one.path) if isinstance(one, FreshKey) else one.path


def _calls(run: Any) -> Path:
    """The calls that lead to the operation being crossed: those of now, or those when it was recorded."""
    now = call_path()
    if now is not None or run.cell.site is None:
        return now or ()
    site = Site(*run.cell.site)
    kept = site.calls
    return (f"{site.function}: {line_text(site.file, site.line) or site.offset}",) if kept is None else kept


def fresh_key(name: str | None = None) -> Any:
    """A key that no other draw has, from the nearest ``seed``.

    Args:
        name: what it is called; else the text of the line that asks stands for it.

    Raises: UnhandledEffect: there is no ``seed`` around.
    """
    return perform(FreshKey(call_path(name) or ()))


def _answer(stream: Stream, op: Any) -> tuple[Stream, Any]:
    return stream.next((*stream.within, *op.path))


SEED = handler({FreshKey: _answer}, moves=Diverging())


def start(key: Any) -> Stream:
    """The stream of a key.

    Raises: BadArgument: it is no key, or an array of several.
    """
    root = lift(key)
    if root.type.dtype == uint32 and root.type.shape == (2,):
        root = random_wrap(root)
    if root.type.dtype != KEY or root.type.shape:
        raise BadArgument(
            f"seed: one key is needed, got {root.type}.",
            hint="of many keys: vmap(lambda key: seed(f, key)(x))(keys)."
            if isinstance(root, Array) and root.type.dtype == KEY
            else "seed(f, random.key(0)).",
        )
    return Stream(root)


def seed(f: Callable[..., Any], key: Any) -> Callable[..., Any]:
    """``f`` with all its fresh keys made from ``key``.

        seed(f, k)(*args) == seed(jit(f), k)(*args)

    In loops, branches and lanes every draw is distinct; adding one shifts no other.

    Raises: BadArgument: ``key`` is not one key.
    """
    return seeding(SEED, f, start(key))


def seeding(answers: Any, f: Callable[..., Any], stream: Stream) -> Callable[..., Any]:
    """``f`` with its random effects answered from a stream by a handler of streams."""

    @wraps(f)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        return handle(answers, stream)(f)(*args, **kwargs)[1]

    return seeded
