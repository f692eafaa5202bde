"""Registration of foreign functions with XLA, by the name of their target, and the headers to write them."""

import ctypes
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jaxlib

from ...effects.base.errors import BadArgument, RegistrationError
from ...effects.operations.foundations.foreign_call import BATCH_PARTITIONABLE
from .jaxlib_modules import RuntimeFailure, _jax, xc

_PLATFORMS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "host": "cpu"}


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a foreign function, so that ``ffi_call(name, ...)`` calls it.

    It stays registered until the process ends.

    Args:
        fn: a capsule with the address of its handler, as ``pycapsule`` makes it of a function of a library that ctypes
            has loaded; or a dictionary from the stages of XLA's interface, such as ``"execute"``, to capsules.
        platform: "cpu", "gpu" or "cuda".
        api_version: 1 for a handler of the typed interface, 0 for a function of the older ones.
        kwargs: what ``jaxlib.xla_client.register_custom_call_target`` takes beside, such as ``traits``.

    Raises: RegistrationError: another function has this name. BadArgument: ``fn`` is no capsule, or there is no such
    platform.
    """
    stages = fn.values() if isinstance(fn, Mapping) else [fn]
    if not all([type(stage).__name__ == "PyCapsule" for stage in stages]):
        raise BadArgument(
            f"register_ffi_target {name!r}: capsules with the addresses of functions are needed, got {fn!r}.",
            hint="hx.ffi.pycapsule(library.function), of a library that ctypes has loaded.",
        )
    where = f"register_ffi_target {name!r}"
    _registered(where, xc.register_custom_call_target, name, fn, _platform(where, platform), api_version, **kwargs)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let programs over several devices cut calls of this function along the lanes that ``vmap`` gave it.

    That is with ``vmap_method="broadcast_all"``, where all arrays have the lanes. Else each device calls it on whole
    arrays. Programs that were compiled before stay as they are.
    """
    BATCH_PARTITIONABLE.add(name)
    xc.register_custom_call_as_batch_partitionable(name)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register a type of the state that a foreign function keeps from one call to the next.

    Args:
        type_registration: capsules with the addresses of the type's ``type_id``, and of its ``type_info``, in a
            dictionary.

    Raises: RegistrationError: XLA refuses it.
    """
    where = f"register_ffi_type {name!r}"
    _registered(where, xc.register_custom_type, name, type_registration, platform=_platform(where, platform))


def _platform(where: str, platform: str) -> str:
    """XLA's word for a platform; where it is the CPU, it is ready to take registrations."""
    known = _PLATFORMS.get(platform.lower())
    if known is None:
        raise BadArgument(f"{where}: the platform must be 'cpu', 'gpu' or 'cuda', got {platform!r}.")
    if known == "cpu":  # else jaxlib keeps them, unchecked, until there is a client
        xc.register_custom_call_handler("cpu", _jax.register_custom_call_target)
        xc.register_custom_type_handler("cpu", _jax.register_custom_type)
    return known


def _registered(where: str, register: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    try:
        register(*args, **kwargs)
    except (RuntimeFailure, TypeError, ValueError) as error:
        raise RegistrationError(f"{where}: XLA must accept the registration, got {error}") from error


def pycapsule(funcptr: Any) -> Any:
    """A capsule with the address of a function of a library that ctypes has loaded, or with an address.

    >>> import ctypes
    >>> type(pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
    'PyCapsule'
    """
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(("PyCapsule_New", ctypes.pythonapi))(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def include_dir() -> str:
    """The folder of the headers in jaxlib: with ``-I`` of it a compiler finds ``xla/ffi/api/ffi.h``."""
    return str(pathlib.Path(jaxlib.__path__[0]) / "include")
