"""``prefetch``: the arrays of an iterator, made and put on devices in a thread while those before them are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import Any

from ...effects.base.errors import BadArgument, HandlaxError, need_count
from ...effects.base.source_locations import Site, user_site
from ...effects.base.stack import BASE, STACK
from ...effects.sharding.named_sharding import Sharding
from ...effects.trees import pytrees
from ...effects.types.array_type import Space
from ..clients.runtime_access import REFUSALS, check_access
from .assembled_arrays import make_array_from_process_local_data
from .device_put import destination, device_put, is_destination


def prefetch(iterator: Iterable[Any], sharding: Any = None, size: int = 2) -> Generator[Any, None, None]:
    """The trees of an iterator, their arrays on devices; ``size`` of them are made ahead, in a thread.

        [*prefetch(xs, sharding)] == [device_put(x, sharding) for x in xs]

    At most ``size + 1`` exist at a time: the one that is used, and those ahead. What the iterator raises is raised
    after all that came before it. The thread ends with the iterator, and when the result is closed or forgotten.

    Over devices of several processes, each process passes what its own devices hold, as to
    ``make_array_from_process_local_data``.

    Args:
        iterator: the thread asks it for trees of NumPy arrays, with the settings in force at the call of ``prefetch``,
            outside of all handlers.
        sharding: a device, a sharding, a PartitionSpec over the mesh in force, a memory (``memory.Space``), or a tree
            of them, a prefix of each tree; None: the default device.

    Raises: BadArgument: ``iterator`` is none, ``sharding`` is none of these, or ``size`` is less than 1.

    >>> import numpy as np
    >>> [x.sum().item() for x in prefetch(np.full(3, i) for i in range(4))]
    [0, 3, 6, 9]
    """
    count = need_count("prefetch: size", size, 1)
    try:
        source = iter(iterator)
    except TypeError:
        raise BadArgument(f"prefetch: an iterator is needed, got {type(iterator).__name__}.") from None
    shardings = pytrees.map(partial(destination, "prefetch"), sharding, is_leaf=is_destination)
    context = copy_context()
    context.run(STACK.set, BASE)
    trees = _each(partial(_on_devices, shardings, f"at {Site(*user_site(1))}"), source)
    ahead = _ahead(lambda: context.run(lambda: [*islice(trees, 1)]), count)
    next(ahead)  # the thread begins now; a generator that has begun ends it when it is forgotten
    return ahead


def _ahead(make: Callable[[], list[Any]], size: int) -> Generator[Any, None, None]:
    """None, then what a thread makes, ``size`` results before they are asked for: lists of one, of none at the end."""
    thread = ThreadPoolExecutor(1, "handlax prefetch")
    try:
        made = deque([thread.submit(make) for _ in range(size)])
        yield None
        while True:
            if REFUSALS:
                check_access()
            result = made.popleft().result()
            if not result:
                return
            made.append(thread.submit(make))
            yield result.pop()  # what this frame held would live as long as the next one is not asked for
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _each(put: Callable[[Any], Any], source: Iterator[Any]) -> Iterator[Any]:
    """``map`` that ends where it raises."""
    yield from map(put, source)


def _on_devices(shardings: Any, where: str, tree: Any) -> Any:
    """The arrays of a tree with these shardings, a prefix of it; errors say ``where``."""
    leaves, structure = pytrees.flatten(tree)
    try:
        by_leaf = pytrees.broadcast_prefix(shardings, tree, is_destination, what="prefetch")
        return pytrees.unflatten(structure, [*map(_on_device, leaves, by_leaf)])
    except HandlaxError as error:
        raise error.moved(where) from None


def _on_device(x: Any, sharding: Sharding | Space | None) -> Any:
    if isinstance(sharding, Sharding) and not sharding.is_fully_addressable:
        return make_array_from_process_local_data(sharding, x)
    array = device_put(x, sharding)
    _ = array.buffer  # the transfer begins
    return array
