"""``data.Batches``: by number the same rows in every run, and each row once in an epoch."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax import random
from handlax.data import Batches

DATA = {"x": np.arange(22.0).reshape(11, 2), "y": np.arange(11)}
KEY = random.key(3)


def labels(batches):
    return [batch["y"].tolist() for batch in batches]


@pytest.mark.parametrize("key", [None, KEY], ids=["in order", "shuffled"])
@pytest.mark.parametrize("drop", [True, False])
def test_every_epoch_has_each_row_once_but_for_a_remainder(key, drop):
    batches = Batches(DATA, 4, key=key, epochs=3, drop_remainder=drop)
    per_epoch = 2 if drop else 3
    assert len(batches) == 3 * per_epoch == len(labels(batches))
    orders = []
    for epoch in range(3):
        order = [row for batch in labels(batches[per_epoch * epoch : per_epoch * (epoch + 1)]) for row in batch]
        assert len(order) == len({*order}) == (8 if drop else 11)
        orders.append(order)
    assert orders[0] != orders[1] != orders[2] if key is not None else orders == [[*range(8 if drop else 11)]] * 3
    for batch in batches:
        assert batch["x"].tolist() == [[2.0 * i, 2.0 * i + 1] for i in batch["y"]]


@pytest.mark.parametrize("key", [None, KEY], ids=["in order", "shuffled"])
def test_they_go_on_after_any_number(key):
    batches = Batches(DATA, 3, key=key, epochs=4)
    whole = labels(batches)
    for step in range(len(whole) + 1):
        again = Batches(DATA, 3, key=key, epochs=4)[step:]  # as another process makes them
        assert labels(again) == whole[step:] and len(again) == len(whole) - step
    assert labels(batches[i] for i in range(-len(whole), len(whole))) == whole * 2
    assert labels(batches[1:][::2][1:]) == whole[3::2]


@pytest.mark.parametrize("drop", [True, False])
def test_parts_of_a_batch_are_in_order_what_the_batch_is(drop):
    data = np.arange(14)
    whole = Batches(data, 8, key=KEY, epochs=2, drop_remainder=drop)
    parts = [Batches(data, 8, key=KEY, epochs=2, drop_remainder=drop, part=(i, 2)) for i in range(2)]
    assert [np.concatenate(pieces).tolist() for pieces in zip(*parts)] == [batch.tolist() for batch in whole]
    assert len(parts[0]) == len(whole) == (2 if drop else 4)


def test_data_stay_on_the_disk_and_are_not_changed(tmp_path):
    file = np.memmap(tmp_path / "data", np.float32, "w+", shape=(6, 2))
    file[:] = np.arange(12).reshape(6, 2)
    found = [batch.tolist() for batch in hx.prefetch(Batches(file, 2))]
    assert found == file.reshape(3, 2, 2).tolist() and isinstance(Batches(file, 2).data, np.memmap)


def test_the_order_is_the_same_with_other_settings():
    with hx.configure(default_int="int64"):
        other = labels(Batches(DATA, 4, key=KEY))
    assert labels(Batches(DATA, 4, key=KEY)) == other


MISTAKES = {
    "no whole batch": (lambda: Batches(DATA, 12), hx.errors.BadArgument, "a batch of 12 rows, got 11"),
    "no rows": (lambda: Batches(DATA, 0), hx.errors.BadArgument, "size must be at least 1"),
    "no array": (lambda: Batches({"x": [1, 2]}, 1), hx.errors.BadArgument, "arrays of NumPy with rows, got 1"),
    "no data": (lambda: Batches({}, 1), hx.errors.ShapeMismatch, "one length, got none"),
    "two lengths": (lambda: Batches({"x": np.ones(3), "y": np.ones(2)}, 1), hx.errors.ShapeMismatch, r"3 at .*2 at"),
    "no such part": (lambda: Batches(DATA, 4, part=(2, 2)), hx.errors.BadArgument, "0 <= i < n"),
    "no equal parts": (lambda: Batches(DATA, 4, part=(0, 3)), hx.errors.ShapeMismatch, "3 equal parts, got one of 4"),
    "no equal parts of the last": (
        lambda: Batches(DATA, 4, part=(0, 2), drop_remainder=False), hx.errors.ShapeMismatch, "got one of 3"),
    "no such batch": (lambda: Batches(DATA, 4)[2], hx.errors.BadIndex, "one of 2 batches, got 2"),
    "no number": (lambda: Batches(DATA, 4)[0.5], hx.errors.NotAnInteger, "number of a batch"),
    "changed": (lambda: setattr(Batches(DATA, 4), "size", 3), hx.errors.Immutable, "a slice others of these"),
}


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_key_over_all_devices_is_read_once():  # its operations are launches of all processes, in no order in a thread
    key = random.key(3)
    spread = hx.device_put(key, hx.NamedSharding(hx.make_mesh((8,), ("i",)), hx.P()))
    batches = Batches(np.arange(9), 2, key=spread)
    assert len(batches.key.devices()) == 1 and len(spread.devices()) == 8
    assert [x.tolist() for x in batches] == [x.tolist() for x in Batches(np.arange(9), 2, key=key)]


def test_an_order_is_known_while_a_program_is_traced():
    batches = Batches(np.arange(4.0), 2, key=hx.random.key(0))
    assert hx.jit(lambda: sum(hnp.asarray(x).sum() for x in batches))() == 6.0
    assert hx.jit(lambda: hnp.asarray(batches[1]))().tolist() == batches[1].tolist()
