"""Random numbers from explicit keys.

    key(seed)              a key; equal seeds give equal draws, on every device and in every transformation
    split(key, n)          n new keys; fold_in(key, i) the i-th of as many as there are integers
    normal(key, shape)     a pure function of the key: once more with the same key, the same numbers

A key is used for one draw, or split, and not again: nothing enforces it. Under ``vmap`` an array of keys gives one draw
per key. Bits, integers and uniform floats in [0, 1) are bit for bit those of JAX (``jax_threefry_partitionable``);
what follows from them agrees within rounding. The generator is Threefry-2x32.

>>> from handlax import random
>>> first, second = random.split(random.key(0))
>>> random.randint(first, (3,), 0, 10), random.uniform(second)
(Array([1, 1, 7], dtype=int32), Array(0.00729382, dtype=float32))
"""

from .choosing import categorical as categorical
from .choosing import choice as choice
from .choosing import permutation as permutation
from .drawing import bernoulli as bernoulli
from .drawing import bits as bits
from .drawing import cauchy as cauchy
from .drawing import double_sided_maxwell as double_sided_maxwell
from .drawing import exponential as exponential
from .drawing import geometric as geometric
from .drawing import gumbel as gumbel
from .drawing import laplace as laplace
from .drawing import logistic as logistic
from .drawing import lognormal as lognormal
from .drawing import maxwell as maxwell
from .drawing import multivariate_normal as multivariate_normal
from .drawing import normal as normal
from .drawing import pareto as pareto
from .drawing import rademacher as rademacher
from .drawing import randint as randint
from .drawing import rayleigh as rayleigh
from .drawing import triangular as triangular
from .drawing import truncated_normal as truncated_normal
from .drawing import uniform as uniform
from .drawing import wald as wald
from .drawing import weibull_min as weibull_min
from .keys import PRNGKey as PRNGKey
from .keys import clone as clone
from .keys import fold_in as fold_in
from .keys import key as key
from .keys import key_data as key_data
from .keys import key_impl as key_impl
from .keys import split as split
from .keys import wrap_key_data as wrap_key_data
