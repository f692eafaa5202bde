"""The arrays that there are."""

from __future__ import annotations

import gc

from ...effects.core.arrays import ConcreteArray, is_shared
from ..xla.array_backend import default_device
from ..xla.lazy import runtime


def live_arrays(platform: str | None = None) -> list[ConcreteArray]:
    """The arrays of a platform, by default that of new arrays, that something refers to and nobody has deleted.

    It looks at every object of the process, which takes a while. An array that no device has seen is where new ones
    are.

    >>> from handlax import numpy as hnp
    >>> x = hnp.arange(3)
    >>> any(y is x for y in live_arrays())
    True
    """
    home = default_device().platform
    wanted = home if platform is None else runtime.backend(platform).platform
    found = [x for x in gc.get_objects() if type(x) is ConcreteArray and not (is_shared(x) or x.is_deleted())]
    return [x for x in found if wanted == (home if x._buffer is None else runtime.devices_of(x._buffer)[0].platform)]
