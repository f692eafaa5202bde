"""Keyless random: every draw has a key of its own, made from its name.

    fresh_key()                 a key that no other draw has
    seed(f, key)(*args)         f, with all its fresh keys made from ``key``

A key's name is the path of calls that leads to it and, in loops and lanes, the number of the run: a new draw shifts no
other, the same program draws the same numbers, and no two draws are equal. A call is named by its function and the text
of its line; where both occur again, by how often before.
"""

from __future__ import annotations

import functools
import linecache
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrsistent import PMap, pmap

from ...effects.arrays import lift, perform, scalar
from ...effects.control import HigherOrder
from ...effects.creation import iota
from ...effects.dtypes import uint32
from ...effects.errors import BadArgument
from ...effects.operations import effect
from ...effects.sources import Site, is_internal
from ...effects.threefry import KEY, random_fold_in, random_wrap
from ...effects.types import ArrayType, array_type
from ..cross import Flow, Joined, Lifted
from ..handle import handle
from ..handler import handler
from ..movements import Movement

Path = tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """Where keys come from: a key, and how often each name has been used under it."""

    key: Any
    used: PMap[Path, int] = field(default_factory=pmap)

    def next(self, path: Path) -> tuple[Stream, Any]:
        """The key of this name, and the stream behind it."""
        count = self.used.get(path, 0)
        found = random_fold_in(self.key, scalar(_hash(path, count), uint32))
        return Stream(self.key, self.used.set(path, count + 1)), found


def _hash(path: Path, count: int) -> int:
    return zlib.crc32("\n".join([*path, str(count)]).encode())


# a key that no other draw has, by the path of calls to it
@effect(vmap="per_lane", diff="stop")
class FreshKey:
    path: tuple[str, ...]

    def result_type(op):
        return array_type((), KEY)


class Diverging(Movement):
    """Bodies draw from streams of their own: one for each run of a loop and each lane, by its number."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Diverged(run, op)


class Diverged(Flow):
    """The key of the operation's own name goes in; nothing comes out, but that the name has been used."""

    def __init__(self, run: Any, op: HigherOrder):
        site = run.cell.site
        name = (op.name, *(_line(Site(*site)) if site is not None else ()))
        self.after_it, key = run.current.next(name)
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


def _line(site: Site) -> Path:
    text = linecache.getline(site.file, site.line).strip()
    return (site.function, text or str(site.offset))


_ROOTS = ("record", "handled")  # functions of ours from which a path begins


def call_path(name: str | None = None) -> Path:
    """The user's calls that lead here, outermost first, from where the function was traced or handled."""
    path: list[str] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            asked_here = name is not None and not path
            text = name if asked_here else linecache.getline(code.co_filename, frame.f_lineno).strip()
            path.append(f"{code.co_qualname}: {text or frame.f_lasti}")
        elif code.co_name in _ROOTS:
            break
        frame = frame.f_back
    return tuple(reversed(path))


def fresh_key(name: str | None = None) -> Any:
    """A key that no other draw has, from the nearest ``seed``.

    Args:
        name: what it is called; else the text of the line that asks stands for it.

    Raises: UnhandledEffect: there is no ``seed`` around.
    """
    return perform(FreshKey(call_path(name)))


def _answer(stream: Stream, op: Any) -> tuple[Stream, Any]:
    return stream.next(op.path)


SEED = handler({FreshKey: _answer}, moves=Diverging())


def seed(f: Callable[..., Any], key: Any) -> Callable[..., Any]:
    """``f`` with all its fresh keys made from ``key``.

        seed(f, k)(*args) == seed(f, k)(*args)

    Under ``jit``, in loops, branches and lanes every draw is distinct; adding one shifts no other.
    """
    root = lift(key)
    if root.type.dtype == uint32 and root.type.shape == (2,):
        root = random_wrap(root)
    if root.type.dtype != KEY or root.type.shape:
        raise BadArgument(
            f"seed: one key is needed, got {root.type}.", hint="of many keys: vmap(lambda key: seed(f, key)(x))(keys)."
        )

    @functools.wraps(f)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        return handle(SEED, Stream(root))(f)(*args, **kwargs)[1]

    return seeded
