"""Random numbers without explicit keys: every draw gets a key of its own, derived from a name of the draw.

    fresh_key()                 a key for this draw alone
    seed(f, key)(*args)         f, with all its fresh keys derived from ``key``

A draw has the name that it is given, ``fresh_key("noise")``, or else the names of the functions whose calls lead to it.
Draws of one name are numbered in the order in which they are made. So a draw changes only those after it that have its
name, and no two draws share a key. A loop, branch or ``vmap`` that draws is named and numbered as a draw is, and gives
each iteration, branch and lane keys of its own, under which names are numbered anew. Bodies that are executed once add
nothing: ``jit`` changes no draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyrsistent import PMap, pmap

from ....effects.base.errors import BadArgument, text_of
from ....effects.base.source_locations import Site, call_path, starts_path
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import Array, as_array, perform, scalar
from ....effects.core.operation import Operation, effect
from ....effects.operations.manipulation.creation import iota
from ....effects.operations.random_bits import KEY, random_fold_in, random_wrap
from ....effects.programs.higher_order import HigherOrder
from ....effects.types.array_type import array_type
from ....effects.types.dtypes import uint32
from ...core.state_flow import StateFlow
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...handlers.state_movements import Movement

SitePath = tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """A source of keys: a root key, the number of uses of each name, and the call path that prefixes relative names.

    ``alone``: of lanes that execute one operation, whose name the root key has already.
    """

    key: Any
    used: PMap[Any, int] = field(default_factory=pmap)
    within: SitePath = ()
    entered: Sequence[Any] = ()  # in a loop of unknown length: the iteration's key and index
    alone: bool = False

    def path_of(self, op: Keyed) -> SitePath:
        """The name under which the stream counts the draws of ``op``: its path, below the stream's own if relative."""
        if self.alone:
            return ()
        return (*self.within, *op.path) if op.relative else op.path

    def next(self, path: SitePath) -> tuple[Stream, Any]:
        """The stream after a draw of this name, and the draw's key."""
        count = self.used.get(path, 0)
        number = zlib.crc32("\n".join([*path, str(count)]).encode())
        while number in self.used:  # another name has this checksum
            number = (number + 1) % 2**32
        used = self.used.set(path, count + 1).set(number, 1)
        return replace(self, used=used), random_fold_in(self.key, scalar(number, uint32))


class Keyed(Operation):
    """The base of operations that have a path, which names the random keys drawn under them.

    ``relative``: it is a path of calls, from the function whose program the operation is in.
    """

    __slots__ = ()
    relative = False

    @property
    def path(self) -> tuple[str, ...]:
        """The operation's name as a path."""
        return (self.name,)


# a key for this draw alone
@effect(vmap="per_lane", diff="stop")
class FreshKey(Keyed):
    path: tuple[str, ...]
    relative: bool = False
    remedy = "give the program a key: handlax.random.keyless.seed(f, key)(x)."

    def result_type(op):
        return array_type((), KEY)


class StreamMovement(Movement):
    """How a stream crosses bodies: each iteration, lane and branch has its own; a body executed once shares the outer
    one.

    These streams are derived from the name of the operation that has the bodies.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return ThreadedStream(run) if op.runs == "once" else DivergedStream(run, op)


class ThreadedStream(StateFlow):
    """Into a body executed once: its call path prefixes names within, and its uses count afterwards."""

    def __init__(self, run: Any):
        self.before: Stream = run.current
        self.calls = self.before.within + _calls(run)
        self.operands: Sequence[Any] = (self.before.key,)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = Stream(values[0], self.before.used, self.calls)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return (), run.current.used

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = replace(self.before, used=structure)


class DivergedStream(StateFlow):
    """Into loops, lanes and branches: each stream derives from a key for the operation's name.

    Afterwards the outer stream counts one use of that name.
    """

    def __init__(self, run: Any, op: HigherOrder):
        before: Stream = run.current
        self.after_operation, key = before.next((op.name, *_name(run, op, before)))
        self.in_carry = op.runs == "until"
        self.operands: Sequence[Any] = (key,)
        if self.in_carry:
            self.operands = (key, scalar(0, uint32))
        elif op.stacks:
            self.operands = (random_fold_in(key, iota(uint32, op.length)),)
        self.stacked = op.stacks
        self.varying = frozenset(op.lanes_of_all)
        self.alone = _of_one_operation(op)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        if self.in_carry:
            run.current = Stream(random_fold_in(*values), entered=values)
        else:
            run.current = Stream(values[0], alone=self.alone)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        if not self.in_carry:
            return (), None
        key, count = run.current.entered
        return (key, count + scalar(1, uint32)), None

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = self.after_operation


def _name(run: Any, op: HigherOrder, stream: Stream) -> SitePath:
    """The name of an operation with bodies: its ``path`` if it has one, else its call path; of the lanes of an effect,
    the effect's.
    """
    if stream.alone:
        return ()
    one: Any = op.bodies[0].ops[0] if _of_one_operation(op) and not isinstance(op, Keyed) else op
    return stream.path_of(one) if isinstance(one, Keyed) else (*stream.within, *_calls(run))


def _of_one_operation(op: HigherOrder) -> bool:
    return op.runs == "lanes" and len(op.bodies[0].ops) == 1


def _calls(run: Any) -> SitePath:
    """The call path of the current operation, or the one at which it was recorded."""
    path = call_path()
    if path is not None or run.cell.site is None:
        return path or ()
    site = Site(*run.cell.site)
    if site.calls is not None:
        return site.calls
    return () if site.code is None else (site.code.co_qualname,)


def fresh_key(name: str | None = None) -> Any:
    """A random key for this draw alone, from the nearest enclosing ``seed``.

    Args:
        name: names the draw, wherever it is called from; by default the functions whose calls lead to it do.

    Raises: UnhandledEffect: there is no ``seed`` around. BadArgument: ``name`` is no text.
    """
    if name is None:
        return perform(FreshKey(call_path() or (), relative=True))
    if not isinstance(name, str):
        raise BadArgument(f"fresh_key: name must be a text, got {text_of(name)}.", hint="fresh_key(f'layer {i}').")
    return perform(FreshKey(("fresh_key", name)))


def _answer(stream: Stream, op: Any) -> tuple[Stream, Any]:
    return stream.next(stream.path_of(op))


SEED = handler({FreshKey: _answer}, moves=StreamMovement())


def start(key: Any) -> Stream:
    """The stream of a key, with no name used.

    Raises: BadArgument: it is no key, or an array of keys.
    """
    root = as_array(key)
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
    """``f`` with all its fresh keys derived from ``key``.

        seed(f, k)(*args) == seed(jit(f), k)(*args)

    Every draw is distinct, also in loops, branches and lanes. It depends on ``key``, on the name given to ``fresh_key``
    or the names of the functions that lead to it, and on how many draws of that name came before it.

    Raises: BadArgument: ``key`` is not one key.
    """
    return seeding(SEED, f, start(key))


def seeding(h: Any, f: Callable[..., Any], stream: Stream) -> Callable[..., Any]:
    """``f`` under a handler whose state is a stream, started at ``stream``; the final stream is dropped."""

    @wraps(f)
    @unnamed_boundary
    @starts_path
    def seeded(*args: Any, **kwargs: Any) -> Any:
        return handle(h, stream)(f)(*args, **kwargs)[1]

    return seeded
