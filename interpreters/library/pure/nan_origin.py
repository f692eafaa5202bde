"""The operation and the source line that produced the first NaN, detected in a single execution."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ....effects.base.errors import FoundNaN, need_function
from ....effects.base.stack import site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import Array, as_array, perform, scalar
from ....effects.core.operation import is_pure
from ....effects.operations.elementwise.comparison import ne, select
from ....effects.operations.elementwise.conversion import bitcast_convert_type, convert
from ....effects.operations.foundations.shapes import reshape
from ....effects.operations.manipulation.creation import full, iota
from ....effects.operations.manipulation.slicing import concatenate
from ....effects.operations.reductions.reductions import reduce_min
from ....effects.trees import pytrees
from ....effects.types.array_type import ArrayType, array_type
from ....effects.types.dtypes import int32, uint32
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...ragged.ragged_array import Ragged, with_zeros_behind
from ..effectful.automatic_checks import NaNFlags, may_be_nan
from ..effectful.first_event import (
    LANE,
    PAYLOAD,
    EventNote,
    EventState,
    FirstEvent,
    FirstEventMovement,
    event_error,
    is_nan,
    no_event,
    packed,
    recorded,
)


class NaNNote(NamedTuple):
    """The static description of a possible first NaN: its message, the user's line, its lanes, and the array's shape.

    A size in ``shape`` that is known only when the program is executed is the number -1 - i, for size ``i`` among
    those that follow the payload. The values of the event are the index of the NaN in row-major order, the payload,
    which begins with the indices of ``lanes`` lanes, and these sizes.
    """

    message: str
    where: str
    lanes: int
    shape: tuple[int, ...]

    @property
    def types(self) -> tuple[ArrayType, ...]:
        unknown = max([-n for n in self.shape], default=0)
        return LANE, array_type((PAYLOAD,), uint32), array_type((max(unknown, 0),), int32)

    def text(self, values: Sequence[Any], outer: Sequence[int] = ()) -> str:
        """The message with the index and the lanes of the NaN; ``outer``: lane indices of an enclosing ``vmap``."""
        index, lanes, sizes = [np.asarray(x).tolist() for x in values]
        shape = [n if n >= 0 else sizes[-1 - n] for n in self.shape]
        note = EventNote(self.message, self.where, self.lanes, len(shape), split=self.lanes)
        return note.text([*lanes[: self.lanes], *np.unravel_index(index, shape)], outer)


class NaNSearch(NaNFlags):
    """Possible first NaNs as events of a state, whose ``index`` is that of the NaN in row-major order.

    The state consists of scalars, and one reduction of each array gives the flag and the index: what an equation adds
    to the program is compiled fast.
    """

    __slots__ = ("notes", "sizes", "_firsts")

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[NaNNote, int] = {}
        self.sizes: list[Any] = []  # the sizes that are known only when the program is executed
        self._firsts: dict[int, tuple[weakref.ref[Any], Any]] = {}  # by identity: the array, and ``first_nan`` of it

    def contains(self, x: Any) -> Any:
        first = first_nan(x)
        self._firsts[id(x)] = weakref.ref(x), first
        return ne(first, scalar(NO_INDEX, int32))

    def index(self, x: Any) -> Any:
        """The index of the first NaN of an array."""
        known = self._firsts.get(id(x))
        return known[1] if known is not None and known[0]() is x else first_nan(x)

    def after(self, state: EventState, message: str, y: Any, happens: Any) -> EventState:
        """The state after the possible event, which ``happens`` or not, that ``y`` is the first array with a NaN."""
        lanes = state["lanes"]
        note = NaNNote(message, site().scoped, len(lanes), tuple([self._size(n) for n in y.type.shape]))
        number = scalar(self.notes.setdefault(note, len(self.notes) + 1), int32)
        payload = packed(lanes) if lanes else state["payload"]
        return recorded(state, happens, number=number, index=self.index(y), payload=payload)

    def _size(self, n: Any) -> int:
        if isinstance(n, int):
            return n
        if n not in self.sizes:
            self.sizes.append(n)
        return -1 - self.sizes.index(n)

    def origin(self, state: EventState) -> FirstEvent:
        """The first event of the whole program."""
        words = [bitcast_convert_type(convert(n, int32), uint32) for n in (state["index"], *self.sizes)]
        index, *sizes = [reshape(word, (1,)) for word in words]
        payload = concatenate([index, state["payload"], *sizes], 0)
        return FirstEvent(state["number"], payload, tuple(self.notes), _error)


NO_INDEX = np.iinfo(np.int32).max


def first_nan(x: Any) -> Any:
    """The index of the first NaN of an array in row-major order, ``NO_INDEX`` if there is none."""
    shape = x.type.shape
    positions = reshape(iota(int32, x.type.size), shape)
    return reduce_min(select(is_nan(x), positions, full(shape, NO_INDEX, int32)), range(len(shape)))


def nan_origin(f: Callable[..., Any]) -> Callable[..., Any]:
    """``nan_origin(f)(*args)`` gives ``(origin, f(*args))``; ``origin.get()`` names the operation that made the first
    NaN.

    A NaN originates at an operation whose result contains NaN and whose operands do not, at an effect that is answered
    so, or at an argument. Operations in loops, branches, compiled functions and gradients are checked too.
    ``origin.throw()`` raises FoundNaN.

    >>> from handlax import numpy
    >>> origin, y = nan_origin(lambda x: numpy.sqrt(x - 2.0) * 3.0)(1.0)
    >>> origin.get().splitlines()[0]
    'sqrt made the first NaN, in f32[]~.'
    """
    need_function("nan_origin", f)

    @wraps(f)
    @unnamed_boundary
    def traced(*args: Any, **kwargs: Any) -> Any:
        nans = NaNSearch()

        def check_result(state: EventState, op: Any, *operands: Any) -> Any:
            y = perform(op, *operands)
            did = "answered with" if op.effectful else "made"
            for result in _arrays(op, y):
                happens = nans.made(op, operands, (result,))
                if happens is not None:
                    state = nans.after(state, f"{op.name} {did} the first NaN, in {result.type}", result, happens)
            return state, y

        start = _check_arguments(nans, (args, kwargs))
        checking = handler(otherwise=check_result, over=_checked, moves=FirstEventMovement())
        state, y = handle(checking, start)(f)(*args, **kwargs)
        return nans.origin(state), y

    return traced


def _checked(op: Any) -> bool:
    """Whether results of an operation are looked at: of pure ones, and of effects, whose answers come from outside."""
    return is_pure(op) or (op.effectful and not op.bodied)


def _arrays(op: Any, y: Any) -> Sequence[Any]:
    """The arrays in what performing ``op`` gave."""
    return [x for x in pytrees.leaves(y) if isinstance(x, Array)] if op.effectful else op.as_results(y)


def _check_arguments(nans: NaNSearch, arguments: Any) -> EventState:
    """The initial state, whose event is the first argument that contains NaN, if any."""
    state = {**no_event(), "index": scalar(0, int32)}
    is_ragged = lambda x: isinstance(x, Ragged)
    arguments = pytrees.tree_map(lambda x: with_zeros_behind(x) if is_ragged(x) else x, arguments, is_leaf=is_ragged)
    for path, leaf in pytrees.leaves_with_path(arguments):
        x = as_array(leaf)
        if may_be_nan(x):
            message = f"the argument {pytrees.keystr(path[1:])} came with a NaN, in {x.type}"
            state = nans.after(state, message, x, nans.of(x))
    return state


_error = partial(event_error, FoundNaN)
