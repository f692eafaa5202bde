"""Random numbers from explicit keys.

    key(seed)              a key: equal seeds give equal numbers, on every device and in every transformation
    split(key, n)          n new keys, of which fold_in(key, i) is the i-th
    normal(key, shape)     a pure function of the key: the same key gives the same numbers

Use a key once, to sample or to split; this is not checked. Under ``vmap`` an array of keys gives one sample for each
key. Bits, integers and uniform floats in [0, 1) are bit for bit those of JAX (``jax_threefry_partitionable``); samplers
that are functions of these, or that reject, agree within rounding, but those by rejection not for floats of 16 bits.
The generator is Threefry-2x32, or another that ``key(seed, impl=name)`` names: each is a function of key and counter
alone, with the same bits on every device.

>>> from handlax import random
>>> first, second = random.split(random.key(0))
>>> random.randint(first, (3,), 0, 10), random.uniform(second)
(Array([1, 1, 7], dtype=int32), Array(0.00729382, dtype=float32))
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names
from .basic_samplers import *
from .choices import *
from .keys import *
from .rejection_samplers import *
from .transformed_samplers import *
from .truncated_normals import *

if _typing.TYPE_CHECKING:
    from . import keyless as keyless
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
