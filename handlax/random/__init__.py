"""Random numbers from explicit keys.

    key(seed)              a key; equal seeds give equal draws, on every device and in every transformation
    split(key, n)          n new keys; fold_in(key, i) the i-th of as many as there are integers
    normal(key, shape)     a pure function of the key: the same key gives the same numbers

Use a key once, for a draw or a split; this is not checked. Under ``vmap`` an array of keys gives one draw
per key. Bits, integers and uniform floats in [0, 1) are bit for bit those of JAX (``jax_threefry_partitionable``);
samplers that transform these agree within rounding; samplers by rejection (gamma, beta, poisson, ...) agree in
distribution. The generator is Threefry-2x32, or another
that ``key(seed, impl=name)`` names: all are functions of key and counter alone, with the same bits on every device.

>>> from handlax import random
>>> first, second = random.split(random.key(0))
>>> random.randint(first, (3,), 0, 10), random.uniform(second)
(Array([1, 1, 7], dtype=int32), Array(0.00729382, dtype=float32))
"""

import typing as _typing

from ..effects.base.lazy_module import late_names as _late_names
from .basic_samplers import *
from .binomial_samplers import *
from .choices import *
from .keys import *
from .orthogonal_matrices import *
from .rejection_samplers import *
from .transformed_samplers import *

if _typing.TYPE_CHECKING:
    from . import keyless as keyless
else:
    __getattr__, __dir__, __all__ = _late_names(__name__)
