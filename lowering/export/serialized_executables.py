"""Compiled functions as bytes: XLA's executable, for processes on such machines with the same versions."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, BadArtifact, NotExportable
from ...effects.sharding.mesh import Mesh
from ...effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from ..compile.placement import Placement, on_device
from ..jit.ahead_of_time import Compiled, StoredExecutable, loaded
from ..xla.array_backend import note_placement
from ..xla.host_callbacks import HOST_CALL, calls_host
from ..xla.lazy import runtime

_MAGIC = b"handlax executable 1\n"
_DIGEST = hashlib.sha256().digest_size


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, with the structures of its arguments and results.

        deserialize_and_load(*serialize(compiled))(*args) == compiled(*args)

    Raises: BadArgument: it is no compiled function. NotExportable: it calls the host, or its program cannot be pickled.
    """
    if not isinstance(compiled, Compiled):
        hint = "jit(f).lower(x).compile() is one."
        raise BadArgument(f"serialize: a compiled function is needed, got {compiled!r}.", hint=hint)
    stored = compiled.stored()
    if calls_host(stored.program) or HOST_CALL in stored.text:  # a pure callback has no effect
        raise NotExportable(f"serialize: {stored.name} must not call the host, whose functions stay in this process.")
    try:
        body = pickle.dumps((_machine(), stored._replace(placement=_by_number(stored.placement))))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise NotExportable(f"serialize: the program {stored.name} must be one that pickles, got {error}.") from error
    return _MAGIC + hashlib.sha256(body).digest() + body, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: str | None = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """The compiled function that ``serialize`` wrote, without compiling it.

    What is loaded is executed, even while it is loaded: load those bytes alone that come from where you trust.

    Args:
        backend: the platform, by default that of the executable.
        execution_devices: the devices, as many as it was compiled for; by default the same ones.

    Raises: BadArtifact: the bytes are damaged, or were written on another kind of machine or by another version.
    DeviceMismatch: the program names a mesh of other devices.
    """
    head = len(_MAGIC) + _DIGEST
    body = serialized[head:]
    if serialized[:head] != _MAGIC + hashlib.sha256(body).digest():
        raise BadArtifact("deserialize_and_load: the bytes must be those that serialize returned, got others.")
    machine, stored = pickle.loads(body)
    if machine != _machine(backend):
        raise BadArtifact(
            "deserialize_and_load: the executable must be loaded where it was made, got another machine or version.",
            hint="export.export(f) is for others.",
        )
    placement = _of_numbers(stored.placement)
    if execution_devices is not None:
        placement = _moved(placement, tuple(execution_devices))
    if placement is not None:
        note_placement(placement.devices[-1])
    stored = stored._replace(placement=placement)
    return loaded(stored, in_tree, out_tree, lambda text, **places: _load(stored, text, places))


def _load(stored: StoredExecutable, text: str, places: dict[str, Any]) -> Any:
    """The executable of this text. Raises: BadArtifact: another version has lowered the program to another one."""
    if text != stored.text:
        raise BadArtifact(
            f"deserialize_and_load: {stored.name} must be lowered as it was when it was compiled, it is not.",
            hint="it is of another version of handlax, or of other settings: compile it again.",
        )
    return runtime.deserialize(stored.executable, text=text, **places)


def _machine(backend: str | None = None) -> bytes:
    """The facts on which executables of a platform depend."""
    first = runtime.backend(backend).default_device.client.devices()[0]
    return hashlib.sha256(runtime.cache_key_facts([first])).digest()


def _by_number(placement: Placement | None) -> Placement | None:
    """The placement with its devices as shardings, which pickle by their numbers."""
    return placement and placement._replace(devices=tuple(map(SingleDeviceSharding, placement.devices)))


def _of_numbers(placement: Placement | None) -> Placement | None:
    """The inverse of ``_by_number``."""
    return placement and placement._replace(devices=tuple([held._device for held in placement.devices]))


def _moved(placement: Placement | None, devices: tuple[Any, ...]) -> Placement:
    """The placement on other devices. Raises: BadArgument: they are not as many."""
    count = 1 if placement is None else len(placement.devices)
    if len(devices) != count:
        raise BadArgument(f"deserialize_and_load: {count} devices are needed, got {len(devices)}.")
    if placement is None:
        return on_device(devices[0])
    if placement.mesh is None:
        return placement._replace(devices=devices)
    old = placement.mesh
    mesh = Mesh(np.array(devices).reshape(old.axis_sizes), old.axis_names, old.axis_types)
    taken, given = [
        tuple([None if s is None else NamedSharding(mesh, s.spec, memory_kind=s.memory_kind) for s in shardings])
        for shardings in (placement.arguments, placement.results)
    ]
    return placement._replace(devices=devices, mesh=mesh, arguments=taken, results=given)
