"""What ``handlax.numpy`` says of itself as a namespace of the array API standard: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

from ..effects.base.errors import BadArgument
from ..effects.types.dtypes import default_complex, default_float, default_int
from ..lowering.jit.devices import devices
from ..lowering.xla.array_backend import default_device
from . import dtype_routines as types

__array_api_version__ = "2024.12"

_DTYPES: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_INTEGRAL = ("signed integer", "unsigned integer")
_KINDS: dict[str | None, tuple[str, ...]] = {
    **{kind: (kind,) for kind in _DTYPES},
    "integral": _INTEGRAL,
    "numeric": (*_INTEGRAL, "real floating", "complex floating"),
    None: tuple(_DTYPES),
}


class __array_namespace_info__:  # the name that the standard gives
    """The inspection functions of a namespace.

    Source: Python array API standard 2024.12, Inspection.

    >>> __array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32'), 'float64': dtype('float64')}
    """

    def capabilities(self) -> dict[str, Any]:
        """Masks of known values are indices, shapes may depend on known values, any number of dimensions is allowed."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        """The device of new arrays."""
        return default_device()

    def devices(self) -> list[Any]:
        """All devices of the platform."""
        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes that Python's numbers have under the settings in force."""
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": default_int(),
            "indexing": default_int(),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of a kind, or of several, by their names; by default all those of the standard.

        Raises: BadArgument: there is no such kind.
        """
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for name in kinds:
            if name not in _KINDS:
                raise BadArgument(f"dtypes: kind must be one of {', '.join(map(str, _KINDS))}, got {name!r}.")
        atoms = dict.fromkeys(atom for name in kinds for atom in _KINDS[name])
        return {name: types.dtype(name) for atom in atoms for name in _DTYPES[atom]}
