"""PRNG keys: made from seeds, split, folded, and converted to and from the uint32 words that represent them."""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from ..effects.base.config import current as settings
from ..effects.base.errors import BadArgument, DTypeMismatch, IntegerOverflow, NotAnArray, ShapeMismatch
from ..effects.base.source_locations import warn_user
from ..effects.core.arrays import Array, as_array, concrete
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import canonical_shape
from ..effects.operations.manipulation.slicing import index_in_dim
from ..effects.operations.random_bits import KEY, LOW, random_unwrap, random_wrap
from ..effects.operations.random_generators import fold_keys, rekeyed, seed_keys, split_keys
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import ANY_INTEGER, KeyDType, canonical, is_extended, uint32
from ..effects.types.extent import is_size
from ..interpreters.core.eager_programs import eager_program

__all__ = ["Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]

Key = NewType("Key", Array)
"""For annotations: an array whose dtype is a ``KeyDType``."""


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The dtype of the keys of the generator of this name; for None of the setting ``default_prng_impl``.

    Raises: DTypeMismatch: there is no such generator.

    >>> from handlax import random
    >>> random.key_dtype(), random.key_dtype("philox4x32")
    (key<fry>, key<phx4>)
    """
    if impl_spec is None:
        name = settings().default_prng_impl
        return KEY if name == "threefry2x32" else KeyDType(name)
    return impl_spec if isinstance(impl_spec, KeyDType) else KeyDType(impl_spec)


def _chosen_dtype(name: str, impl: Any, dtype: Any = None) -> KeyDType:
    """``dtype``, or the dtype of keys of the generator ``impl``.

    Raises: BadArgument: both are given, or the dtype is not a dtype of keys.
    """
    if dtype is None:
        return key_dtype(impl)
    if impl is not None:
        raise BadArgument(f"{name}: give impl or dtype, not both; got {impl!r} and {dtype!r}.")
    dtype = canonical(dtype)
    if not isinstance(dtype, KeyDType):
        raise BadArgument(f"{name}: dtype must be one of keys, got {dtype}.", hint="random.key_dtype(impl) gives it.")
    return dtype


def _seed(name: str, seed: Any, dtype: KeyDType) -> Any:
    """The key whose two words, high and low, are the bits of an integer seed.

    The high word is 0 for Python integers from -2**31 to 2**32 - 1. If the setting ``enable_x64`` is False, it is 0 for
    all integers; if True, it has the upper bits of all, so that it is not 0 for negative ones.
    """
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise IntegerOverflow(f"{name}: a seed has at most 64 bits, got {number}.", hint="fold_in takes more.")
        wide = settings().enable_x64
        narrow = not wide and -(2**31) <= number < 2**32
        high = 0 if narrow or wide is False else (number >> 32) & LOW
        threefry = concrete(array_type((), KEY), np.array([high, number & LOW], uint32))
        return threefry if dtype is KEY or dtype == KEY else rekeyed(threefry, dtype)
    x = as_array(seed)
    if x.type.dtype not in ANY_INTEGER:
        raise DTypeMismatch(f"{name}: a seed must be an integer, got {x.type}.")
    if x.type.shape:
        raise ShapeMismatch(f"{name}: a seed is one integer, got {x.type}.", hint="vmap(random.key) takes many.")
    return seed_keys(x, dtype)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """The PRNG key of an integer seed: equal seeds give equal random numbers, on every device.

    It equals JAX's key of this seed: integers from -2**31 to 2**32 - 1 fill the low word, others both words.

    Args:
        impl: the name of the generator: threefry2x32, threefry4x32, philox2x32, philox4x32, rbg or unsafe_rbg.
        dtype: the dtype of the generator's keys, in place of its name.

    Raises: IntegerOverflow: the seed has more than 64 bits. DTypeMismatch: the seed is not an integer.

    >>> from handlax import random
    >>> random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    return _seed("random.key", seed, _chosen_dtype("random.key", impl, dtype))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """``key_data(key(seed))``: a key as an array of uint32 words, which all functions of ``random`` take as a key.

    >>> from handlax import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    made = _seed("random.PRNGKey", seed, key_dtype(impl))
    return made if settings().enable_custom_prng else random_unwrap(made)


def typed(name: str, keys: Any) -> Any:
    """An array of keys: ``keys`` itself, or keys of the default generator from words ``uint32[..., n]``."""
    try:
        keys = keys if isinstance(keys, Array) else as_array(keys)
    except NotAnArray as error:
        hint = "random.key(seed) makes a key; a shape comes after it."
        raise NotAnArray(error.what, hint=hint).moved(error.where) from None
    if is_extended(keys.type.dtype):
        return keys
    _check_legacy(name, keys)
    return _wrapped(name, keys, key_dtype())


def _check_legacy(name: str, words: Any) -> None:
    """Warn about a key given as words, or raise BadArgument, as the setting ``legacy_prng_key`` says."""
    level = settings().legacy_prng_key
    if level == "error":
        raise BadArgument(
            f"{name}: a typed key is needed under legacy_prng_key='error', got {words.type}.",
            hint="make keys with random.key(seed), or random.wrap_key_data(words).",
        )
    if level == "warn":
        warn_user(f"{name}: keys given as words, {words.type}, are JAX's legacy; random.key(seed) makes typed ones.")


def _wrapped(name: str, words: Any, dtype: KeyDType) -> Any:
    """The keys of dtype ``dtype`` that ``words`` represent. Raises: DTypeMismatch: they are not ``uint32[..., n]``."""
    if words.type.dtype != uint32 or words.type.shape[-1:] != dtype.shape:
        raise DTypeMismatch(
            f"{name}: a key is needed, or its words uint32[{dtype.shape[0]}], got {words.type}.",
            hint="make keys with random.key(seed) and random.split(key).",
        )
    return random_wrap(words, dtype)


def single(name: str, keys: Any) -> Any:
    """One key, from a key or its uint32 words. Raises: ShapeMismatch: there are several keys."""
    key = typed(name, keys)
    if key.type.shape:
        raise ShapeMismatch(
            f"{name}: one key is needed, got {key.type}.", hint="map over the keys: vmap(lambda key: ...)(keys)."
        )
    return key


def same_form(keys: Any, given: Any) -> Any:
    """``keys`` as an array of keys if ``given`` is one, else as their uint32 words."""
    return keys if isinstance(given, Array) and is_extended(given.type.dtype) else random_unwrap(keys)


def pair(one: Any) -> tuple[Any, Any]:
    """The two keys that a key is split into."""
    both = split_keys(one, (2,))
    return index_in_dim(both, 0, keepdims=False), index_in_dim(both, 1, keepdims=False)


def key_data(keys: Any) -> Array:
    """The uint32 words that represent keys: ``wrap_key_data(key_data(keys)) == keys``.

    Shapes: ``key[*s] -> uint32[*s, n]``, n = 2 for the default generator; words are returned themselves.

    >>> from handlax import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return random_unwrap(typed("random.key_data", keys))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """The keys that these uint32 words represent: the inverse of ``key_data``.

    Shapes: ``uint32[*s, 2] -> key[*s]``.
    Args:
        impl, dtype: the generator, as for ``key``.

    >>> from handlax import random
    >>> random.wrap_key_data(np.array([0, 7], "uint32"))
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    key_type = _chosen_dtype("random.wrap_key_data", impl, dtype)
    words = as_array(key_bits_array)
    if is_extended(words.type.dtype):
        raise DTypeMismatch(f"random.wrap_key_data: words uint32 are needed, got {words.type}.")
    return _wrapped("random.wrap_key_data", words, key_type)


def key_impl(keys: Any) -> str:
    """The name of the generator of these keys.

    >>> from handlax import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return str(typed("random.key_impl", keys).type.dtype.impl.name)


def clone(key: Any) -> Array:
    """``key`` itself, as reuse of keys is not checked; a key that is used twice gives the same numbers twice."""
    keys = key if isinstance(key, Array) else as_array(key)
    typed("random.clone", keys)
    return keys


@eager_program
def split(key: Any, num: Any = 2) -> Array:
    """New keys, independent of each other and of samples from ``key``: ``split(key, n)[i] == fold_in(key, i)``.

    Shapes: ``key[] -> key[num]``, or ``key[*num]`` for a tuple; of a key given as uint32 words, words.
    Raises: ShapeMismatch: ``key`` is an array of several keys. BadArgument: ``num`` is not a shape.

    >>> from handlax import random
    >>> first, second = random.split(random.key(0))
    >>> random.split(random.key(0), (2, 3)).shape
    (2, 3)
    """
    size = num if is_size(num) or not hasattr(num, "__index__") else num.__index__()
    shape = canonical_shape(size, "random.split")
    return same_form(split_keys(single("random.split", key), shape), key)


def fold_in(key: Any, data: Any) -> Array:
    """A key derived from ``key`` and an integer: different integers give independent keys.

    Args:
        data: an integer from 0 to 2**32 - 1; of an array of a wider dtype the low 32 bits.
    Raises: IntegerOverflow: a Python integer out of this range. DTypeMismatch: ``data`` is not an integer.

    >>> from handlax import random
    >>> random.fold_in(random.key(0), 1)
    Array((), dtype=key<fry>) overlaying:
    [ 928981903 3453687069]
    >>> random.key_data(random.split(random.key(0)))
    Array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    one = single("random.fold_in", key)
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        if not 0 <= data <= LOW:
            raise IntegerOverflow(f"random.fold_in: the number must have 32 bits and no sign, got {data}.")
        return same_form(fold_keys(one, concrete(array_type((), uint32), np.array(data, uint32))), key)
    number = as_array(data)
    if number.type.dtype not in ANY_INTEGER:
        raise DTypeMismatch(f"random.fold_in: the data must be an integer, got {number.type}.")
    if number.type.shape:
        raise ShapeMismatch(
            f"random.fold_in: one integer is needed, got {number.type}.",
            hint="map over it: vmap(lambda n: fold_in(key, n))(numbers).",
        )
    return same_form(fold_keys(one, convert(number, uint32)), key)
