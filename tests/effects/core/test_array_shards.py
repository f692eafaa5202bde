"""Arrays over several devices: what they tell, and that they are arrays like others."""

import copy
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P

MESH = Mesh(np.array(hx.devices()).reshape(2, 4), ("a", "b"))
X = np.arange(32, dtype="float32").reshape(8, 4)
SPECS = [P("a"), P("b", "a"), P(None, "b"), P(("b", "a")), P()]


def by(*spec):
    return NamedSharding(MESH, P(*spec))


@pytest.mark.parametrize("spec", SPECS)
def test_the_parts_are_those_that_the_sharding_says_and_make_the_array(spec):
    x = hx.device_put(X, NamedSharding(MESH, spec))
    whole, copies = np.full_like(X, np.nan), {}
    assert len(x.addressable_shards) == len(x.global_shards) == 8
    for i, shard in enumerate(x.addressable_shards):
        assert shard.device == hx.devices()[i] and shard.data.devices() == {shard.device}
        assert shard.data.tolist() == X[shard.index].tolist() == x.addressable_data(i).tolist()
        assert shard.data.sharding == SingleDeviceSharding(shard.device)
        whole[shard.index] = shard.data
        copies.setdefault(str(shard.index), []).append(shard.replica_id)
    assert whole.tolist() == X.tolist() and all(found == [*range(len(found))] for found in copies.values())


@pytest.mark.parametrize("spec", SPECS)
def test_an_array_over_devices_is_read_as_any_other(spec):
    x = hx.device_put(X, NamedSharding(MESH, spec))
    assert repr(x) == repr(hnp.asarray(X)) and str(x) == str(X) and x.tolist() == X.tolist()
    assert np.array_equal(np.asarray(x), X) and np.array_equal(hx.device_get(x), X) and len(x) == 8
    assert float(x[1, 2]) == X[1, 2] and x[2:5].tolist() == X[2:5].tolist() and [*x][3].tolist() == X[3].tolist()
    assert x.at[0].set(1.0).tolist() == [[1.0] * 4, *X[1:].tolist()] and (x > 3).sum() == (X > 3).sum()
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert again.tolist() == X.tolist()
    assert x.block_until_ready() is x and hx.block_until_ready([x])[0] is x and x.is_ready() and not x.is_deleted()


def test_it_tells_where_it_is():
    x, whole, single = hx.device_put(X, by("a")), hx.device_put(X, by()), hx.device_put(X, hx.devices()[3])
    assert x.sharding == x.device == by("a") and x.devices() == {*hx.devices()} and single.device == hx.devices()[3]
    assert [y.is_fully_replicated for y in (x, whole, single)] == [False, True, True]
    assert x.is_fully_addressable and x.committed and x._committed and single.committed
    assert not hx.jit(lambda: hnp.ones(3))().committed
    assert single.addressable_shards[0].index == (slice(None), slice(None))


@pytest.mark.parametrize(
    ("f", "spec"),
    [
        (lambda x: x + 1, P("a")), (lambda x: x * x, P("a")), (lambda x: x.T, P(None, "a")), (lambda x: -x, P("a")),
        (lambda x: x.sum(), P()), (lambda x: x.astype("bfloat16"), P("a")), (lambda x: x + np.ones(4, "f"), P("a")),
        (lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), P("a")), (lambda x: hnp.sin(x) * 2.0, P("a")),
    ],
)
def test_operations_are_computed_by_the_devices_that_hold_the_operands(f, spec):
    y = f(hx.device_put(X, by("a")))
    assert y.sharding == NamedSharding(MESH, spec)
    np.testing.assert_allclose(np.asarray(y, "f"), np.asarray(f(hnp.asarray(X)), "f"), rtol=1e-6)


def test_operations_of_half_precision_and_of_keys_are_too():
    keys = hx.random.split(hx.random.key(0), 8)
    spread = hx.device_put(keys, by("a"))
    assert spread.sharding == by("a") and (hx.random.key_data(spread) == hx.random.key_data(keys)).all()
    bits = hx.jit(hx.vmap(lambda k: hx.random.bits(k, (4,))))
    np.testing.assert_array_equal(bits(spread), bits(keys))
    drawn = hx.jit(hx.vmap(lambda k: hx.random.normal(k, (4,))))
    np.testing.assert_allclose(drawn(spread), drawn(keys), rtol=1e-6)  # kernels differ, and so may the last bits


def test_a_deleted_array_is_gone_on_all_devices():
    x = hx.device_put(X, by("a"))
    x.delete()
    assert x.is_deleted()
    with pytest.raises(hx.errors.DeletedArray):
        x.tolist()
