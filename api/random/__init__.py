"""Random numbers from explicit keys.

    key(seed)              a key; equal seeds give equal draws, on every device and in every transformation
    split(key, n)          n new keys; fold_in(key, i) the i-th of as many as there are integers
    normal(key, shape)     a pure function of the key: once more with the same key, the same numbers

A key is used for one draw, or split, and not again: nothing enforces it. Under ``vmap`` an array of keys gives one draw
per key. Bits, integers and uniform floats in [0, 1) are bit for bit those of JAX (``jax_threefry_partitionable``);
what follows from them agrees within rounding; what is drawn by rejection (gamma, beta, poisson and their kin) agrees in
distribution. The generator is Threefry-2x32.

>>> from handlax import random
>>> first, second = random.split(random.key(0))
>>> random.randint(first, (3,), 0, 10), random.uniform(second)
(Array([1, 1, 7], dtype=int32), Array(0.00729382, dtype=float32))
"""

from . import keyless as keyless
from .choices import categorical as categorical
from .choices import choice as choice
from .choices import permutation as permutation
from .draws import bernoulli as bernoulli
from .draws import bits as bits
from .draws import cauchy as cauchy
from .draws import double_sided_maxwell as double_sided_maxwell
from .draws import exponential as exponential
from .draws import geometric as geometric
from .draws import gumbel as gumbel
from .draws import laplace as laplace
from .draws import logistic as logistic
from .draws import lognormal as lognormal
from .draws import maxwell as maxwell
from .draws import multivariate_normal as multivariate_normal
from .draws import normal as normal
from .draws import pareto as pareto
from .draws import rademacher as rademacher
from .draws import randint as randint
from .draws import rayleigh as rayleigh
from .draws import triangular as triangular
from .draws import truncated_normal as truncated_normal
from .draws import uniform as uniform
from .draws import wald as wald
from .draws import weibull_min as weibull_min
from .keys import PRNGKey as PRNGKey
from .keys import clone as clone
from .keys import fold_in as fold_in
from .keys import key as key
from .keys import key_data as key_data
from .keys import key_impl as key_impl
from .keys import split as split
from .keys import wrap_key_data as wrap_key_data
from .rejections import beta as beta
from .rejections import chisquare as chisquare
from .rejections import dirichlet as dirichlet
from .rejections import f as f
from .rejections import gamma as gamma
from .rejections import loggamma as loggamma
from .rejections import poisson as poisson
from .rejections import t as t
