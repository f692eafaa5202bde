"""The arrays that are alive in this process."""

from __future__ import annotations

import gc

from ...effects.core.arrays import ConcreteArray, is_shared
from ..xla.array_backend import default_device
from ..xla.lazy import runtime


def live_arrays(platform: str | None = None) -> list[ConcreteArray]:
    """The arrays of a platform, by default the default one, that are referenced and not deleted.

    It visits every object of the process, which is slow. An array that was never transferred counts as one of the
    default platform.

    >>> from handlax import numpy as hnp
    >>> x = hnp.arange(3)
    >>> any(y is x for y in live_arrays())
    True
    """
    home = default_device().platform
    wanted = home if platform is None else runtime.backend(platform).platform
    alive = [x for x in gc.get_objects() if type(x) is ConcreteArray and not (is_shared(x) or x.is_deleted())]
    return [x for x in alive if wanted == (home if x._buffer is None else runtime.devices_of(x._buffer)[0].platform)]
