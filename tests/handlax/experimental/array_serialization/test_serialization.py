"""Arrays in stores of TensorStore: written by their shards, and read with any sharding."""

import asyncio

import numpy as np
import pytest

import handlax as hx
from handlax import NamedSharding, P, errors
from handlax.experimental.array_serialization.serialization import (
    BytesInFlight,
    GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase,
    async_deserialize,
    get_tensorstore_spec,
    is_remote_storage,
    run_deserialization,
    run_serialization,
)

MESH = hx.make_mesh((2, 4), ("a", "b"))
X = np.arange(64).reshape(8, 8)
SHARDINGS = [NamedSharding(MESH, P(*spec)) for spec in ((), ("a", "b"), (None, "a"))]


def specs(folder, driver="zarr", **options):
    return [get_tensorstore_spec(folder / str(i), driver=driver, **options) for i in range(len(SHARDINGS))]


@pytest.mark.parametrize(("driver", "options"), [("zarr", {}), ("zarr3", {}), ("zarr3", {"ocdbt": True})], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_what_is_read_is_what_was_written(tmp_path, driver, options, dtype):
    arrays = [hx.device_put(X.astype(dtype), sharding) for sharding in SHARDINGS]
    run_serialization(arrays, specs(tmp_path, driver, **options))
    found = run_deserialization(SHARDINGS[::-1], specs(tmp_path, driver, **options), concurrent_gb=1)
    for x, sharding in zip(found, SHARDINGS[::-1], strict=True):
        assert x.sharding == sharding and x.dtype == dtype and (np.asarray(x) == X.astype(dtype)).all()


def test_a_manager_calls_back_when_all_is_written(tmp_path):
    arrays = [hx.device_put(X, sharding) for sharding in SHARDINGS]
    manager, told = GlobalAsyncCheckpointManager(), []
    assert isinstance(manager, GlobalAsyncCheckpointManagerBase)
    paths = [str(tmp_path / str(i)) for i in range(3)]
    read = lambda: [np.asarray(x) for x in run_deserialization(SHARDINGS, specs(tmp_path))]
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: told.extend(read()))
    manager.wait_until_finished()
    assert len(told) == 3 and all((x == X).all() for x in told)
    assert all((np.asarray(x) == X).all() for x in manager.deserialize_with_paths(SHARDINGS, paths))

    def fail():
        raise OSError("no folder")

    manager.serialize(arrays, specs(tmp_path / "again"), on_commit_callback=fail)
    with pytest.raises(OSError, match="no folder"):
        manager.wait_until_finished()
    manager.check_for_errors()  # once only


def test_another_shape_is_cut_or_padded_and_another_dtype_converted(tmp_path):
    run_serialization([hx.device_put(X, SHARDINGS[1])], specs(tmp_path)[:1])
    wanted = hx.ShapeDtypeStruct((), "float32", sharding=SHARDINGS[1])
    x = asyncio.run(async_deserialize(wanted, specs(tmp_path)[0], (4, 16)))
    assert x.dtype == "float32" and (np.asarray(x) == np.pad(X[:4], ((0, 0), (0, 8)))).all()
    x = asyncio.run(async_deserialize(x.format, specs(tmp_path)[0]))
    assert x.sharding == SHARDINGS[1] and (np.asarray(x) == X).all()


def test_so_many_bytes_are_read_at_a_time():
    async def run():
        limiter, busy, most = BytesInFlight(10), [0], []

        async def read(size):
            async with limiter.reading(size):
                busy[0] += min(size, 10)
                most.append(busy[0])
                await asyncio.sleep(0)
                busy[0] -= min(size, 10)

        await asyncio.gather(*map(read, [4, 5, 6, 30, 1, 1]))
        return most

    most = asyncio.run(run())
    assert len(most) == 6 and max(most) == 10


def test_specs_of_paths():
    assert get_tensorstore_spec("/a/b/") == {"driver": "zarr", "kvstore": {"driver": "file", "path": "/a/b"}}
    assert get_tensorstore_spec("gs://bucket/a/b")["kvstore"] == {"driver": "gcs", "bucket": "bucket", "path": "a/b"}
    database = get_tensorstore_spec("s3://bucket/a/b", ocdbt=True, process_idx=3)["kvstore"]
    assert database == {
        "driver": "ocdbt", "path": "b", "base": {"driver": "s3", "bucket": "bucket", "path": "a/process_3"}}
    assert is_remote_storage({"kvstore": database}) and is_remote_storage("gs://a") and not is_remote_storage("/a")
    spec = get_tensorstore_spec("/a", arr=hx.device_put(X, SHARDINGS[1]), driver="zarr3")
    assert spec["metadata"]["chunk_grid"]["configuration"]["chunk_shape"] == [4, 2]


@pytest.mark.parametrize(("act", "error", "message"), [
    (lambda: get_tensorstore_spec("/a", arr=X, driver="n5"), errors.BadArgument, "must be 'zarr' or 'zarr3', got 'n5'"),
    (lambda: asyncio.run(async_deserialize(None, {})), errors.UnknownSharding, "a sharding is needed, got None"),
], ids=["driver", "sharding"])
def test_mistakes(act, error, message):
    with pytest.raises(error, match=message):
        act()

