"""``handlax.experimental.array_serialization.serialization``: single arrays written to stores of TensorStore, and read.

    asyncio.run(async_serialize(x, spec))
    asyncio.run(async_deserialize(sharding, spec)) == x

The specs of TensorStore say where, and in which format; ``get_tensorstore_spec`` makes one of a path. What is written
so is not whole until all of it is: ``handlax.checkpoints`` saves trees, at once. Needs the extra ``save``.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from typing import Any

import numpy as np

from ...effects.base.errors import BadArgument, UnknownSharding
from ...effects.base.lazy_module import optional_module
from ...effects.core.arrays import ConcreteArray, as_array
from ...effects.sharding.layout import Format
from ...effects.sharding.named_sharding import Bounds, Sharding, bounds
from ...effects.types.dtypes import canonicalize_dtype
from ...interpreters.transformations.make_program import ShapeDtypeStruct
from ...lowering.arrays.assembled_arrays import make_array_from_callback
from ...lowering.clients.agreement import together
from ...lowering.jit.devices import process_count, process_index

__all__ = [
    "AsyncManager", "GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "async_deserialize",
    "async_serialize", "get_tensorstore_spec", "is_remote_storage", "run_deserialization", "run_serialization",
]

StoreSpec = dict[str, Any]

_REMOTE = {"gs": "gcs", "s3": "s3"}
_NUMBERS = count()


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str], ocdbt: bool = False, process_idx: int | None = None, arr: Any = None, *,
    driver: str = "zarr",
) -> StoreSpec:
    """The spec of an array at a path, which may begin with ``gs://`` or ``s3://``; with ``arr`` its metadata too.

    Args:
        ocdbt: whether the folder of the path is a database, in which the array has the path's last name.
        process_idx: the process whose folder beside the array has it; None: none.
    """
    scheme, _, rest = os.fspath(ckpt_path).rpartition("://")
    path = os.path.normpath(rest)
    if process_idx is not None:
        path = os.path.join(os.path.dirname(path), f"process_{process_idx}", os.path.basename(path))
    place, name = os.path.split(path) if ocdbt else (path, "")
    if scheme:
        bucket, _, inner = place.partition("/")
        kvstore: StoreSpec = {"driver": _REMOTE[scheme], "bucket": bucket, "path": inner}
    else:
        kvstore = {"driver": "file", "path": place}
    if ocdbt:
        kvstore = {"driver": "ocdbt", "base": kvstore, "path": name}
    return {"driver": driver, "kvstore": kvstore} | ({} if arr is None else _metadata(driver, arr))


def is_remote_storage(tspec: Mapping[str, Any] | str) -> bool:
    """Whether a spec, or a path, is of a store on other machines."""
    if isinstance(tspec, str):
        return tspec.startswith(tuple([f"{scheme}://" for scheme in _REMOTE]))
    inner = [tspec[name] for name in ("kvstore", "base") if isinstance(tspec.get(name), Mapping)]
    return tspec.get("driver") in _REMOTE.values() or any(map(is_remote_storage, inner))


def _metadata(driver: str, x: Any) -> StoreSpec:
    """What the spec of an array has beside its place: a chunk for each shard."""
    sharding = getattr(x, "sharding", None)
    part = x.shape if sharding is None else sharding.shard_shape(x.shape)
    shape, chunk, dtype = [*x.shape], [max(n, 1) for n in part], str(np.dtype(x.dtype).name)
    if driver == "zarr":
        return {"dtype": dtype, "metadata": {"shape": shape, "chunks": chunk}}
    if driver == "zarr3":
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        return {"metadata": {"shape": shape, "data_type": dtype, "chunk_grid": grid}}
    raise BadArgument(f"get_tensorstore_spec: the driver must be 'zarr' or 'zarr3', got {driver!r}.",
                      hint="a spec with metadata may have any driver.")


async def async_serialize(
    arr_inp: Any, tensorstore_spec: StoreSpec, commit_future: list[Any] | None = None, context: Any = None,
    chunk_layout: Any = None, primary_host: int | None = None, replica_id: int = 0, transaction: Any = None,
) -> None:
    """Write the shards of an array that this process holds, of those that several devices hold the ``replica_id``-th.

    Args:
        commit_future: a list to which promises are added, whose results are to be waited for: what is written is then
            on the disk. Without it this function waits for them.
        primary_host: the process that makes the array in the store; None: the first that comes.

    Raises: BadArgument: each of several processes has the array for itself.
    """
    x = arr_inp if isinstance(arr_inp, ConcreteArray) else as_array(arr_inp)
    if process_count() > 1 and x.is_fully_addressable:
        raise BadArgument(f"async_serialize: an array must be over the devices of all processes, got {x.type} of one.",
                          hint="multihost_utils.host_local_array_to_global_array makes one.")
    made = {} if _has_metadata(tensorstore_spec) else _metadata(tensorstore_spec["driver"], x)
    options = _given(context=context, chunk_layout=chunk_layout, transaction=transaction)
    is_maker = primary_host is None or process_index() == primary_host
    how = {"create": True, "open": True} if is_maker else {"open": True, "assume_metadata": True}
    store = await optional_module("tensorstore", "save").open({**tensorstore_spec, **made}, **how, **options)
    writes = [store[shard.index].write(np.array(shard.data)) for shard in x.addressable_shards
              if shard.replica_id == replica_id and x.size]
    for write in writes:
        await (write if commit_future is None else write.copy)
    if commit_future is not None:
        commit_future += [write.commit for write in writes]


def _has_metadata(spec: Any) -> bool:
    return isinstance(spec, Mapping) and ("metadata" in spec or any(map(_has_metadata, spec.values())))


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


async def async_deserialize(
    in_type: Any, tensorstore_spec: StoreSpec, global_shape: Sequence[int] | None = None, dtype: Any = None,
    byte_limiter: BytesInFlight | None = None, context: Any = None, chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> ConcreteArray:
    """The array with a sharding of which this process reads its own shards; ``in_type`` is a sharding, a format, or a
    ``ShapeDtypeStruct`` with one.

    Args:
        global_shape: the shape of the array, by default that in the store, which is cut to it, or padded with zeros.
        dtype: by default that in the store.
    """
    if isinstance(in_type, ShapeDtypeStruct):
        dtype = in_type.dtype if dtype is None else dtype
        in_type = in_type.sharding
    sharding = in_type.sharding if isinstance(in_type, Format) else in_type
    if not isinstance(sharding, Sharding):
        raise UnknownSharding(f"async_deserialize: a sharding is needed, got {sharding!r}.",
                              hint="NamedSharding(mesh, P()).")
    options = _given(context=context, chunk_layout=chunk_layout)
    tensorstore = optional_module("tensorstore", "save")
    store = await tensorstore.open(tensorstore_spec, open=True, assume_metadata=assume_metadata, **options)
    shape = tuple(store.shape if global_shape is None else global_shape)
    wanted = canonicalize_dtype(store.dtype.numpy_dtype if dtype is None else dtype)
    sharding.check_fit("async_deserialize", lambda: "the array", shape)
    places = {bounds(index, shape): None for index in sharding.addressable_devices_indices_map(shape).values()}

    async def part(place: Bounds) -> np.ndarray[Any, Any]:
        data = np.zeros([stop - start for start, stop in place], store.dtype.numpy_dtype)
        held = tuple([slice(start, min(stop, size)) for (start, stop), size in zip(place, store.shape)])
        if all([cut.start < cut.stop for cut in held]):
            async with byte_limiter.reading(data.nbytes) if byte_limiter else nullcontext():
                data[tuple([slice(0, cut.stop - cut.start) for cut in held])] = await store[held].read()
        return data.astype(wanted)

    parts = dict(zip(places, await asyncio.gather(*map(part, places))))
    return make_array_from_callback(shape, in_type, lambda index: parts[bounds(index, shape)])


class BytesInFlight:
    """At most ``limit`` bytes are read at a time, or one part that has more."""

    def __init__(self, limit: int):
        self._limit = self._free = limit
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reading(self, size: int) -> AsyncIterator[None]:
        """A block in which so many bytes are read, which begins when they may be."""
        size = min(size, self._limit)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            async with self._changed:
                self._free += size
                self._changed.notify_all()


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[StoreSpec]) -> None:
    """Write arrays, and wait until they are on the disk."""

    async def run() -> None:
        await asyncio.gather(*map(async_serialize, arrays, tensorstore_specs))

    asyncio.run(run())


def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[StoreSpec], global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
) -> list[ConcreteArray]:
    """The arrays of these specs with these shardings, all read at the same time, ``concurrent_gb`` 10^9 bytes at most.
    """
    nothing = [None] * len(tensorstore_specs)

    async def run() -> list[ConcreteArray]:
        limiter = BytesInFlight(concurrent_gb * 10**9)
        columns = shardings, tensorstore_specs, global_shapes or nothing, dtypes or nothing
        return await asyncio.gather(*[async_deserialize(*row, limiter) for row in zip(*columns, strict=True)])

    return asyncio.run(run())


class GlobalAsyncCheckpointManagerBase(ABC):
    """What writes arrays in a thread, one call after the other."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of the write in the background, if it has ended with one; do not wait for it."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written, by all processes. Raises what went wrong."""

    @abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]) -> None:
        """Begin to write arrays; process 0 calls ``on_commit_callback()`` when all processes have written theirs."""

    @abstractmethod
    def deserialize(
        self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None
    ) -> Sequence[Any]:
        """The arrays of these specs with these shardings."""


class AsyncManager:
    """The thread that waits for what is being written. ``timeout_secs`` is JAX's; a process that fails is told of."""

    def __init__(self, timeout_secs: int = 300):
        self._writing: Future[None] | None = None

    def _start(self, promises: Sequence[Any], on_commit_callback: Callable[[], None] | None) -> None:
        name = f"array_serialization/{next(_NUMBERS)}"

        def call_back() -> None:
            if process_index() == 0 and on_commit_callback is not None:
                on_commit_callback()

        def finish() -> None:
            together(lambda: [promise.result() for promise in promises], f"{name}/written")
            together(call_back, f"{name}/committed")

        thread = ThreadPoolExecutor(1, "handlax array_serialization")
        self._writing = thread.submit(finish)
        thread.shutdown(wait=False)

    def check_for_errors(self) -> None:
        """Raise the error of the write in the background, if it has ended with one; do not wait for it."""
        if self._writing is not None and self._writing.done():
            self.wait_until_finished()

    def wait_until_finished(self) -> None:
        """Wait until all is written, by all processes. Raises what went wrong."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays in a thread, one call after the other, and reads them.

    It does not know when an array is whole: write to a new folder, and rename that in ``on_commit_callback``.
    """

    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[StoreSpec], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:
        """Begin to write arrays, when those of the call before are written, whose errors are raised."""
        self.wait_until_finished()
        promises: list[Any] = []

        async def run() -> None:
            await asyncio.gather(*[
                async_serialize(x, spec, promises, transaction=transaction)
                for x, spec in zip(arrays, tensorstore_specs, strict=True)])

        asyncio.run(run())
        self._start(promises, on_commit_callback)

    def serialize_with_paths(
        self, arrays: Sequence[Any], paths: Sequence[str], *, on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """``serialize`` by the specs of paths."""
        specs = [*map(get_tensorstore_spec, paths)]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[StoreSpec],
        global_shapes: Sequence[Any] | None = None, dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
    ) -> list[ConcreteArray]:
        """The arrays of these specs with these shardings, after all is written."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self, shardings: Sequence[Any], paths: Sequence[str], global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
    ) -> list[ConcreteArray]:
        """``deserialize`` by the specs of paths."""
        return self.deserialize(shardings, [*map(get_tensorstore_spec, paths)], global_shapes, dtypes, concurrent_gb)
